"""The grids that rules draw on a page: where the cells of ruled tables are, and which of them are joined."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import NamedTuple

from rag.parser.layout import Line
from rag.parser.pdf_objects import Rule

# Points: lines nearer to each other than this are one, and ends that miss a crossing by less still meet it.
_NEAR = 3.0
_MAX_LINES = 2_000
_MAX_SLOTS = 20_000
# Lines of text in one row between rules, and how many cells of each have text: then each line is a row.
_MIN_LINES = 3
_MIN_FILLED = 0.9


class GridCell(NamedTuple):
    row: int
    column: int
    rows: int
    columns: int


class Grid:
    """The edges of rows and columns from the top left, and the cells between them."""

    def __init__(self, columns: Sequence[float], rows: Sequence[float], cells: Sequence[GridCell]) -> None:
        self.columns, self.rows, self.cells = list(columns), list(rows), list(cells)
        self._owner: dict[tuple[int, int], int] = {}
        for number, (row, column, high, wide) in enumerate(self.cells):
            if high == wide == 1:
                self._owner[row, column] = number
            else:
                self._owner.update(dict.fromkeys(product(range(row, row + high), range(column, column + wide)), number))

    @property
    def box(self) -> tuple[float, float, float, float]:
        return self.columns[0], self.rows[0], self.columns[-1], self.rows[-1]

    def row_at(self, y: float) -> int:
        return bisect_right(self.rows, y) - 1

    def cell_at(self, x: float, row: int) -> int | None:
        """The number of the cell at a place in a row; None outside of the grid."""
        return self._owner.get((row, bisect_right(self.columns, x) - 1))


def find_grids(across: Sequence[Rule], down: Sequence[Rule]) -> Iterator[Grid]:
    """Each group of rules that cross, with at least two rows and two columns between them."""
    level, upright = _merged(across), _merged(down)
    if len(level) < 2 or len(upright) < 2 or len(level) + len(upright) > _MAX_LINES:
        return
    for rules_across, rules_down in _groups(level, upright):
        grid = _grid(rules_across, rules_down)
        if grid is not None:
            yield grid


def with_rows_of_lines(grid: Grid, lines: Sequence[Line]) -> Grid:
    """The grid with the rows that have no rules between them, where every cell has text at the same heights."""
    if any(cell.rows > 1 for cell in grid.cells):
        return grid
    rows = list(grid.rows)
    for top, bottom in pairwise(grid.rows):
        rows += _line_edges(grid, top, bottom, lines)
    if len(rows) == len(grid.rows):
        return grid
    rows.sort()
    cells = [
        GridCell(at, cell.column, 1, cell.columns)
        for at, top in enumerate(rows[:-1])
        for cell in grid.cells
        if grid.rows[cell.row] <= top < grid.rows[cell.row + 1]
    ]
    return Grid(grid.columns, rows, cells)


def _line_edges(grid: Grid, top: float, bottom: float, lines: Sequence[Line]) -> list[float]:
    """The heights between the lines of a row; none if they are lines of the same cells."""
    left, _, right, _ = grid.box
    inside = [line for line in lines if top < line.base < bottom and line.left < right and line.right > left]
    if len(inside) < _MIN_LINES:
        return []
    bases: list[Line] = []
    for line in sorted(inside, key=lambda each: each.base):
        if not bases or line.base - bases[-1].base > 0.4 * max(line.size, 1.0):
            bases.append(line)
    columns = len(grid.columns) - 1
    texts = sum(max(1, sum(line.left < start < line.right for start in grid.columns) + 1) for line in inside)
    if len(bases) < _MIN_LINES or texts < _MIN_FILLED * columns * len(bases):
        return []
    return [(above.bottom + below.top) / 2 for above, below in pairwise(bases)]


def _merged(rules: Sequence[Rule]) -> list[Rule]:
    """Rules along the same line that touch are one rule."""
    merged: list[list[float]] = []
    # Cells that are drawn one by one have each side twice.
    for at, start, end in sorted(set(rules)):
        for other in reversed(merged):
            if at - other[0] > _NEAR / 2:
                merged.append([at, start, end])
                break
            if start <= other[2] + _NEAR and end >= other[1] - _NEAR:
                if start < other[1]:
                    other[1] = start
                if end > other[2]:
                    other[2] = end
                break
        else:
            merged.append([at, start, end])
    return [(at, start, end) for at, start, end in merged]


def _groups(level: Sequence[Rule], upright: Sequence[Rule]) -> Iterator[tuple[list[Rule], list[Rule]]]:
    parent = list(range(len(level) + len(upright)))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for number, (y, left, right) in enumerate(level):
        for other, (x, top, bottom) in enumerate(upright, start=len(level)):
            if left - _NEAR <= x <= right + _NEAR and top - _NEAR <= y <= bottom + _NEAR:
                parent[root(number)] = root(other)
    groups: dict[int, tuple[list[Rule], list[Rule]]] = {}
    for number, rule in enumerate((*level, *upright)):
        groups.setdefault(root(number), ([], []))[number >= len(level)].append(rule)
    yield from groups.values()


def _grid(across: Sequence[Rule], down: Sequence[Rule]) -> Grid | None:
    rows, columns = _edges(across), _edges(down)
    if len(rows) < 3 or len(columns) < 3 or len(rows) * len(columns) > _MAX_SLOTS:
        return None
    return Grid(columns, rows, list(_cells(rows, columns, across, down)))


def _edges(rules: Sequence[Rule]) -> list[float]:
    edges: list[float] = []
    for at, _, _ in sorted(rules):
        if not edges or at - edges[-1] > _NEAR:
            edges.append(at)
    return edges


def _cells(
    rows: Sequence[float], columns: Sequence[float], across: Sequence[Rule], down: Sequence[Rule]
) -> Iterator[GridCell]:
    """Cells row by row: a slot grows to the right and down where no rule parts it from the next."""
    beside = _walls(down, columns, rows)
    below = _walls(across, rows, columns)
    taken: set[tuple[int, int]] = set()
    last_row, last_column = len(rows) - 2, len(columns) - 2
    for row in range(last_row + 1):
        for column in range(last_column + 1):
            if (row, column) in taken:
                continue
            if (column == last_column or (column + 1, row) in beside) and (
                row == last_row or (row + 1, column) in below
            ):
                yield GridCell(row, column, 1, 1)
                continue
            wide = high = 1
            while column + wide <= last_column and (column + wide, row) not in beside:
                if (row, column + wide) in taken:
                    break
                wide += 1
            while row + high <= last_row and not any(
                (row + high, each) in below for each in range(column, column + wide)
            ):
                high += 1
            taken.update(
                (each_row, each) for each_row in range(row, row + high) for each in range(column, column + wide)
            )
            yield GridCell(row, column, high, wide)


def _walls(rules: Sequence[Rule], edges: Sequence[float], along: Sequence[float]) -> set[tuple[int, int]]:
    """Which edges between two slots have a rule along them: the edge and the slot."""
    middles = [(start + end) / 2 for start, end in pairwise(along)]
    return {
        (max(0, bisect_right(edges, at + _NEAR / 2) - 1), slot)
        for at, start, end in rules
        for slot in range(bisect_left(middles, start), bisect_right(middles, end))
    }
