"""Where the rows of a table without rules start whose cells take several lines: told by the space between the lines,
and by what had room on the line above."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from rag.parser.pdf_tables import is_number
from rag.parser.row_parts import Part, Row

# The words of a line by the number of the column that they stand in.
Cells = dict[int, list[Part]]
Columns = Sequence[tuple[float, float]]

# Between rows, against that between lines of a cell.
_WIDER = 1.1
# A space between words, in sizes of the type.
_SPACE = 0.2
# Of the lines that the space says are further ones of a cell, those that can't be.
_MAX_WRONG = 0.12
_MIN_CAPITALS = 0.7
# A column of numbers has one in so many of its cells, and a cell in so many rows.
_MIN_NUMBERS = 0.7
_MIN_LINES = 3
# Columns that have text in further lines of cells, and words in a line of a short column, at the mean.
_MAX_FILLED = 0.75
_SHORT = 2.6
# Words in a line of a column of text, at the mean.
_MIN_TEXT_WORDS = 5.0


def row_starts(run: Sequence[Row], cells: Sequence[Cells], columns: Columns) -> list[int]:
    """The numbers of the lines that start a row, the first of all among them."""
    by_space = _by_space(run, cells, columns)
    return by_space if by_space is not None else _by_text(cells, columns)


def is_wrapped(starts: Sequence[int], cells: Sequence[Cells], columns: int) -> bool:
    """Whether lines over three columns or more have the shape of rows: each with a short cell beside longer ones, which
    end at different lines. Columns of prose go on together."""
    further = [row for at, row in enumerate(cells) if at not in set(starts)]
    if columns < _MIN_LINES or len(starts) < _MIN_LINES or not further:
        return False
    if sum([len(row) for row in further]) > _MAX_FILLED * columns * len(further):
        return False
    return any(_is_short(number, starts, cells) for number in range(columns))


def is_one_text(starts: Sequence[int], cells: Sequence[Cells], columns: Columns) -> bool:
    """Whether a column is a text that goes on from row to row, as prose does beside the numbers of its lines."""
    return any(_goes_through(number, starts, cells, column) for number, column in enumerate(columns))


def _goes_through(number: int, starts: Sequence[int], cells: Sequence[Cells], column: tuple[float, float]) -> bool:
    own = [row[number] for row in cells if number in row]
    if len(own) < _MIN_LINES or sum(map(len, own)) < _MIN_TEXT_WORDS * len(own):
        return False
    begun = [at for at in starts[1:] if number in cells[at]]
    on = [
        at
        for at in begun
        if cells[at][number][0].text[:1].islower()
        and number in cells[at - 1]
        and not _had_room(cells[at], cells[at - 1], number, column)
    ]
    return 2 * len(on) > len(begun)


def _is_short(number: int, starts: Sequence[int], cells: Sequence[Cells]) -> bool:
    """Whether a column has few words to a line, and mostly one line to a row."""
    own = [row[number] for row in cells if number in row]
    rows = len([at for at in starts if number in cells[at]])
    return bool(own) and rows >= 0.6 * max(len(own), len(starts)) and sum(map(len, own)) <= _SHORT * len(own)


def _by_space(run: Sequence[Row], cells: Sequence[Cells], columns: Columns) -> list[int] | None:
    """By the wider space between rows; None if there is none, or it parts groups of rows."""
    steps = [below.base - above.base for above, below in pairwise(run)]
    least = min(steps)
    starts = [0, *(at for at, step in enumerate(steps, start=1) if step > _WIDER * least)]
    if len(starts) in (1, len(run)):
        return None
    wrong = 0
    for start, end in pairwise([*starts, len(run)]):
        # A further line of a row has text in a part of its cells.
        full = len(cells[start])
        further = [
            len(cells[at]) < full and _may_go_on(cells[at], cells[at - 1], columns) for at in range(start + 1, end)
        ]
        wrong += further.count(False)
    if wrong > _MAX_WRONG * (len(run) - len(starts)):
        return None
    more = [at for at in starts[1:] if 0 not in cells[at] and _may_go_on(cells[at], cells[at - 1], columns)]
    return starts if len(more) <= _MAX_WRONG * len(starts) else None


def _by_text(cells: Sequence[Cells], columns: Columns) -> list[int]:
    has_capitals = _starts_with_capitals(cells)
    numbers = [number for number in range(1, len(columns)) if _has_numbers(number, cells)]
    starts = [0]
    for at in range(1, len(cells)):
        row, above = cells[at], cells[at - 1]
        if 0 not in row:
            goes_on = all(number in above for number in row) and not _repeats_number(row, above)
        else:
            goes_on = (
                len(row) < len(cells[starts[-1]])
                and _may_go_on(row, above, columns)
                and (not has_capitals or row[0][0].text[:1].islower())
                and (has_capitals or bool(numbers))
                and not any(number in row for number in numbers)
            )
        if not goes_on:
            starts.append(at)
    return starts


def _may_go_on(row: Cells, above: Cells, columns: Columns) -> bool:
    """Whether a line may hold further lines of the cells above it: each word at its start had no room there."""
    return (
        all(number in above for number in row)
        and not _repeats_number(row, above)
        and not any(_had_room(row, above, number, columns[number]) for number in row)
    )


def _had_room(row: Cells, above: Cells, number: int, column: tuple[float, float]) -> bool:
    first, words = row[number][0], above[number]
    width = words[-1].right - words[0].left + first.right - first.left
    return width + _SPACE * first.line.size < column[1] - column[0]


def _repeats_number(row: Cells, above: Cells) -> bool:
    return any(
        number in above and is_number(_text(words)) and is_number(_text(above[number])) for number, words in row.items()
    )


def _text(words: Sequence[Part]) -> str:
    return " ".join([word.text for word in words])


def _has_numbers(number: int, cells: Sequence[Cells]) -> bool:
    own = [_text(row[number]) for row in cells[1:] if number in row]
    return len(own) >= _MIN_LINES and len([text for text in own if is_number(text)]) >= _MIN_NUMBERS * len(own)


def _starts_with_capitals(cells: Sequence[Cells]) -> bool:
    """Whether the lines with most cells, which start rows if any do, begin with a capital or a digit."""
    usual = median([len(row) for row in cells])
    firsts = [row[0][0].text[:1] for row in cells if 0 in row and len(row) >= usual]
    return bool(firsts) and len([text for text in firsts if not text.islower()]) >= _MIN_CAPITALS * len(firsts)
