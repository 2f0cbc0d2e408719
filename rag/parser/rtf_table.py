"""Rows of an RTF table, whose cells are told by where their right edges stand."""

from __future__ import annotations

from dataclasses import dataclass, field

from rag.parser.blocks import Block, Cell
from rag.parser.grid import MAX_SPAN, one_line, table_block

# In twentieths of a point: edges that are nearer than this are one.
_SAME_EDGE = 40


@dataclass
class Row:
    """`edges`, and the cells merged into the one beside or above, are as the row defines them, cell by cell."""

    cells: list[str] = field(default_factory=list)
    edges: list[int] = field(default_factory=list)
    into_left: set[int] = field(default_factory=set)
    into_above: set[int] = field(default_factory=set)
    is_header: bool = False

    def define(self, word: str, number: int) -> bool:
        """Take a word that defines the row; False if it is none."""
        if word == "cellx":
            if len(self.edges) < MAX_SPAN:
                self.edges.append(number)
        elif word == "clmrg":
            self.into_left.add(len(self.edges))
        elif word == "clvmrg":
            self.into_above.add(len(self.edges))
        elif word == "trhdr":
            self.is_header = True
        else:
            return False
        return True


class _Start:
    def __init__(self, text: str, columns: int) -> None:
        self.text = text
        self.columns = columns
        self.rows = 1


def to_block(rows: list[Row]) -> Block | None:
    columns = _columns({edge for row in rows for edge in row.edges})
    starts: list[list[_Start]] = []
    above: dict[int, _Start] = {}
    for row in rows:
        started, above = _place(row, columns, above)
        starts.append(started)
    headers = 0
    while headers < len(rows) and rows[headers].is_header:
        headers += 1
    cells = [[Cell(each.text, each.columns, each.rows) for each in row] for row in starts]
    return table_block(cells, headers or 1)


def _columns(edges: set[int]) -> dict[int, int]:
    """How many columns end at or left of each edge."""
    numbered: dict[int, int] = {}
    last: int | None = None
    for edge in sorted(edges):
        numbered[edge] = 1 if last is None else numbered[last] + (edge - last > _SAME_EDGE)
        last = edge
    return numbered


def _place(row: Row, columns: dict[int, int], above: dict[int, _Start]) -> tuple[list[_Start], dict[int, _Start]]:
    started: list[_Start] = []
    here: dict[int, _Start] = {}
    column = 0
    for index, text in enumerate(one_line(cell) for cell in row.cells):
        end = columns[row.edges[index]] if index < len(row.edges) else column + 1
        width = max(1, min(end - column, MAX_SPAN))
        over = above.get(column)
        if index in row.into_left and started:
            started[-1].columns += width
            started[-1].text = f"{started[-1].text} {text}".strip()
        elif index in row.into_above and over is not None and over.columns == width:
            here[column] = over
            over.rows += 1
            over.text = f"{over.text} {text}".strip()
        else:
            here[column] = _Start(text, width)
            started.append(here[column])
        column += width
    return started, here
