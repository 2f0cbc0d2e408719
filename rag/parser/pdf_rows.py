"""Rows of a page: lines that stand beside each other, in parts with wide gaps between them, and these in words."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest
from operator import attrgetter, itemgetter
from typing import NamedTuple

from rag.parser.layout import Line
from rag.parser.pdf_letters import shaped
from rag.parser.pdf_places import joined
from rag.parser.pdf_tables import Letters
from rag.parser.text import clean

# Of two parts or more, that stand below each other.
MIN_ROWS = 3
_MAX_LINES = 3_000
# Steps from row to row of a run, in sizes of its type.
_MAX_STEP = 3.2
# Points that the left edges of lines of a cell may differ by.
_NEAR = 3.0
_MAX_CELL_LINES = 12

_base = attrgetter("base")


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


def find_runs(lines: Sequence[Line]) -> Iterator[list[Row]]:
    """Rows below each other of two parts or more, with the ends of cells that take another line."""
    if len(lines) > _MAX_LINES or not _may_have(lines):
        return
    run: list[Row] = []
    for row in _rows(lines):
        follows = bool(run) and row.base - run[-1].base <= _MAX_STEP * max(row.size, 1.0)
        if not (follows and (row.count > 1 or _goes_on(run, row))):
            if _is_long_enough(run):
                yield run
            run = []
        if row.count > 1 or run:
            run.append(row)
    if _is_long_enough(run):
        yield run


def words_of(row: Row, letters: Letters | None) -> list[Part] | None:
    """The words of a row part by part; a part itself where letters have no places.

    None if a letter stands outside of all parts, as the signs of a formula do that are drawn last."""
    if letters is None:
        return row.parts
    found: list[tuple[float, list[Part]]] = []
    for line in row.lines:
        parts = row.parts if len(row.lines) == 1 else list(_parts(line))
        words = _words_by_part(parts, letters)
        if words is None:
            return None
        found += zip([part.left for part in parts], words, strict=True)
    if len(row.lines) > 1:
        found.sort(key=itemgetter(0))
    return [word for _, words in found for word in words]


def _may_have(lines: Sequence[Line]) -> bool:
    """Whether enough lines stand beside each other at all: most pages end here."""
    if len([line for line in lines if line.spans]) >= MIN_ROWS - 1:
        return True
    bases = [line.base for line in lines]
    if len([one for one, other in pairwise(bases) if -1 < one - other < 1]) >= MIN_ROWS - 1:
        return True
    return len(set(map(round, bases))) <= len(lines) - MIN_ROWS


def _rows(lines: Sequence[Line]) -> list[Row]:
    rows: list[Row] = []
    for line in sorted(lines, key=_base):
        if rows and line.base - rows[-1].base < 0.35 * max(line.size, 1.0):
            rows[-1].add(line)
        else:
            rows.append(Row(line))
    return rows


def _parts(line: Line) -> Iterator[Part]:
    if not line.spans:
        yield Part(line.left, line.right, line.text, line)
        return
    for span, after in zip_longest(line.spans, line.spans[1:]):
        text = line.text[span.start : after.start if after else None].strip()
        yield Part(span.left, span.right, text, line)


def _is_long_enough(run: Sequence[Row]) -> bool:
    return len([row for row in run if row.count > 1]) >= MIN_ROWS


def _goes_on(run: Sequence[Row], row: Row) -> bool:
    """Whether a lone part is the next line of a cell above it: in a later column, and close."""
    if row.base - run[-1].base > 2 * max(row.size, 1.0):
        return False
    left = row.parts[0].left
    # As many lines above as a cell may have.
    several = next((above for above in reversed(run[-_MAX_CELL_LINES:]) if above.count > 1), run[-1])
    return any(abs(left - other.left) <= _NEAR for other in several.parts[1:])


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
