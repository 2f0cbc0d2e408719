"""Tables as HTML: whole, or in parts of at most so many tokens that repeat the header; and back to plain text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from rag.flow.packing import even_groups
from rag.flow.table_grid import Grid
from rag.flow.tokens import Scale
from rag.parser.blocks import Box, Table

# With less room than this, the tags would leave none for the text.
_LEAST_TOKENS = 64
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_CELL_END = re.compile(r"</t[hd]>(?!</tr>)")
_ROW_END = re.compile(r"</(?:tr|caption)>(?!</table>)")
_TAG = re.compile(r"</?(?:table|caption|tr|th|td)(?: (?:col|row)span=\"\d+\"){0,2}>")


class TablePart(NamedTuple):
    """Some of a table's rows: markup, or plain text where a row is too large for it."""

    text: str
    tokens: int
    first_row: int
    boxes: tuple[Box, ...] = ()
    is_drawn: bool = False


def plain_text(text: str) -> str:
    """A chunk's text with the tables in it as words: cells parted by tabs, rows by line ends."""
    return _TABLE.sub(lambda found: _words(found[0]), text) if "<table>" in text else text


def row_values(table: Table) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """Below the header, each row's number and its values with their column's name; a span gives all it covers.

    A header with nothing below it is taken for rows."""
    header_rows = table.header_rows if table.header_rows < len(table.rows) else 0
    grid = Grid(Table(table.rows, header_rows))
    names = grid.names()
    for row in range(header_rows, len(grid)):
        yield row, [(names.get(cell.column, ""), cell.text) for cell in grid.covering(row)]


def table_parts(table: Table, caption: str, limit: int, scale: Scale) -> list[TablePart]:
    """The table in one part, or in as many as the limit asks for. Nothing in it is lost."""
    grid = Grid(table)
    whole = grid.markup(0, len(grid), caption)
    (tokens,) = scale.weigh([whole])
    if tokens <= limit:
        return [TablePart(whole, tokens, 0, table.places)]
    return list(_Splitter(table, grid, limit, scale).parts(caption))


class _Splitter:
    def __init__(self, table: Table, grid: Grid, limit: int, scale: Scale) -> None:
        self._table, self._grid, self._limit, self._scale = table, grid, limit, scale

    def parts(self, caption: str) -> Iterator[TablePart]:
        header = min(self._table.header_rows, len(self._grid))
        head = self._weigh(self._grid.markup(0, header, caption))
        # What takes half of every part is given once: the caption as text, the header like any row.
        if head > self._limit // 2 or header == len(self._grid) or self._limit < _LEAST_TOKENS:
            for text, tokens in self._scale.divide(caption, self._limit) if caption else ():
                yield TablePart(text, tokens, 0)
            caption, header, head = "", 0, self._weigh("<table></table>")
        if self._limit < _LEAST_TOKENS:
            for row in range(len(self._grid)):
                yield from self._as_text(row)
            return
        weights = self._scale.weigh([self._grid.row_markup(row) for row in range(header, len(self._grid))])
        drawn = False
        for first, end in even_groups(weights, max(1, self._limit - head)):
            for part in self._fitting(first + header, end + header, caption, header):
                drawn = drawn or part.is_drawn
                yield part
        if not drawn and (caption or header):
            yield TablePart(self._grid.markup(0, header, caption), head, 0, self._table.places[:header])

    def _fitting(self, first: int, end: int, caption: str, header: int) -> Iterator[TablePart]:
        """These rows; halved while they are too large, which spans that go on in each part can make them."""
        text = self._grid.markup(first, end, caption, header)
        tokens = self._weigh(text)
        if tokens <= self._limit:
            yield TablePart(text, tokens, first, self._table.places[first:end], is_drawn=True)
        elif end - first > 1:
            middle = (first + end) // 2
            yield from self._fitting(first, middle, caption, header)
            yield from self._fitting(middle, end, caption, header)
        else:
            yield from self._as_text(first)

    def _as_text(self, row: int) -> Iterator[TablePart]:
        names = self._grid.names() if row >= self._table.header_rows else {}
        lines = []
        for cell in self._grid.starting(row):
            name = names.get(cell.column, "")
            lines.append(f"{name}: {cell.text}" if name and cell.text.strip() else cell.text)
        for text, tokens in self._scale.divide("\n".join(lines), self._limit):
            yield TablePart(text, tokens, row, self._table.places[row : row + 1])

    def _weigh(self, text: str) -> int:
        return self._scale.weigh([text])[0]


def _words(markup: str) -> str:
    rows = _ROW_END.sub("\n", _CELL_END.sub("\t", markup))
    return html.unescape(_TAG.sub("", rows))
