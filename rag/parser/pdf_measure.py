"""Where a line of a PDF page stands and how it is set, as pdfium tells.

That is five calls into C for every line, or one for a page where `_pdf_sweep` could be compiled; the answers are the
same."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from itertools import repeat
from math import sqrt
from struct import Struct

import pypdfium2.raw as pdfium_c

from rag.parser import pdf_native as native
from rag.parser.page_lines import Line, Span
from rag.parser.pdf_fonts import font_style, style_of
from rag.parser.pdf_frame import Frame

try:
    from rag.parser import _pdf_sweep as sweep
except ImportError:  # there was no compiler
    sweep = None  # type: ignore[assignment]

# Pieces of one line, as each letter of it may be drawn by itself.
_MAX_RECTS = 1_000
# Points between two words that are no mere word space.
MIN_GAP = 8.0

Stretch = tuple[float, float]
# The size of its type, where its letters stand, BOLD and MONO, in how many pieces it is drawn, left, top, right and
# bottom of these, and its stretches between wide gaps if it has several pieces.
Measures = tuple[float, float, int, int, float, float, float, float, list[Stretch] | None]
# From a line's text, what is shown of it, where it starts, its first and last character, whether a hyphen ends it, and
# its measures.
Made = Callable[[str, str, int, int, int, bool, Measures], Line]

# Where pdfium puts its answers, the first of which is all that most lines have: one process reads one page at a time.
_matrix = (ctypes.c_float * 6)()
_rects = (ctypes.c_double * (4 * _MAX_RECTS))()
_sides_at = tuple(native.places(_rects)[side::4] for side in range(4))
_first_at = tuple(side[0] for side in _sides_at)
_six, _four = Struct("6f").unpack_from, Struct("4d").unpack_from
_NO_MATRIX = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

if sweep is not None:
    _ASKED = (
        "GetMatrix",
        "GetFontSize",
        "GetFontInfo",
        "CountRects",
        "GetRect",
        "GetLooseCharBox",
        "CountChars",
        "GetText",
    )
    _addresses = tuple([native.address(getattr(pdfium_c, f"FPDFText_{name}")) for name in _ASKED])
    sweep.bind(_addresses, style_of, Line, Span)


def text_at_once(textpage: native.Handle, most: int) -> str | None:
    """The text of the page, at most so many characters; None where that takes several calls."""
    return sweep.text(textpage.value or 0, most) if sweep is not None else None


def measurer(textpage: native.Handle, frame: Frame) -> Measure | sweep.Measure:
    """Measures the line from one character of the page to another."""
    if sweep is None or frame.turned:
        return Measure(textpage, frame)
    return sweep.Measure(textpage.value or 0, frame.left, frame.top, frame.width, frame.height, MIN_GAP)


class Measure:
    """Of a page however it is turned."""

    def __init__(self, textpage: native.Handle, frame: Frame) -> None:
        self._textpage, self._frame = textpage, frame

    def lines(self, text: str, most: int, made: Made) -> tuple[list[Line], int] | None:
        """The lines of the page's text, at most so many, and in how many pieces they are drawn; None where they are
        not read all at once."""
        return None

    def line(self, first: int, last: int) -> Measures:
        textpage, frame = self._textpage, self._frame
        size, base = self._set_as(first, last)
        style = font_style(textpage, first)
        found = native.count_rects(textpage, first, last - first + 1)
        if found > 1:
            return self._of_several(min(found, _MAX_RECTS), size, base, style)
        left = top = right = bottom = 0.0
        if found:
            native.get_rect(textpage, 0, *_first_at)
            left, top, right, bottom = _four(_rects)
        return size, base, style, found, *frame.place_box(left, top, right, bottom), None

    def _set_as(self, first: int, last: int) -> tuple[float, float]:
        # In the middle: a bullet or a footnote's mark is set in another size, and higher up.
        index = (first + last) // 2
        a, _, c, d, x, y = self._matrix(index)
        if x == 0 and y == 0 and a == 1:
            # A space that pdfium put in has no type and no place of its own.
            index = first
            a, _, c, d, x, y = self._matrix(index)
        scale = d if c == 0 and d > 0 else sqrt(c * c + d * d)
        size = native.get_font_size(self._textpage, index) * (scale or 1.0)
        return size, self._frame.place(x, y)[1]

    def _matrix(self, index: int) -> tuple[float, ...]:
        return _six(_matrix) if native.get_matrix(self._textpage, index, _matrix) else _NO_MATRIX

    def _of_several(self, count: int, size: float, base: float, style: int) -> Measures:
        frame = self._frame
        deque(map(native.get_rect, repeat(self._textpage), range(count), *_sides_at), maxlen=0)
        numbers = _rects[: 4 * count]
        box = frame.place_box(min(numbers[::4]), max(numbers[1::4]), max(numbers[2::4]), min(numbers[3::4]))
        boxes = [frame.place_box(*numbers[at : at + 4]) for at in range(0, len(numbers), 4)]
        stretches = _parted([each[0] for each in boxes], [each[2] for each in boxes], max(size, MIN_GAP))
        return size, base, style, count, *box, stretches


def _parted(lefts: list[float], rights: list[float], gap: float) -> list[Stretch]:
    """The stretches between wide gaps, from left to right."""
    found = []
    start, end = lefts[0], rights[0]
    for left, right in zip(lefts, rights, strict=True):
        if left > end + gap:
            found.append((start, end))
            start, end = left, right
        elif right > end:
            end = right
    found.append((start, end))
    return found
