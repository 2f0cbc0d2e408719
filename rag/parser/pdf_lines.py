"""The lines of one PDF page with their places, as pdfium finds them.

Owns pdfium's text API and the page's geometry. In what order lines are read is layout's."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from math import hypot
from pathlib import Path

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from rag.parser.layout import MAX_PAGE, Line, Page, Span, clamp
from rag.parser.text import clean

# What pdfium puts in the place of a hyphen that ends a line; it then gives no line end.
HYPHEN = "\ufffe"
_LINE_END = "\r\n"
_WORD_START = re.compile(r"(?<=\s)\S")
# Points between two words that are no mere word space.
_MIN_GAP = 8.0

_CORNER = (0.0, 0.0, 0.0, 0.0)

Rect = tuple[float, float, float, float]


def read_page(document: pdfium.PdfDocument, path: Path, index: int) -> Page:
    """Page `index`, counted from 0. Raises UnreadableFile where neither library can read it."""
    try:
        page = document[index]
        textpage = page.get_textpage()
    except pdfium.PdfiumError:
        from rag.parser import pdf_fallback  # a fifth of a second of imports that few files need

        return pdf_fallback.read_page(path, index, len(document))
    try:
        frame = _Frame(page)
        return Page(index + 1, frame.width, frame.height, tuple(_lines(textpage, frame)))
    finally:
        textpage.close()
        page.close()


def _around(rects: list[Rect]) -> Rect:
    lefts, tops, rights, bottoms = zip(*rects, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


class _Frame:
    """From the file's coordinates to points from the top left of the page as it is shown."""

    def __init__(self, page: pdfium.PdfPage) -> None:
        left, bottom, right, top = page.get_bbox()
        self._left, self._bottom, self._right, self._top = left, bottom, right, top
        self._rotation = page.get_rotation()
        width, height = clamp(right - left, MAX_PAGE), clamp(top - bottom, MAX_PAGE)
        self.width, self.height = (height, width) if self._rotation in (90, 270) else (width, height)

    def place(self, x: float, y: float) -> tuple[float, float]:
        if self._rotation == 90:
            return y - self._bottom, x - self._left
        if self._rotation == 180:
            return self._right - x, y - self._bottom
        if self._rotation == 270:
            return self._top - y, self._right - x
        return x - self._left, self._top - y

    def place_box(self, left: float, top: float, right: float, bottom: float) -> Rect:
        if not self._rotation:
            return left - self._left, self._top - top, right - self._left, self._top - bottom
        x0, y0 = self.place(left, top)
        x1, y1 = self.place(right, bottom)
        return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)


def _lines(textpage: pdfium.PdfTextPage, frame: _Frame) -> Iterator[Line]:
    text = textpage.get_text_range()
    reader = _LineReader(textpage, frame, text)
    start = 0
    for row in text.split(_LINE_END):
        parts = row.split(HYPHEN)
        for position, part in enumerate(parts):
            units = len(part) if part.isascii() else len(part.encode("utf-16-le", "surrogatepass")) // 2
            line = reader.read(part, start, units, hyphened=position < len(parts) - 1)
            if line is not None:
                yield line
            start += units + 1
        start += len(_LINE_END) - 1


class _LineReader:
    """Asks pdfium for the boxes of lines: a few calls into C a line, none a character."""

    def __init__(self, textpage: pdfium.PdfTextPage, frame: _Frame, text: str) -> None:
        self._raw = textpage.raw
        # pdfium's own characters are fewer than the text's units, or more, only on odd pages.
        self._is_plain = len(text) == textpage.count_chars() and (text.isascii() or max(text) <= "\uffff")
        self._frame = frame
        self._numbers = [ctypes.c_double() for _ in range(4)]
        self._refs = [ctypes.byref(number) for number in self._numbers]
        self._matrix = pdfium_c.FS_MATRIX()
        self._matrix_ref = ctypes.byref(self._matrix)

    def read(self, text: str, start: int, units: int, *, hyphened: bool) -> Line | None:
        """The line of `units` UTF-16 units at `start` in the page's text; None if it shows nothing."""
        shown = clean(text).strip()
        if not shown:
            return None
        lead = len(text) - len(text.lstrip())
        first, last = self._index(start + lead), self._index(start + units - 1)
        # Text that shows no ink is kept, in the corner: it may be the words under a scan.
        rects = self._rects(first, last - first + 1) or [_CORNER]
        # In the middle: a bullet or a footnote's mark is set in another size.
        size = self._size((first + last) // 2) or self._size(first)
        left, top, right, bottom = rects[0] if len(rects) == 1 else _around(rects)
        base = self._base(first)
        width, height = self._frame.width, self._frame.height
        if not (0 <= left <= right <= width and 0 <= top <= bottom <= height and 0 <= base <= height):
            left, right = clamp(left, width), clamp(right, width)
            top, bottom, base = clamp(top, height), clamp(bottom, height), clamp(base, height)
        has_gaps = len(rects) > 1 and units == len(text)
        spans = self._spans(text, shown, start, rects, size) if has_gaps else ()
        return Line(shown, left, right, top, bottom, base, clamp(size, height), hyphened, spans)

    def _rects(self, first: int, count: int) -> list[Rect]:
        raw, frame = self._raw, self._frame
        left, top, right, bottom = self._numbers
        left_ref, top_ref, right_ref, bottom_ref = self._refs
        found = []
        for index in range(pdfium_c.FPDFText_CountRects(raw, first, count)):
            if pdfium_c.FPDFText_GetRect(raw, index, left_ref, top_ref, right_ref, bottom_ref):
                found.append(frame.place_box(left.value, top.value, right.value, bottom.value))
        return found

    def _spans(self, text: str, shown: str, start: int, rects: list[Rect], size: float) -> tuple[Span, ...]:
        gap = max(_MIN_GAP, size)
        stretches = [[rects[0][0], rects[0][2]]]
        for left, _, right, _ in rects[1:]:
            if left > stretches[-1][1] + gap:
                stretches.append([left, right])
            else:
                stretches[-1][1] = max(stretches[-1][1], right)
        lead = text.find(shown)
        if len(stretches) == 1 or lead < 0:
            return ()
        width = self._frame.width
        spans = [Span(clamp(stretches[0][0], width), clamp(stretches[0][1], width), 0)]
        for word in _WORD_START.finditer(shown):
            if len(spans) < len(stretches):
                left, right = stretches[len(spans)]
                if self._left(start + lead + word.start()) >= left - 1:
                    spans.append(Span(clamp(left, width), clamp(right, width), word.start()))
        return tuple(spans) if len(spans) == len(stretches) else ()

    def _index(self, text_index: int) -> int:
        if self._is_plain:
            return text_index
        return int(pdfium_c.FPDFText_GetCharIndexFromTextIndex(self._raw, text_index))

    def _left(self, text_index: int) -> float:
        index = self._index(text_index)
        left, right, bottom, top = self._numbers
        pdfium_c.FPDFText_GetCharBox(self._raw, index, *self._refs)
        return self._frame.place_box(left.value, top.value, right.value, bottom.value)[0]

    def _base(self, index: int) -> float:
        x, y = self._numbers[:2]
        pdfium_c.FPDFText_GetCharOrigin(self._raw, index, *self._refs[:2])
        return self._frame.place(x.value, y.value)[1]

    def _size(self, index: int) -> float:
        size = float(pdfium_c.FPDFText_GetFontSize(self._raw, index))
        if pdfium_c.FPDFText_GetMatrix(self._raw, index, self._matrix_ref):
            size *= hypot(self._matrix.c, self._matrix.d) or 1.0
        return size
