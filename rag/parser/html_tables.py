"""A table of an HTML page while it is read: its cells, or, where it only lays out the page, what is in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rag.parser.blocks import Block, BlockKind, Cell
from rag.parser.grid import MAX_SPAN, one_line, table_block

# A table of more than this comes in parts, each under the same header.
MAX_CELLS = 10_000
_LAYOUT_ROLES = ("presentation", "none")


@dataclass
class _OpenCell:
    columns: int
    rows: int
    is_header: bool
    blocks: list[Block] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(one for block in self.blocks if (one := one_line(block.text)))


@dataclass
class _Row:
    in_head: bool
    cells: list[_OpenCell] = field(default_factory=list)

    @property
    def names_columns(self) -> bool:
        written = [cell for cell in self.cells if cell.blocks]
        return self.in_head or (bool(written) and all(cell.is_header for cell in written))


class TableFrame:
    """Rows and cells as their tags come; `sink` is where the blocks of the open cell go."""

    def __init__(self, attributes: Mapping[str, str]) -> None:
        self.is_layout = attributes.get("role", "") in _LAYOUT_ROLES
        self._in_head = False
        self._rows: list[_Row] = []
        self._header: list[_Row] = []
        self._is_first_part = True
        self._cells = 0
        self._cell: _OpenCell | None = None
        self._beside: list[Block] = []

    @property
    def sink(self) -> list[Block]:
        return self._beside if self._cell is None else self._cell.blocks

    @property
    def is_full(self) -> bool:
        return self._cells >= MAX_CELLS

    def open_head(self, is_open: bool) -> None:
        self._in_head = is_open

    def open_row(self) -> None:
        self.close_cell()
        self._rows.append(_Row(self._in_head))

    def open_cell(self, attributes: Mapping[str, str], is_header: bool) -> None:
        if not self._rows:
            self.open_row()
        self._cell = _OpenCell(_span(attributes.get("colspan", "")), _span(attributes.get("rowspan", "")), is_header)
        self._rows[-1].cells.append(self._cell)
        self._cells += 1

    def close_cell(self) -> None:
        self._cell = None

    def take(self) -> Iterator[Block]:
        """The blocks of the rows so far; the table goes on empty, under the same header."""
        yield from self._beside
        rows = [row for row in self._rows if row.cells]
        first, self._is_first_part = self._is_first_part, False
        if first:
            self._header = _leading(rows)
        self._beside, self._rows, self._cells = [], [], 0
        if self.is_layout or (first and _holds_one_thing(rows)):
            for row in rows:
                for cell in row.cells:
                    yield from cell.blocks
        elif rows:
            above = [] if first else self._header
            block = table_block([_cells(row, left) for row, left in _with_left(above + rows)], len(self._header))
            if block is not None:
                yield block


def _holds_one_thing(rows: list[_Row]) -> bool:
    """One cell around everything, or a listing beside its line numbers: no table but a frame."""
    cells = [cell for row in rows for cell in row.cells]
    return len(cells) == 1 or any(
        block.kind is BlockKind.CODE and "\n" in block.text for cell in cells for block in cell.blocks
    )


def _leading(rows: list[_Row]) -> list[_Row]:
    header: list[_Row] = []
    for row in rows:
        if not row.names_columns:
            break
        header.append(row)
    return header if len(header) < len(rows) else header[:1]


def _with_left(rows: list[_Row]) -> Iterator[tuple[_Row, int]]:
    """The rows that are not blank, each with how many are left from it on. Blank ones count where cells span rows."""
    if all(cell.rows == 1 for row in rows for cell in row.cells):
        rows = [row for row in rows if any(cell.text for cell in row.cells)]
    for index, row in enumerate(rows):
        yield row, len(rows) - index


def _cells(row: _Row, rows_left: int) -> list[Cell]:
    return [Cell(text=cell.text, columns=cell.columns, rows=min(cell.rows, rows_left)) for cell in row.cells]


def _span(said: str) -> int:
    """0 is for "to the end"; what is no number is 1."""
    said = said.strip()
    if not said.isascii() or not said.isdigit():
        return 1
    return min(int(said[:5]) or MAX_SPAN, MAX_SPAN)
