"""The lines of one PDF page with their places, as pdfium finds them.

Owns pdfium's text API. In what order lines are read is layout's; tables, figures and scans have their own modules."""

from __future__ import annotations

import ctypes
import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from math import hypot

from rag.parser import pdf_native as native
from rag.parser.layout import Line, Span, clamp
from rag.parser.pdf_frame import Frame, Rect
from rag.parser.pdf_letters import has_odd_letters, plain_letters
from rag.parser.text import clean

# What pdfium puts in the place of a hyphen that ends a line; it then gives no line end.
HYPHEN = "\ufffe"
# A page with more of either is not read to its end: no person reads such a page.
MAX_CHARS = 1_000_000
MAX_LINES = 20_000
# Stretches of one line, as each letter of it may be drawn by itself.
MAX_RECTS = 1_000

_LINE_END = "\r\n"
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
# Points between two words that are no mere word space.
_MIN_GAP = 8.0
_CORNER = (0.0, 0.0, 0.0, 0.0)
# Only a short line that is no sentence can be a heading, so only of these it is asked whether they are bold.
_MAX_BOLD_CHARS = 100
_NO_HEADING_ENDS = (".", ",", ";")
_BOLD = re.compile(rb"bold|black|heavy|demi|cmbx|-bd\b", re.IGNORECASE)
_MAX_FONT_NAME = 128
_FORCE_BOLD = 1 << 18

# Where pdfium puts its answers: one process reads one page at a time.
_rect = (ctypes.c_double * 4)()
_rect_at = tuple(ctypes.addressof(_rect) + 8 * number for number in range(4))
_box = (ctypes.c_float * 4)()
_box_at = ctypes.addressof(_box)
_matrix = (ctypes.c_float * 6)()
_matrix_at = ctypes.addressof(_matrix)
_name = ctypes.create_string_buffer(_MAX_FONT_NAME)
_name_at = ctypes.addressof(_name)
_flags = ctypes.c_int()
_flags_at = ctypes.addressof(_flags)


def read_text(textpage: int) -> str:
    """The text of the page at this address, as pdfium gives it."""
    count = min(native.count_chars(textpage), MAX_CHARS)
    if count <= 0:
        return ""
    # Letters beyond the first plane take two units.
    room = ctypes.create_string_buffer(4 * (count + 1))
    units = native.get_text(textpage, 0, count, ctypes.addressof(room))
    return room.raw[: 2 * max(0, units - 1)].decode("utf-16-le", "replace")


def read_lines(reader: LineReader, text: str, *, is_noisy: bool) -> Iterator[Line]:
    """The lines of the page's text in the order of the file."""
    odd = has_odd_letters(text)
    is_ascii = text.isascii()
    start = found = 0
    for row in text.split(_LINE_END):
        parts = row.split(HYPHEN) if HYPHEN in row else (row,)
        for position, part in enumerate(parts, start=1):
            units = len(part) if is_ascii or part.isascii() else len(part.encode("utf-16-le", "surrogatepass")) // 2
            shown = (clean(part) if is_noisy else part).strip()
            if shown:
                line = reader.read(part, shown, start, units, hyphened=position < len(parts))
                yield plain_letters(line, reader) if odd else line
                found += 1
            start += units + 1
        start += len(_LINE_END) - 1
        if found >= MAX_LINES:
            return


class LineReader:
    """Asks pdfium for the places of lines: a few calls into C a line, none a character."""

    def __init__(self, textpage: int, frame: Frame, text: str) -> None:
        self._raw = textpage
        # pdfium's own characters are fewer than the text's units, or more, only on odd pages.
        self._is_plain = len(text) == native.count_chars(textpage) and (text.isascii() or _BEYOND.search(text) is None)
        self._text = text
        self._place, self._place_box = frame.place, frame.place_box
        self._width, self._height = frame.width, frame.height
        # How many pieces of text were found in all lines.
        self.rects = 0

    def read(self, text: str, shown: str, start: int, units: int, *, hyphened: bool) -> Line:
        """The line of `units` UTF-16 units at `start` in the page's text, of which `shown` is seen."""
        if self._is_plain:
            first, last = start, start + units - 1
            if text[0] <= " ":
                first += len(text) - len(text.lstrip())
        else:
            lead = len(text) - len(text.lstrip())
            first, last = self._index(start + lead), self._index(start + units - 1)
        count = last - first + 1
        found = native.count_rects(self._raw, first, count)
        self.rects += found
        if found == 1 and native.get_rect(self._raw, 0, *_rect_at):
            left, top, right, bottom = self._place_box(*_rect[:])
            rects = None
        else:
            rects = self._rects(first, count, min(found, MAX_RECTS))
            left, top, right, bottom = _around(rects)
        # In the middle: a bullet or a footnote's mark is set in another size, and higher up.
        size, base = self._set_as((first + last) // 2, first)
        width, height = self._width, self._height
        if not (0 <= left <= right <= width and 0 <= top <= bottom <= height and 0 <= base <= height):
            left, right = clamp(left, width), clamp(right, width)
            top, bottom, base = clamp(top, height), clamp(bottom, height), clamp(base, height)
        spans = self._spans(text, shown, start, rects, size) if rects is not None and units == len(text) else ()
        bold = len(shown) <= _MAX_BOLD_CHARS and not shown.endswith(_NO_HEADING_ENDS) and self.is_bold(first)
        if not 0 < size <= height:
            size = clamp(size, height)
        return Line(shown, left, right, top, bottom, base, size, hyphened, spans, bold, first, count)

    def box(self, index: int) -> Rect:
        """The place of one character, as high as its type."""
        if not native.get_char_box(self._raw, index, _box_at):
            return _CORNER
        left, top, right, bottom = _box[:]
        return self._place_box(left, top, right, bottom)

    def letters(self, line: Line) -> Iterator[tuple[str, Rect]]:
        """The characters of a line with their places."""
        for index in range(line.first, line.first + line.count):
            letter = self._text[index] if self._is_plain else chr(native.get_unicode(self._raw, index))
            yield letter, self.box(index)

    def is_bold(self, index: int) -> bool:
        length = native.get_font_info(self._raw, index, _name_at, _MAX_FONT_NAME, _flags_at)
        if not 0 < length <= _MAX_FONT_NAME:
            return False
        return bool(_flags.value & _FORCE_BOLD) or _BOLD.search(_name.value) is not None

    def _rects(self, first: int, count: int, rects: int) -> list[Rect]:
        raw, place_box, get_rect = self._raw, self._place_box, native.get_rect
        left_at, top_at, right_at, bottom_at = _rect_at
        found = []
        for index in range(rects):
            if get_rect(raw, index, left_at, top_at, right_at, bottom_at):
                found.append(place_box(*_rect[:]))
        # Letters that show no ink may be the words under a scan: they have a place all the same.
        return found or [_around([self.box(first), self.box(first + count - 1)])]

    def _set_as(self, index: int, first: int) -> tuple[float, float]:
        """The size of the type at a character, and where its letters stand."""
        raw = self._raw
        native.get_matrix(raw, index, _matrix_at)
        a, _, c, d, x, y = _matrix[:]
        if x == 0 and y == 0 and a == 1:
            # A space that pdfium put in has no type and no place of its own.
            index = first
            native.get_matrix(raw, index, _matrix_at)
            a, _, c, d, x, y = _matrix[:]
        size = native.get_font_size(raw, index) * ((d if not c and d > 0 else hypot(c, d)) or 1.0)
        return size, self._place(x, y)[1]

    def _spans(self, text: str, shown: str, start: int, rects: list[Rect], size: float) -> tuple[Span, ...]:
        gap = max(_MIN_GAP, size)
        stretches = [[rects[0][0], rects[0][2]]]
        for left, _, right, _ in rects[1:]:
            if left > stretches[-1][1] + gap:
                stretches.append([left, right])
            elif right > stretches[-1][1]:
                stretches[-1][1] = right
        lead = text.find(shown)
        if len(stretches) == 1 or lead < 0:
            return ()
        width = self._width
        spans = [Span(clamp(stretches[0][0], width), clamp(stretches[0][1], width), 0)]
        ends = accumulate(len(word) + 1 for word in shown.split(" "))
        words = [end for end in ends if shown[end : end + 1].strip()]
        for left, right in stretches[1:]:
            # Words of a line stand one after the other: the first that is not left of the stretch.
            at = bisect_left(words, True, key=lambda word: self._left(start + lead + word) >= left - gap / 2)
            if at == len(words):
                return ()
            spans.append(Span(clamp(left, width), clamp(right, width), words[at]))
        return tuple(spans)

    def _left(self, text_index: int) -> float:
        return self.box(self._index(text_index))[0]

    def _index(self, text_index: int) -> int:
        return text_index if self._is_plain else int(native.char_index(self._raw, text_index))


def _around(rects: list[Rect]) -> Rect:
    lefts, tops, rights, bottoms = zip(*rects, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)
