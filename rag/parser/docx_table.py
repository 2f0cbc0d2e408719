"""Tables of a Word document: rows, merged cells and header rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from lxml import etree

from rag.parser.blocks import Block, Cell
from rag.parser.docx_inline import Inline
from rag.parser.docx_package import is_on, number, q, value
from rag.parser.grid import MAX_SPAN, one_line, table_block

_ROW = q("w:tr")
_CELL = q("w:tc")
_AROUND = tuple(q(f"w:{name}") for name in ("sdt", "sdtContent", "customXml", "ins", "moveTo"))

# Gives the text of a cell, and adds what hangs on it to the list.
Written = Callable[[etree._Element, list[Inline]], str]


class FoundTable(NamedTuple):
    """`only_cell` is set instead of `block` for a table of one cell, which is a frame around other content."""

    block: Block | None
    inlines: list[Inline]
    only_cell: etree._Element | None = None


class _Start:
    """A cell where it starts; cells merged into it make it larger."""

    def __init__(self, text: str, columns: int) -> None:
        self.text = text
        self.columns = columns
        self.rows = 1


def read_table(table: etree._Element, written: Written) -> FoundTable:
    rows = _rows(table)
    cells = [list(_inside(row, _CELL)) for row in rows]
    if len(cells) == 1 and len(cells[0]) == 1:
        return FoundTable(None, [], cells[0][0])
    inlines: list[Inline] = []
    above: dict[int, _Start] = {}
    starts: list[list[_Start]] = []
    for row, members in zip(rows, cells, strict=True):
        started, above = _read_row(row, members, above, written, inlines)
        starts.append(started)
    headers = 0
    while headers < len(rows) and is_on(rows[headers].find(q("w:trPr")), "w:tblHeader"):
        headers += 1
    filled = [[Cell(each.text, each.columns, each.rows) for each in row] for row in starts]
    return FoundTable(table_block(filled, headers or 1), inlines)


def _read_row(
    row: etree._Element, cells: list[etree._Element], above: dict[int, _Start], written: Written, inlines: list[Inline]
) -> tuple[list[_Start], dict[int, _Start]]:
    """The cells that start in this row, and those in it by column: what cells of the next may be merged into."""
    column = number(value(row.find(q("w:trPr")), "w:gridBefore"), 0, MAX_SPAN) or 0
    started = [_Start("", column)] if column else []
    here: dict[int, _Start] = {}
    beside: _Start | None = None
    for cell in cells:
        properties = cell.find(q("w:tcPr"))
        columns = number(value(properties, "w:gridSpan"), 1, MAX_SPAN) or 1
        text = one_line(written(cell, inlines))
        over = above.get(column)
        if value(properties, "w:vMerge") in ("", "continue") and over is not None and over.columns == columns:
            beside = here[column] = over
            over.rows += 1
            over.text = f"{over.text} {text}".strip()
        elif value(properties, "w:hMerge") in ("", "continue") and beside is not None:
            beside.columns += columns
            beside.text = f"{beside.text} {text}".strip()
        else:
            beside = here[column] = _Start(text, columns)
            started.append(beside)
        column += columns
    return started, here


def cells_by_row(table: etree._Element) -> Iterator[Iterator[etree._Element]]:
    return (_inside(row, _CELL) for row in _rows(table))


def _rows(table: etree._Element) -> list[etree._Element]:
    return [row for row in _inside(table, _ROW) if not _is_deleted(row)]


def _inside(element: etree._Element, tag: str) -> Iterator[etree._Element]:
    for child in element:
        if child.tag == tag:
            yield child
        elif child.tag in _AROUND:
            yield from _inside(child, tag)


def _is_deleted(row: etree._Element) -> bool:
    properties = row.find(q("w:trPr"))
    return properties is not None and properties.find(q("w:del")) is not None
