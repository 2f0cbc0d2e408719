"""Rows of a page: lines at one height, in parts with wide gaps between them, and these in words."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from operator import itemgetter
from typing import NamedTuple

from rag.parser.layout import Line
from rag.parser.line_joins import has_leaders
from rag.parser.pdf_frame import Rect
from rag.parser.pdf_letters import shaped
from rag.parser.pdf_places import Word, joined
from rag.parser.pdf_tables import Letters
from rag.parser.text import clean

# The number of a line of code that is no more than a bracket.
_CODE = re.compile(r"\d{1,5}\s+\S{1,3}")
# Longer lines are prose; narrower gaps, in points, are spaces between words.
_MAX_ROW_CHARS = 100
_MIN_STRETCH_GAP = 8.0


class Part(NamedTuple):
    """A stretch of a line between wide gaps, or a word of it."""

    left: float
    right: float
    text: str
    line: Line


class Row:
    """Lines at one height; `count` is how many parts they have."""

    __slots__ = ("_parts", "base", "count", "lines", "size")

    def __init__(self, line: Line) -> None:
        self.base, self.size = line.base, line.size
        self.lines = [line]
        self.count = len(line.spans) or 1
        self._parts: list[Part] | None = None

    def part(self, letters: Letters) -> bool:
        """Look for wide gaps between the words of a line that has none known. Whether there are any."""
        line = self.lines[0]
        if len(self.lines) > 1 or not _may_be_parted(line):
            return False
        parts = _stretches(line, letters)
        if len(parts) < 2:
            return False
        self._parts, self.count = parts, len(parts)
        return True

    def join(self) -> None:
        """Forget the parts of the only line again."""
        self._parts, self.count = None, 1

    def add(self, line: Line) -> None:
        self.lines.append(line)
        self.count += len(line.spans) or 1

    @property
    def parts(self) -> list[Part]:
        """From left to right; made when they are asked for, as most pages have rows of prose."""
        if self._parts is None:
            self._parts = [part for line in self.lines for part in _parts(line)]
            self._parts.sort(key=itemgetter(0))
        return self._parts


class WordsWithin:
    """The letters of lines of which only what stands in one column is asked for."""

    def __init__(self, letters: Letters, left: float, right: float) -> None:
        self._letters, self._left, self._right = letters, left, right

    def letters(self, line: Line) -> Iterator[tuple[str, Rect]]:
        for letter, box in self._letters.letters(line):
            if letter.isspace() or self._left <= (box[0] + box[2]) / 2 <= self._right:
                yield letter, box

    def words(self, line: Line) -> list[Word]:
        return [word for word in self._letters.words(line) if self._left <= (word[1] + word[4]) / 2 <= self._right]


def words_of(row: Row, letters: Letters | None) -> list[Part] | None:
    """The words of a row part by part; a part itself where letters have no places.

    None if a letter stands outside of all parts, as the signs of a formula do that are drawn last, or has no place."""
    if letters is None:
        return row.parts
    found: list[tuple[float, list[Part]]] = []
    for line in row.lines:
        parts = row.parts if len(row.lines) == 1 else list(_parts(line))
        words = _words_by_part(parts, letters)
        if words is None or _count_letters(parts) > sum([_count_letters(own) for own in words]):
            return None
        found += zip([part.left for part in parts], words, strict=True)
    if len(row.lines) > 1:
        found.sort(key=itemgetter(0))
    return [word for _, words in found for word in words]


def _count_letters(parts: Sequence[Part]) -> int:
    return sum([sum(map(str.isalnum, part.text)) for part in parts])


def _parts(line: Line) -> Iterator[Part]:
    if not line.spans:
        yield Part(line.left, line.right, line.text, line)
        return
    for span, after in zip_longest(line.spans, line.spans[1:]):
        text = line.text[span.start : after.start if after else None].strip()
        yield Part(span.left, span.right, text, line)


def _may_be_parted(line: Line) -> bool:
    if line.mono or line.bold or not line.count or " " not in line.text or len(line.text) > _MAX_ROW_CHARS:
        return False
    return not has_leaders(line.text) and not _CODE.fullmatch(line.text)


def _stretches(line: Line, letters: Letters) -> list[Part]:
    """The stretches of a line between gaps that are wider than its type is high."""
    found: list[tuple[float, float, list[str]]] = []
    for text, left, _, _, right in letters.words(line):
        if found and left < found[-1][0]:
            return []
        if found and left - found[-1][1] <= max(line.size, _MIN_STRETCH_GAP):
            found[-1] = (found[-1][0], right, [*found[-1][2], text])
        else:
            found.append((left, right, [text]))
    return [Part(left, right, " ".join(texts), line) for left, right, texts in found]


def _words_by_part(parts: Sequence[Part], letters: Letters) -> list[list[Part]] | None:
    """The words of each of a line's parts; None if a letter is in none of them."""
    line = parts[0].line
    if not line.count:
        return [[part] for part in parts]
    found: list[list[Part]] = [[] for _ in parts]
    lefts = [part.left - 1 for part in parts]
    for text, left, first_right, last_left, right in letters.words(line):
        start, end = (left + first_right) / 2, (last_left + right) / 2
        at = bisect_right(lefts, start) - 1
        if at < 0 or not start <= end <= parts[at].right + 1:
            return _letters_by_part(parts, letters)
        shown = text if text.isascii() and text.isprintable() else shaped(clean(text))
        if shown:
            found[at].append(Part(left, right, shown, line))
    return found


def _letters_by_part(parts: Sequence[Part], letters: Letters) -> list[list[Part]] | None:
    """The same for a line that has a word in two parts, or in none."""
    line = parts[0].line
    found: list[list[Part]] = [[] for _ in parts]
    held: list[list[tuple[str, float, float]]] = [[] for _ in parts]
    for letter, (left, _, right, _) in (*letters.letters(line), (" ", (0.0, 0.0, 0.0, 0.0))):
        if not letter.isspace():
            at = _part_at((left + right) / 2, parts)
            if at is not None:
                held[at].append((letter, left, right))
            elif letter.isprintable():
                return None
            continue
        for words, word in zip(found, held, strict=True):
            if text := shaped(clean(joined(each for each, _, _ in word))):
                words.append(Part(word[0][1], word[-1][2], text, line))
            word.clear()
    return found


def _part_at(x: float, parts: Sequence[Part]) -> int | None:
    return next((at for at, part in enumerate(parts) if part.left - 1 <= x <= part.right + 1), None)
