"""The lines of one PDF page with their places, as pdfium finds them.

Owns pdfium's text API. In what order lines are read is layout's; tables, figures and scans have their own modules."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

from rag.parser import pdf_native as native
from rag.parser.layout import Line, Span, clamp
from rag.parser.pdf_fonts import BOLD, MONO, font_style
from rag.parser.pdf_frame import Frame, Rect
from rag.parser.pdf_letters import has_odd_letters, plain_letters
from rag.parser.pdf_measure import MIN_GAP, Measures, measurer, text_at_once
from rag.parser.pdf_places import Places
from rag.parser.pdf_spans import SpanReader
from rag.parser.text import clean

# What pdfium puts in the place of a hyphen that ends a line; it then gives no line end.
HYPHEN = "\ufffe"
# A page with more of either is not read to its end: no person reads such a page.
MAX_CHARS = 1_000_000
MAX_LINES = 20_000

_LINE_END = "\r\n"
# Only a short line that is no sentence can be a heading, so only of these it is asked whether they are bold.
_MAX_BOLD_CHARS = 100
_NO_HEADING_ENDS = frozenset(".,;")
# Of a letter, against the size of its type, at the mean of a line: wider, and there may be gaps in it.
_WIDE = 0.56
_NUMBERED = re.compile(r"\d{1,5}\s+(?=\S)")
# Files may leave out the fonts of these scripts. Where there is none like them here either, pdfium knows where their
# letters stand, and of no ink.
_OFTEN_WITHOUT_FONT = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")

# Where pdfium puts its answers: one process reads one page at a time.
_text = ctypes.create_string_buffer(1 << 16)


def read_text(textpage: native.Handle) -> str:
    """The text of the page, as pdfium gives it."""
    if (text := text_at_once(textpage, MAX_CHARS)) is not None:
        return text
    count = min(native.count_chars(textpage), MAX_CHARS)
    if count <= 0:
        return ""
    # Letters beyond the first plane take two units.
    size = 4 * (count + 1)
    room = _text if size <= len(_text) else ctypes.create_string_buffer(size)
    units = native.get_text(textpage, 0, count, room)
    return str(memoryview(room)[: 2 * max(0, units - 1)], "utf-16-le", "replace")


def read_lines(reader: LineReader, text: str, *, is_noisy: bool) -> list[Line]:
    """The lines of the page's text in the order of the file."""
    odd = has_odd_letters(text)
    lines = None if odd or is_noisy else reader.read_all(text)
    return list(_one_by_one(reader, text, odd, is_noisy)) if lines is None else lines


def _one_by_one(reader: LineReader, text: str, odd: bool, is_noisy: bool) -> Iterator[Line]:
    is_plain = reader.places.is_plain
    start = found = 0
    for part, hyphened in _parts(text):
        units = len(part) if is_plain else len(part.encode("utf-16-le", "surrogatepass")) // 2
        shown = (clean(part) if is_noisy else part).strip()
        if shown:
            line = reader.read(part, shown, start, units, hyphened)
            yield plain_letters(line, reader.places) if odd else line
            found += 1
            if found >= MAX_LINES:
                return
        start += units + (len(HYPHEN) if hyphened else len(_LINE_END))


def _parts(text: str) -> Iterable[tuple[str, bool]]:
    """The lines of a text, and whether a hyphen ends them."""
    rows = text.split(_LINE_END)
    return _hyphened_parts(rows) if HYPHEN in text else zip(rows, repeat(False))


def _hyphened_parts(rows: Sequence[str]) -> Iterator[tuple[str, bool]]:
    for row in rows:
        *broken, last = row.split(HYPHEN)
        for part in broken:
            yield part, True
        yield last, False


class LineReader:
    """Asks pdfium for the places of lines: a call or a few for each line, none for a letter."""

    def __init__(self, textpage: native.Handle, frame: Frame, text: str) -> None:
        self.places = Places(textpage, frame, text)
        # How many pieces of text were found in all lines; which of these, by their first character, are off the page.
        self.rects = 0
        self.unseen: set[int] = set()
        self._textpage = textpage
        self._width, self._height = frame.width, frame.height
        self._is_plain = self.places.is_plain
        self._measure = measurer(textpage, frame)
        self._spans = SpanReader(frame.width, self.places)
        self._may_lack_ink = not text.isascii() and _OFTEN_WITHOUT_FONT.search(text) is not None

    def read_all(self, text: str) -> list[Line] | None:
        """The lines of the page's text; None where they have to be read one by one."""
        found = self._measure.lines(text, MAX_LINES, self.made) if self._is_plain and not self._may_lack_ink else None
        if found is None:
            return None
        lines, self.rects = found
        return lines

    def read(self, text: str, shown: str, start: int, units: int, hyphened: bool) -> Line:
        """The line of `units` UTF-16 units at `start` in the page's text, of which `shown` is seen."""
        if self._is_plain:
            first, last = start, start + units - 1
            if text[0] <= " ":
                first += len(text) - len(text.lstrip())
        else:
            lead = len(text) - len(text.lstrip())
            first, last = self.places.index(start + lead), self.places.index(start + units - 1)
        measures = self._measure.line(first, last)
        self.rects += measures[3]
        return self.made(text, shown, start, first, last, hyphened, measures, has_pairs=units != len(text))

    def made(
        self,
        text: str,
        shown: str,
        start: int,
        first: int,
        last: int,
        hyphened: bool,
        measures: Measures,
        *,
        has_pairs: bool = False,
    ) -> Line:
        """The line that is measured so. `has_pairs`: some of its characters take two UTF-16 units."""
        count = last - first + 1
        size, base, style, found, left, top, right, bottom, stretches = measures
        if style or shown[0].isdecimal():
            style = self._whole_style(style, shown, first, last)
        spans: tuple[Span, ...] = ()
        if found == 1:
            # Some programs draw a row of a table in one piece, with wide spaces in it.
            if right - left > _WIDE * size * len(shown) and " " in shown and not has_pairs and not style & MONO:
                spans = self._spans.within_piece(shown, first, count, size if size > MIN_GAP else MIN_GAP)
        elif stretches is not None:
            if len(stretches) > 1 and not has_pairs and not (style & MONO and shown[0].isdecimal()):
                spans = self._spans.spans(stretches, text, shown, start, size if size > MIN_GAP else MIN_GAP)
        else:
            left, top, right, bottom = self._box_of_ends(first, last)
        if self._may_lack_ink and self._lacks_ink(shown, first):
            left, top, right, bottom = self._box_of_ends(first, last - len(text) + len(text.rstrip()))
            spans = ()
        width, height = self._width, self._height
        if not (0 <= left <= right <= width and 0 <= top <= bottom <= height and 0 <= base <= height):
            if _is_off(left, right, width) or _is_off(top, bottom, height):
                self.unseen.add(first)
            left, right = clamp(left, width), clamp(right, width)
            top, bottom, base = clamp(top, height), clamp(bottom, height), clamp(base, height)
        if not 0 < size <= height:
            size = clamp(size, height)
        if not style:
            return Line(shown, left, right, top, bottom, base, size, hyphened, spans, False, first, count)
        bold = style & BOLD != 0 and len(shown) <= _MAX_BOLD_CHARS and shown[-1] not in _NO_HEADING_ENDS
        mono = style & MONO != 0
        return Line(shown, left, right, top, bottom, base, size, hyphened, spans, bold, first, count, None, mono)

    def _box_of_ends(self, first: int, last: int) -> Rect:
        """Letters that show no ink may be the words under a scan: they have a place all the same."""
        one, other = self.places.box(first), self.places.box(last)
        return min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])

    def _lacks_ink(self, shown: str, first: int) -> bool:
        """Whether letters of the line are drawn in a font that is nowhere to be had."""
        letter = _OFTEN_WITHOUT_FONT.search(shown)
        return letter is not None and not self.places.has_ink(first + letter.start())

    def _whole_style(self, style: int, shown: str, first: int, last: int) -> int:
        """What all of a line is whose first letter has this style: a few words at its start may be set in another
        type, as the numbers of lines of code always are."""
        if not style and (words := _NUMBERED.match(shown)):
            style = font_style(self._textpage, first + words.end()) & MONO
        if style:
            style &= font_style(self._textpage, (first + last) // 2)
        if style & MONO:
            style &= font_style(self._textpage, last) | ~MONO
        return style


def _is_off(start: float, end: float, most: float) -> bool:
    """Whether nothing of a stretch is on the page: slides keep there what they have yet to show."""
    return end < 0 or start > most
