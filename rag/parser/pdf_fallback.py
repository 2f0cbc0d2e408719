"""The lines of one PDF page by pdfminer: slow, and kept for pages on which pdfium fails."""

from __future__ import annotations

import logging
from functools import lru_cache
from pathlib import Path

from pdfminer.high_level import extract_pages
from pdfminer.layout import LTChar, LTTextContainer, LTTextLine
from pdfminer.pdfpage import PDFPage
from pdfminer.psexceptions import PSException

from common.errors import UnreadableFile
from rag.parser.layout import MAX_PAGE, Line, Page, clamp
from rag.parser.text import clean

# It warns of every oddity of a damaged file; what counts is what it can still read.
logging.getLogger("pdfminer").setLevel(logging.ERROR)
# What pdfminer raises on damaged files besides its own errors.
_STUMBLES = (AttributeError, AssertionError, IndexError, KeyError, TypeError, ValueError, RecursionError)


def read_page(path: Path, index: int, pages: int) -> Page:
    """Page `index`, counted from 0, of a document of so many `pages`.

    Raises UnreadableFile where pdfminer fails as well, or counts other pages: it leaves out those that it can't
    read, and `index` would then be another page."""
    try:
        counted = _count(path, path.stat().st_mtime_ns)
        layout = next(iter(extract_pages(path, page_numbers=[index])), None) if counted == pages else None
    except (PSException, *_STUMBLES) as exc:
        raise UnreadableFile(f"page {index + 1} is damaged and can't be read") from exc
    if layout is None:
        raise UnreadableFile(f"page {index + 1} is damaged and can't be read")
    width, height = clamp(layout.width, MAX_PAGE), clamp(layout.height, MAX_PAGE)
    found = (line for box in layout if isinstance(box, LTTextContainer) for line in box)
    lines = tuple(_line(line, width, height) for line in found if isinstance(line, LTTextLine))
    return Page(index + 1, width, height, tuple(line for line in lines if line.text))


@lru_cache(maxsize=1)
def _count(path: Path, _changed_ns: int) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in PDFPage.get_pages(file))


def _line(line: LTTextLine, width: float, height: float) -> Line:
    text = " ".join(clean(line.get_text()).split())
    hyphened = len(text) > 2 and text.endswith(("-", "\u00ad")) and text[-2].isalpha()
    return Line(
        text=text[:-1] if hyphened else text,
        left=clamp(line.x0, width),
        right=clamp(line.x1, width),
        top=clamp(height - line.y1, height),
        bottom=clamp(height - line.y0, height),
        base=clamp(height - line.y0, height),
        size=next((letter.size for letter in line if isinstance(letter, LTChar)), 0.0),
        hyphened=hyphened,
    )
