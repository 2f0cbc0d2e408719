"""Tables without rules on a page: over its whole width, or within one of its columns.

What of the rows is a table is told by aligned_cells."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rag.parser.aligned_cells import table_of
from rag.parser.formulas import with_formulas
from rag.parser.layout import MAX_PAGE, Line, find_gutters, split_at
from rag.parser.pdf_rows import MIN_ROWS, find_runs, may_have_rows, parts_of, to_rows
from rag.parser.pdf_tables import FoundTable, Letters
from rag.parser.row_parts import Row, WordsWithin

# Words in a line of a column of prose, at the mean.
_MIN_LINE_WORDS = 5.0
# Of the rows of a page of two columns, those that have text in both.
_MOSTLY = 0.4


def find_aligned(lines: tuple[Line, ...], page: int, letters: Letters | None = None) -> Iterator[FoundTable]:
    """The tables among the lines of a page, each with the lines that are left besides it: first those that go over its
    whole width, then those within its columns."""
    if not may_have_rows(lines):
        return
    left = with_formulas(lines)
    rows = to_rows(left)
    # Most pages have neither many rows of two parts nor a few of more, and so no text beside a table.
    several = [row.count for row in rows if row.count > 1]
    may_be_beside = len(several) > _MOSTLY * len(rows) or len([count for count in several if count > 2]) >= MIN_ROWS - 1
    tables = list(_tables(rows, page, letters))
    gutters: tuple[float, ...] = ()
    if may_be_beside:
        gutters = find_gutters(_without(left, [row for run, _ in tables for row in run]) if tables else left)
    for run, found in tables:
        if not (gutters and _has_prose(run, gutters)):
            left = _without(left, run)
            yield FoundTable(found, left)
    if gutters and _may_be_within_columns(left, gutters):
        yield from _within_columns(left, gutters, page, letters)


def _tables(rows: Sequence[Row], page: int, letters: Letters | None) -> Iterator[tuple[list[Row], Line]]:
    for run in find_runs(rows, letters):
        found = table_of(run, page, letters)
        if found is not None:
            yield run, found
            continue
        for part in parts_of(run):
            found = table_of(part, page, letters)
            if found is not None:
                yield part, found


def _has_prose(run: Sequence[Row], gutters: Sequence[float]) -> bool:
    """Whether the rows have lines of prose in one column of the page, and cells of a table in another."""
    for start, end in pairwise((0.0, *gutters, MAX_PAGE)):
        parts = [[part for part in row.parts if start <= part.left and part.right <= end] for row in run]
        if all(len(own) == 1 for own in parts):
            words = sum([len(own[0].text.split()) for own in parts])
            if words >= _MIN_LINE_WORDS * len(parts):
                return True
    return False


def _may_be_within_columns(lines: Sequence[Line], gutters: Sequence[float]) -> bool:
    """Whether a few lines have more stretches than the columns they go over: prose has not."""
    rows = [
        line
        for line in lines
        if len(line.spans) > 1 + bisect_left(gutters, line.right) - bisect_right(gutters, line.left)
    ]
    return len(rows) >= MIN_ROWS - 1


def _within_columns(
    lines: Sequence[Line], gutters: Sequence[float], page: int, letters: Letters | None
) -> Iterator[FoundTable]:
    """The tables that stand in one column of several. A line that goes over two is parted only if it has to be."""
    left = [(line, split_at(line, gutters)) for line in lines]
    for start, end in pairwise((0.0, *gutters, MAX_PAGE)):
        column = [part for _, parts in left for part in parts if start <= part.left and part.right <= end]
        words = WordsWithin(letters, start, end) if letters is not None else None
        for run, found in _tables(to_rows(column), page, words):
            left = list(_besides(left, run))
            yield FoundTable(found, tuple([line for line, _ in left]))


_Parted = tuple[Line, Sequence[Line]]


def _besides(lines: Sequence[_Parted], run: Sequence[Row]) -> Iterator[_Parted]:
    used = {id(line) for row in run for line in row.lines}
    for line, parts in lines:
        rest = [part for part in parts if id(part) not in used]
        if len(rest) == len(parts):
            yield line, parts
        else:
            yield from ((part, (part,)) for part in rest)


def _without(lines: Sequence[Line], run: Sequence[Row]) -> tuple[Line, ...]:
    used = {id(line) for row in run for line in row.lines}
    return tuple([line for line in lines if id(line) not in used])
