"""Where the letters and words of a PDF page stand, as pdfium tells.

Each letter is a call into C, so only the letters that are asked for are looked at: of a word, its first and last."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Iterator
from itertools import repeat

from rag.parser import pdf_native as native
from rag.parser.layout import Line
from rag.parser.pdf_frame import Frame, Rect

# Of one line; of a longer one each letter is looked at.
_MAX_WORDS = 500
_HALF = re.compile("[\ud800-\udfff]")
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
_CORNER = (0.0, 0.0, 0.0, 0.0)

# Where pdfium puts its answers: one process reads one page at a time.
_boxes = (ctypes.c_float * (8 * _MAX_WORDS))()
_box_at = native.places(_boxes)[::4]
_rect = (ctypes.c_double * 4)()
_rect_at = native.places(_rect)
# Points.
_MIN_INK = 0.05


# A word of a line: its text, the left and right edge of its first letter, and those of its last.
Word = tuple[str, float, float, float, float]


def joined(letters: Iterable[str]) -> str:
    """The text that letters make up: pdfium gives those beyond the first plane of Unicode in two halves."""
    text = "".join(letters)
    if text.isascii() or not _HALF.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class Places:
    """Of the page that has this text."""

    def __init__(self, textpage: native.Handle, frame: Frame, text: str) -> None:
        self._textpage, self._frame, self._text = textpage, frame, text
        # pdfium's own characters are fewer than the text's units, or more, only on odd pages.
        self.is_plain = len(text) == native.count_chars(textpage) and (text.isascii() or _BEYOND.search(text) is None)

    def index(self, text_index: int) -> int:
        """pdfium's number of the character at a UTF-16 unit of the text."""
        return text_index if self.is_plain else int(native.char_index(self._textpage, text_index))

    def box(self, index: int) -> Rect:
        """The place of one character, as high as its type."""
        if not native.get_char_box(self._textpage, index, _boxes):
            return _CORNER
        left, top, right, bottom = _boxes[:4]
        return self._frame.place_box(left, top, right, bottom)

    def has_ink(self, index: int) -> bool:
        """Whether anything is seen of a character."""
        if native.count_rects(self._textpage, index, 1) < 1 or not native.get_rect(self._textpage, 0, *_rect_at):
            return False
        left, top, right, bottom = _rect
        return abs(right - left) > _MIN_INK and abs(top - bottom) > _MIN_INK

    def left(self, text_index: int) -> float:
        """The left edge of the character at a UTF-16 unit of the text."""
        index = text_index if self.is_plain else self.index(text_index)
        if self._frame.turned or not native.get_char_box(self._textpage, index, _boxes):
            return self.box(index)[0]
        return _boxes[0] - self._frame.left

    def letters(self, line: Line) -> Iterator[tuple[str, Rect]]:
        """The characters of a line with their places."""
        for index in range(line.first, line.first + line.count):
            letter = self._text[index] if self.is_plain else chr(native.get_unicode(self._textpage, index))
            yield letter, self.box(index)

    def words(self, line: Line) -> list[Word]:
        """The words of a line in the order of the file."""
        text = self._text[line.first : line.first + line.count]
        words = text.split()
        if not self.is_plain or len(words) > _MAX_WORDS:
            return list(self._words_by_letters(line))
        ends: list[int] = []
        start = line.first + len(text) - len(text.lstrip())
        for word in words:
            if self._text[start].isspace():
                start = self._text.find(word, start)
            end = start + len(word)
            ends += (start, end - 1)
            start = end + 1
        if not all(list(map(native.get_char_box, repeat(self._textpage), ends, _box_at))):
            return list(self._words_by_letters(line))
        frame, edges = self._frame, _boxes[: 4 * len(ends)]
        lefts, rights = edges[::4], edges[2::4]
        if frame.turned:
            boxes = [frame.place_box(*edges[at : at + 4]) for at in range(0, len(edges), 4)]
            lefts, rights = [box[0] for box in boxes], [box[2] for box in boxes]
        elif frame.left:
            lefts, rights = [edge - frame.left for edge in lefts], [edge - frame.left for edge in rights]
        return list(zip(words, lefts[::2], rights[::2], lefts[1::2], rights[1::2], strict=True))

    def _words_by_letters(self, line: Line) -> Iterator[Word]:
        held: list[tuple[str, Rect]] = []
        for letter, box in (*self.letters(line), (" ", _CORNER)):
            if not letter.isspace():
                held.append((letter, box))
            elif held:
                first, last = held[0][1], held[-1][1]
                yield joined(each for each, _ in held), first[0], first[2], last[0], last[2]
                held = []
