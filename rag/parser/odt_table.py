"""Tables of an OpenDocument text: rows, spans and header rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from lxml import etree

from rag.parser.blocks import Block, Cell
from rag.parser.grid import MAX_SPAN, one_line, table_block
from rag.parser.odt_inline import Inline
from rag.parser.odt_package import count, q

_ROW = q("table:table-row")
_CELL = q("table:table-cell")
_HEADER = q("table:table-header-rows")
_AROUND = (q("table:table-rows"), q("table:table-row-group"), q("text:soft-page-break"))

# Gives the text of a cell, and adds what hangs on it to the list.
Written = Callable[[etree._Element, list[Inline]], str]


class FoundTable(NamedTuple):
    """`only_cell` is set instead of `block` for a table of one cell, which is a frame around other content."""

    block: Block | None
    inlines: list[Inline]
    only_cell: etree._Element | None = None


def read_table(table: etree._Element, written: Written) -> FoundTable:
    rows = list(_rows(table, in_header=False))
    if len(rows) == 1 and len(cells := rows[0][0].findall(_CELL)) == 1:
        return FoundTable(None, [], cells[0])
    inlines: list[Inline] = []
    filled: list[list[Cell]] = []
    headers = 0
    for row, in_header in rows:
        headers += in_header
        filled.append([_read_cell(cell, written, inlines) for cell in row.findall(_CELL)])
    return FoundTable(table_block(filled, headers or 1), inlines)


def _rows(table: etree._Element, *, in_header: bool) -> Iterator[tuple[etree._Element, bool]]:
    for child in table:
        if child.tag == _ROW:
            yield child, in_header
        elif child.tag == _HEADER:
            yield from _rows(child, in_header=True)
        elif child.tag in _AROUND:
            yield from _rows(child, in_header=in_header)


def _read_cell(cell: etree._Element, written: Written, inlines: list[Inline]) -> Cell:
    return Cell(
        one_line(written(cell, inlines)),
        count(cell, "table:number-columns-spanned", 1, MAX_SPAN, 1),
        count(cell, "table:number-rows-spanned", 1, MAX_SPAN, 1),
    )
