"""Cells of two lines in tables without rules whose other cells stand in the middle of the row's height, as browsers
print them: half a line above the others' one line, and half a line below it."""

from __future__ import annotations

from collections.abc import Sequence

from rag.parser.row_parts import Row
from rag.parser.wrapped_rows import Cells

# In sizes of the type, from a cell's line to that of the others: lines of different rows are further apart.
_MAX_STEP = 0.85
# By how much, in sizes of the type, the two lines may stand off from the middle, as one of them may be set smaller.
_MAX_OFF = 0.3


def with_centred_cells(run: Sequence[Row], cells: Sequence[Cells]) -> tuple[list[Row], list[Cells]]:
    """The rows and their cells, with three lines that are one row as one."""
    rows: list[Row] = []
    joined: list[Cells] = []
    at = 0
    while at < len(run):
        if at + 2 < len(run) and _is_one_row(run[at : at + 3], cells[at : at + 3]):
            rows.append(_one(run[at : at + 3]))
            joined.append({**cells[at + 1], **{n: [*words, *cells[at + 2][n]] for n, words in cells[at].items()}})
            at += 3
        else:
            rows.append(run[at])
            joined.append(cells[at])
            at += 1
    return rows, joined


def _is_one_row(run: Sequence[Row], cells: Sequence[Cells]) -> bool:
    """Whether the first and the last have the same cells, which the middle one leaves free, and stand close to it."""
    above, middle, below = run
    if cells[0].keys() != cells[2].keys() or cells[0].keys() & cells[1].keys() or len(cells[1]) < 2:
        return False
    size = max(middle.size, 1.0)
    before, behind = middle.base - above.base, below.base - middle.base
    return max(before, behind) <= _MAX_STEP * size and abs(before - behind) <= _MAX_OFF * size


def _one(run: Sequence[Row]) -> Row:
    """The middle row with the lines of all."""
    middle = Row(run[1].lines[0])
    for line in (*run[1].lines[1:], *run[0].lines, *run[2].lines):
        middle.add(line)
    return middle
