"""Runs of rows on a page that may be a table: rows of several parts that stand below each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter

from rag.parser.layout import Line
from rag.parser.pdf_tables import Letters
from rag.parser.row_parts import Row

# Of two parts or more, that stand below each other.
MIN_ROWS = 3
_MAX_LINES = 3_000
# Steps from row to row of a run, in sizes of its type.
_MAX_STEP = 3.2
# Points that the left edges of lines of a cell may differ by.
_NEAR = 3.0
_MAX_CELL_LINES = 12
# Of type, against that of the rows above.
_LARGER = 1.12
_NUMBERED = re.compile(r"(?:\d+(?:\.\d+)*|[A-Z]|[IVX]+)\.?(?:\s|$)")

_base, _size = attrgetter("base"), attrgetter("size")


def find_runs(rows: Sequence[Row], letters: Letters | None = None) -> Iterator[list[Row]]:
    """Rows below each other of two parts or more, with the ends of cells that take another line."""
    if len([row for row in rows if row.count > 1]) < MIN_ROWS - 1:
        return
    run: list[Row] = []
    above: Row | None = None
    before: Row | None = None
    for row in rows:
        follows = bool(run) and _is_next(run[-1], row) and not _is_heading(run, row)
        if follows and row.count == 1 and letters is not None and row.part(letters) and not _is_under(run[-1], row):
            row.join()
        if not (follows and (row.count > 1 or _goes_on(run, row))):
            if _is_long_enough(run):
                yield _with_header(before, run, letters)
            run, before = [], above
        if row.count > 1 or run:
            run.append(row)
        above = row
    if _is_long_enough(run):
        yield _with_header(before, run, letters)


def _is_next(above: Row, row: Row) -> bool:
    return row.base - above.base <= _MAX_STEP * max(row.size, 1.0)


def _is_heading(run: Sequence[Row], row: Row) -> bool:
    """Whether a row is rather a title with its number, in larger type."""
    if row.count > 2 or row.size <= _LARGER * run[-1].size or row.size <= _LARGER * max(run[-2:], key=_size).size:
        return False
    return _NUMBERED.match(row.parts[0].text) is not None


def _is_under(above: Row, row: Row) -> bool:
    """Whether the parts stand under those above them: each shares an edge, or the middle, with one of these."""
    return above.count > 1 and all(
        any(
            min(abs(part.left - other.left), abs(part.right - other.right)) <= _NEAR
            or abs(part.left + part.right - other.left - other.right) <= 2 * _NEAR
            for other in above.parts
        )
        for part in row.parts
    )


def _with_header(above: Row | None, run: list[Row], letters: Letters | None) -> list[Row]:
    """The run with the row above it, if that turns out to have as many parts as its first."""
    first = run[0]
    if above is None or letters is None or above.count > 1 or not _is_next(above, first) or not above.part(letters):
        return run
    return [above, *run] if above.count == first.count else run


def may_have_rows(lines: Sequence[Line]) -> bool:
    """Whether enough lines stand beside each other at all: most pages end here."""
    if len(lines) > _MAX_LINES:
        return False
    if len([line for line in lines if line.spans]) >= MIN_ROWS - 1:
        return True
    bases = [line.base for line in lines]
    if len([one for one, other in pairwise(bases) if -1 < one - other < 1]) >= MIN_ROWS - 1:
        return True
    return len(set(map(round, bases))) <= len(lines) - MIN_ROWS


def to_rows(lines: Sequence[Line]) -> list[Row]:
    """From top to bottom."""
    rows: list[Row] = []
    for line in sorted(lines, key=_base):
        if rows and line.base - rows[-1].base < 0.35 * max(line.size, 1.0):
            rows[-1].add(line)
        else:
            rows.append(Row(line))
    return rows


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
