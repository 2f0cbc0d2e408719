"""Pages that are pictures of text: drawn by pdfium, and read by the recogniser."""

from __future__ import annotations

from math import sqrt

import pypdfium2 as pdfium

from common.errors import UnreadableFile
from rag.parser.layout import Line
from rag.parser.pdf_frame import Frame

_DPI = 150
# A larger page is drawn more coarsely: A3 at 150 dpi has 4.3 million.
MAX_PIXELS = 16_000_000


def read_scan(document: pdfium.PdfDocument, index: int, frame: Frame) -> list[Line]:
    """The lines that are seen on page `index`, counted from 0; takes seconds."""
    from rag.parser import ocr  # loads its models: only for files that have scans

    page = document[index]
    try:
        width, height = page.get_size()
        if not (width >= 1 and height >= 1):
            return []
        scale = min(_DPI / 72, sqrt(MAX_PIXELS / (width * height)))
        bitmap = page.render(scale=scale, rev_byteorder=True)
        try:
            return list(ocr.read_lines(bitmap.to_pil(), frame.width, frame.height))
        finally:
            bitmap.close()
    except (pdfium.PdfiumError, ValueError) as exc:
        raise UnreadableFile(f"page {index + 1} can't be drawn to read the text in its picture") from exc
    finally:
        page.close()
