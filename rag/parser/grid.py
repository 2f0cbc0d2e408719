"""Builds the table of a block from cells as a document lists them, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rag.parser.blocks import Block, BlockKind, Cell, Table

MAX_SPAN = 1000


def one_line(text: str) -> str:
    """The text of a cell: tabs and line ends part cells and rows, so a cell has none."""
    return " ".join(text.split())


def table_block(rows: Sequence[Iterable[Cell]], header_rows: int, page: int = 1) -> Block | None:
    """A table of these rows, whose header is stretched over what its cells span; None for one without text."""
    cells = tuple(tuple(row) for row in rows)
    if not any(cell.text for row in cells for cell in row):
        return None
    if len(cells) == 1:
        header_rows = 0
    elif header_rows:
        reach = max(index + cell.rows for index, row in enumerate(cells[:header_rows]) for cell in (*row, Cell("")))
        header_rows = reach if reach < len(cells) else min(header_rows, len(cells) - 1)
    text = "\n".join("\t".join(cell.text for cell in row) for row in cells)
    return Block(kind=BlockKind.TABLE, text=text, page=page, table=Table(rows=cells, header_rows=header_rows))
