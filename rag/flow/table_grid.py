"""Where the cells of a table stand, and the HTML of some of its rows: a span that is cut goes on in each part."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import NamedTuple

from rag.parser.blocks import Cell, Table

MAX_COLUMNS = 4096
_MAX_SPAN = 1000
# Spans beyond these many at once are no table that anybody reads; they are taken for plain cells.
_MAX_OPEN_SPANS = 100
_MARKUP = re.compile("[&<>]")


class Placed(NamedTuple):
    """A cell, and the rows that it covers: `top` up to but without `bottom`."""

    top: int
    bottom: int
    column: int
    columns: int
    text: str


class Grid:
    def __init__(self, table: Table) -> None:
        self._header = min(table.header_rows, len(table.rows))
        self._starting: list[list[Placed]] = []
        self._carried: dict[int, list[Placed]] = {}
        open_spans: list[Placed] = []
        for top, cells in enumerate(table.rows):
            open_spans = [span for span in open_spans if span.bottom > top]
            if open_spans:
                self._carried[top] = open_spans
            end = self._header if top < self._header else len(table.rows)
            placed = _place(cells, top, end, open_spans)
            self._starting.append(placed)
            if tall := [cell for cell in placed if cell.bottom > top + 1]:
                open_spans = [*open_spans, *tall][:_MAX_OPEN_SPANS]

    def __len__(self) -> int:
        return len(self._starting)

    def starting(self, row: int) -> Sequence[Placed]:
        return self._starting[row]

    def covering(self, row: int) -> list[Placed]:
        """The cells that start in the row or reach into it, from left to right."""
        carried = self._carried.get(row, ())
        return sorted([*carried, *self._starting[row]], key=lambda cell: cell.column)

    def names(self) -> dict[int, str]:
        """What the header says above each column."""
        found: dict[int, str] = {}
        for row in range(self._header):
            for cell in self._starting[row]:
                for column in range(cell.column, min(cell.column + cell.columns, MAX_COLUMNS)):
                    above = found.get(column, "")
                    text = cell.text.strip()
                    found[column] = f"{above} / {text}" if above and text else above or text
        return found

    def markup(self, first: int, end: int, caption: str = "", header: int = 0) -> str:
        """The rows from `first` up to `end` below the first `header` ones."""
        rows = [self.row_markup(row, 0, header) for row in range(header)]
        rows += [self.row_markup(row, first, end) for row in range(first, end)]
        label = f"<caption>{_escape(caption)}</caption>" if caption else ""
        return f"<table>{label}{''.join(rows)}</table>"

    def row_markup(self, row: int, first: int | None = None, end: int | None = None) -> str:
        """One row of a part that goes from `first` up to `end`; of the whole table if these are left out."""
        first = 0 if first is None else first
        end = len(self) if end is None else end
        cells = self.covering(row) if row == first and row in self._carried else self._starting[row]
        tag = "th" if row < self._header else "td"
        return f"<tr>{''.join([_cell(cell, tag, min(cell.bottom, end) - row) for cell in cells])}</tr>"


def _place(cells: Sequence[Cell], top: int, end: int, open_spans: Sequence[Placed]) -> list[Placed]:
    """The row's cells in the columns that spans from above leave free."""
    placed: list[Placed] = []
    if not open_spans and not [cell for cell in cells if cell.columns != 1 or cell.rows != 1]:
        return [Placed(top, top + 1, column, 1, cell.text) for column, cell in enumerate(cells)]
    taken = sorted((span.column, span.column + span.columns) for span in open_spans)
    column = 0
    for cell in cells:
        while taken and taken[0][0] <= column:
            column = max(column, taken.pop(0)[1])
        columns = max(1, min(cell.columns, _MAX_SPAN))
        bottom = min(end, top + max(1, min(cell.rows, _MAX_SPAN)))
        placed.append(Placed(top, max(bottom, top + 1), column, columns, cell.text))
        column += columns
    return placed


def _cell(cell: Placed, tag: str, rows: int) -> str:
    text = _escape(cell.text.strip())
    if cell.columns == 1 and rows <= 1:
        return f"<{tag}>{text}</{tag}>"
    columns = f' colspan="{cell.columns}"' if cell.columns > 1 else ""
    spanned = f' rowspan="{rows}"' if rows > 1 else ""
    return f"<{tag}{columns}{spanned}>{text}</{tag}>"


def _escape(text: str) -> str:
    return html.escape(text, quote=False) if _MARKUP.search(text) else text
