"""What tables of rows have in common, be they of a CSV file or a sheet: is the first row a header, and how a
row becomes blocks. Reading the rows is left to the module of the file's kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag.parser.blocks import Block, BlockKind, Cell, Table

MAX_COLUMNS = 1000
MAX_NAME = 100

_BLANK = Cell("")


def is_header(first: Sequence[str], second: Sequence[str]) -> bool:
    """Names are words, each once; a first row with a number among its cells is data."""
    names = [cell.strip() for cell in first if cell.strip()]
    return (
        bool(names)
        and len(set(names)) == len(names)
        and not any(_is_number(name) for name in names)
        and len(first) <= max(len(second), 1) + 1
    )


def column_names(header: Sequence[str]) -> tuple[str, ...]:
    return tuple(" ".join(cell.split())[:MAX_NAME] for cell in header[:MAX_COLUMNS])


class RowBlocks:
    """Makes the blocks of rows that have these columns; without names, the columns are numbered."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._columns = columns
        self._header = tuple(Cell(name) if name else _BLANK for name in columns)

    def blocks(self, cells: Sequence[str], number: int) -> Iterator[Block]:
        """One block, or for a row of very many cells one per MAX_COLUMNS of them."""
        for start in range(0, len(cells), MAX_COLUMNS):
            values = [" ".join(cell.split()) for cell in cells[start : start + MAX_COLUMNS]]
            if any(values):
                text = self._text(values, start)
                yield Block(kind=BlockKind.TABLE, text=text, page=number, table=self._table(values, start))

    def _text(self, values: list[str], start: int) -> str:
        return "; ".join(f"{self._name(start + offset)}: {value}" for offset, value in enumerate(values) if value)

    def _name(self, position: int) -> str:
        named = position < len(self._columns) and self._columns[position]
        return named or f"column {position + 1}"

    def _table(self, values: list[str], start: int) -> Table:
        row = tuple(Cell(value) if value else _BLANK for value in values)
        if start or not self._header:
            return Table(rows=(row,))
        header = self._header
        if len(row) < len(header):
            row += (_BLANK,) * (len(header) - len(row))
        elif len(header) < len(row):
            header += (_BLANK,) * (len(row) - len(header))
        return Table(rows=(header, row), header_rows=1)


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", ".").rstrip("%"))
    except ValueError:
        return False
    return True
