"""Tables of a PDF page: the text of ruled grids cell by cell, and the block of any table that was found."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

from rag.parser.blocks import Block, BlockKind, Box, Cell, PlacedLine, Table
from rag.parser.layout import Line
from rag.parser.line_joins import space_between
from rag.parser.pdf_frame import Rect
from rag.parser.pdf_grid import Grid, with_rows_of_lines
from rag.parser.pdf_letters import shaped
from rag.parser.pdf_places import Word, joined
from rag.parser.text import clean

# Fewer cells with text, or a smaller part of all, and the rules are a form, a chart or an ornament.
_MIN_CELLS = 3
_MIN_FILLED = 0.25
_NUMBER = re.compile(
    r"[-+\u2212(]?[$\u20ac\u00a3\u00a5]?\s?\d[\d\s.,':/%\u2013-]*[)%]?(?:\s?[A-Za-z\u00b0%\u20ac$]{1,4})?$"
)


class Letters(Protocol):
    def letters(self, line: Line) -> Iterator[tuple[str, Rect]]: ...

    def words(self, line: Line) -> list[Word]: ...


class Piece(NamedTuple):
    """Some text of a cell."""

    base: float
    left: float
    text: str
    size: float
    hyphened: bool = False


class FoundTable(NamedTuple):
    """A table in its place, and the lines that are left besides it of those that it was found among."""

    item: Line
    lines: tuple[Line, ...]


def read_grid(grid: Grid, lines: Sequence[Line], letters: Letters, page: int) -> FoundTable | None:
    """The table that stands in a grid; None if hardly anything does."""
    grid = with_rows_of_lines(grid, lines)
    pieces: dict[int, list[Piece]] = defaultdict(list)
    left: list[Line] = []
    bold = set()
    for line in lines:
        if not _touches(grid.box, line):
            left.append(line)
            continue
        numbers = _share_out(grid, line, letters, pieces)
        if not numbers:
            left.append(line)
        elif line.bold:
            bold |= numbers
    if len(pieces) < _MIN_CELLS or len(pieces) < _MIN_FILLED * len(grid.cells):
        return None
    rows: list[list[Cell]] = [[] for _ in grid.rows[1:]]
    is_bold = bool(bold) and all(grid.cells[number].row == 0 for number in bold)
    for number, cell in enumerate(grid.cells):
        rows[cell.row].append(Cell(cell_text(pieces.get(number, [])), cell.columns, cell.rows))
    left_edge, _, right_edge, _ = grid.box
    places = [box_of(page, (left_edge, top, right_edge, bottom)) for top, bottom in pairwise(grid.rows)]
    return FoundTable(to_item(rows, places, grid.box, is_bold=is_bold), tuple(left))


def _touches(box: Rect, line: Line) -> bool:
    middle = (line.top + line.bottom) / 2
    return line.left < box[2] and line.right > box[0] and box[1] <= middle <= box[3]


def _share_out(grid: Grid, line: Line, letters: Letters, pieces: dict[int, list[Piece]]) -> set[int]:
    """Add the line's text to the cells that it stands in; their numbers, none if a part of it stands outside."""
    row = grid.row_at((line.top + line.bottom) / 2)
    start, end = grid.cell_at(line.left + 1, row), grid.cell_at(line.right - 1, row)
    if start is None or end is None:
        return set()
    if start == end or not line.count:
        pieces[start].append(Piece(line.base, line.left, line.text, line.size, line.hyphened))
        return {start}
    found: dict[int, list[str]] = {}
    lefts: dict[int, float] = {}
    last: int | None = None
    for text, left, number in _in_cells(grid, line, row, letters):
        found.setdefault(number, []).append(text)
        lefts.setdefault(number, left)
        last = number
    for number, texts in found.items():
        whole = shaped(clean(" ".join(texts)).strip())
        if whole:
            pieces[number].append(Piece(line.base, lefts[number], whole, line.size, line.hyphened and number == last))
    return set(found)


def _in_cells(grid: Grid, line: Line, row: int, letters: Letters) -> list[tuple[str, float, int]]:
    """The words of a line, where each starts, and the number of the cell that it stands in."""
    found = []
    for text, left, first_right, last_left, right in letters.words(line):
        number = grid.cell_at((left + first_right) / 2, row)
        if number != grid.cell_at((last_left + right) / 2, row):
            return _letters_in_cells(grid, line, row, letters)
        if number is not None:
            found.append((text, left, number))
    return found


def _letters_in_cells(grid: Grid, line: Line, row: int, letters: Letters) -> list[tuple[str, float, int]]:
    """The same for a line that has a word in two cells."""
    texts: dict[int, list[str]] = {}
    lefts: dict[int, float] = {}
    last: int | None = None
    for letter, (left, _, right, _) in letters.letters(line):
        number = last if letter.isspace() else grid.cell_at((left + right) / 2, row)
        if number is not None:
            texts.setdefault(number, []).append(letter)
            lefts.setdefault(number, left)
            last = number
    return [(joined(text), lefts[number], number) for number, text in texts.items()]


def cell_text(pieces: Sequence[Piece]) -> str:
    """The text of a cell, its lines joined."""
    if not pieces:
        return ""
    if len(pieces) == 1 and not pieces[0].hyphened:
        return " ".join(pieces[0].text.split())
    text = ""
    hyphened = False
    last: Piece | None = None
    for piece in sorted(pieces, key=lambda each: (round(each.base), each.left)):
        if last is not None and abs(piece.base - last.base) > 0.4 * max(piece.size, 1.0):
            text += "" if hyphened else space_between(text, piece.text)
        elif last is not None:
            text += " "
        text += piece.text
        hyphened, last = piece.hyphened, piece
    return " ".join((text + "-" if hyphened else text).split())


def to_item(rows: Sequence[Sequence[Cell]], places: Sequence[Box], box: Rect, *, is_bold: bool) -> Line:
    """The table as a block in its place among the lines."""
    header_rows = max(cell.rows for cell in rows[0]) if is_bold or _has_header(rows) else 0
    cells = tuple(tuple(row) for row in rows)
    table = Table(rows=cells, header_rows=header_rows if header_rows < len(rows) else 1, places=tuple(places))
    text, lines = "", []
    for row, place in zip(table.rows, table.places, strict=True):
        lines.append(PlacedLine(len(text), place))
        text += "\t".join(cell.text for cell in row) + "\n"
    block = Block(kind=BlockKind.TABLE, text=text[:-1], page=places[0].page, lines=tuple(lines), table=table)
    left, top, right, bottom = box
    return Line("", left, right, top, bottom, top, 0.0, block=block)


def _has_header(rows: Sequence[Sequence[Cell]]) -> bool:
    """Whether the first row names the columns: text in every cell, and no number that stands for itself."""
    first, below = rows[0], rows[1:]
    if len(first) < 2 or not below or not all(cell.text for cell in first[1:]):
        return False
    return not any(is_number(cell.text) for cell in first)


def is_number(text: str) -> bool:
    return _NUMBER.match(text) is not None


def box_of(page: int, box: Rect) -> Box:
    left, top, right, bottom = box
    return Box(page=page, left=int(left), right=int(right + 0.999), top=int(top), bottom=int(bottom + 0.999))
