"""Tables without rules: rows of short texts whose columns stand under each other on a page.

Doubtful cases are left as text: prose in columns must not become a table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest
from statistics import median
from typing import NamedTuple

from rag.parser.blocks import Cell
from rag.parser.layout import Line
from rag.parser.pdf_letters import shaped
from rag.parser.pdf_tables import FoundTable, Letters, Piece, box_of, cell_text, is_number, to_item
from rag.parser.text import clean

_MIN_ROWS = 3
# Between columns, in sizes of the type: wider than a space between words.
_MIN_GAP = 0.45
_MAX_COLUMNS = 40
_MAX_LINES = 3_000
# Steps from row to row within a table, in sizes of its type.
_MAX_STEP = 3.2
# Points that edges of cells of a column may differ by, and how many must not.
_NEAR = 3.0
_MIN_ALIGNED = 0.7
# Cells that have text; words in a cell, at the mean, beyond which it is prose.
_MIN_FILLED = 0.6
_MAX_WORDS = 4.0
_MAX_WORDS_WITH_NUMBERS = 8.0
_MIN_NUMBERS = 0.4
_MIN_WITH_DIGITS = 0.2
_DIGIT = re.compile(r"\d")
_MARK = re.compile(
    r"(?:[\u2022\u2023\u25e6\u25aa\u25cf\u25cb\u25a0\u25a1\u2013\u2014\u00b7*-]|\(?\w{1,3}[.)]|\[\w+\])$"
)


class _Part(NamedTuple):
    """A stretch of a line between wide gaps."""

    left: float
    right: float
    text: str
    line: Line


class _Row(NamedTuple):
    base: float
    size: float
    parts: list[_Part]


def find_aligned(lines: Sequence[Line], page: int, letters: Letters | None = None) -> Iterator[FoundTable]:
    """The tables among the lines of a page, each with the lines that are left besides it."""
    if len(lines) > _MAX_LINES or not _may_have(lines):
        return
    left = list(lines)
    for run in _runs(_rows(lines)):
        found = _table(run, page, letters)
        if found is not None:
            used = {id(part.line) for row in run for part in row.parts}
            left = [line for line in left if id(line) not in used]
            yield FoundTable(found, left)


def _may_have(lines: Sequence[Line]) -> bool:
    """Whether enough lines stand beside each other at all: most pages end here."""
    beside = sum(bool(line.spans) for line in lines)
    if beside >= _MIN_ROWS - 1:
        return True
    return sum(abs(one.base - other.base) < 1 for one, other in pairwise(lines)) >= _MIN_ROWS - 1 or (
        len({round(line.base) for line in lines}) <= len(lines) - _MIN_ROWS
    )


def _rows(lines: Sequence[Line]) -> list[_Row]:
    rows: list[_Row] = []
    for line in sorted(lines, key=lambda each: each.base):
        parts = list(_parts(line))
        if rows and line.base - rows[-1].base < 0.35 * max(line.size, 1.0):
            rows[-1].parts.extend(parts)
        else:
            rows.append(_Row(line.base, line.size, parts))
    for row in rows:
        row.parts.sort(key=lambda part: part.left)
    return rows


def _parts(line: Line) -> Iterator[_Part]:
    if not line.spans:
        yield _Part(line.left, line.right, line.text, line)
        return
    for span, after in zip_longest(line.spans, line.spans[1:]):
        text = line.text[span.start : after.start if after else None].strip()
        yield _Part(span.left, span.right, text, line)


def _runs(rows: Sequence[_Row]) -> Iterator[list[_Row]]:
    """Rows below each other of two parts or more, with the ends of cells that take another line."""
    run: list[_Row] = []
    for row in rows:
        follows = bool(run) and row.base - run[-1].base <= _MAX_STEP * max(row.size, 1.0)
        several = len(row.parts) > 1
        if not (follows and (several or _goes_on(run, row))):
            yield from _long_enough(run)
            run = []
        if several or run:
            run.append(row)
    yield from _long_enough(run)


def _long_enough(run: list[_Row]) -> Iterator[list[_Row]]:
    if sum(len(row.parts) > 1 for row in run) >= _MIN_ROWS:
        yield run


def _goes_on(run: Sequence[_Row], row: _Row) -> bool:
    """Whether a lone part is the next line of a cell above it: in a later column, and close."""
    part = row.parts[0]
    if row.base - run[-1].base > 2 * max(row.size, 1.0):
        return False
    return any(abs(part.left - other.left) <= _NEAR for above in run[-3:] for other in above.parts[1:])


def _table(run: Sequence[_Row], page: int, letters: Letters | None) -> Line | None:
    parts = [part.text for row in run for part in row.parts]
    words_a_part = sum(text.count(" ") + 1 for text in parts) / len(parts)
    with_numbers = sum(_DIGIT.search(text) is not None for text in parts) / len(parts)
    # Columns of prose end here, before each of their letters is asked for its place.
    if words_a_part > (_MAX_WORDS if with_numbers < _MIN_WITH_DIGITS else _MAX_WORDS_WITH_NUMBERS):
        return None
    gap = _MIN_GAP * median(row.size for row in run)
    words = [[word for part in row.parts for word in _words(part, letters)] for row in run]
    columns = _columns([word for row in words for word in row], gap)
    header_spans = False
    if len(run) > _MIN_ROWS:
        # A first row may have names over several columns.
        below = _columns([word for row in words[1:] for word in row], gap)
        header_spans = len(below) > len(columns)
        columns = below if header_spans else columns
    if not 2 <= len(columns) <= _MAX_COLUMNS:
        return None
    cells = [_cells(row, columns) for row in words]
    if header_spans:
        cells[0] = _cells(run[0].parts, columns)
    body = cells[1:] if header_spans else cells
    if not (_is_filled(body) and _are_aligned(body, len(columns)) and _is_no_prose(cells, columns)):
        return None
    return _to_item(run, cells, columns, page)


def _words(part: _Part, letters: Letters | None) -> Iterator[_Part]:
    """The words of a part; the part itself where letters have no places."""
    line = part.line
    if letters is None or not line.count:
        yield part
        return
    held: list[str] = []
    left = right = 0.0
    for letter, box in letters.letters(line):
        if letter.isspace():
            yield from _word(held, left, right, line)
            held = []
        elif part.left - 1 <= (box[0] + box[2]) / 2 <= part.right + 1:
            left, right = (left if held else box[0]), box[2]
            held.append(letter)
    yield from _word(held, left, right, line)


def _word(held: Sequence[str], left: float, right: float, line: Line) -> Iterator[_Part]:
    text = shaped(clean("".join(held)))
    if text:
        yield _Part(left, right, text, line)


def _columns(parts: Sequence[_Part], gap: float) -> list[tuple[float, float]]:
    """The stretches across the page that have text somewhere, parted by those that have none."""
    found: list[tuple[float, float]] = []
    for part in sorted(parts, key=lambda each: each.left):
        if found and part.left < found[-1][1] + gap:
            found[-1] = (found[-1][0], max(found[-1][1], part.right))
        else:
            found.append((part.left, part.right))
    return found


_Cells = dict[int, list[_Part]]


def _cells(parts: Sequence[_Part], columns: Sequence[tuple[float, float]]) -> _Cells:
    cells: _Cells = {}
    for part in parts:
        at = next((number for number, (_, right) in enumerate(columns) if part.left <= right), len(columns) - 1)
        cells.setdefault(at, []).append(part)
    return cells


def _is_filled(rows: Sequence[_Cells]) -> bool:
    several = [row for row in rows if len(row) > 1]
    columns = max((max(row) for row in several), default=0) + 1
    return sum(len(row) for row in several) >= _MIN_FILLED * columns * len(several)


def _are_aligned(rows: Sequence[_Cells], columns: int) -> bool:
    """Whether the parts of each column share their left edges, their right edges, or their middles."""
    for number in range(columns):
        parts = [row[number] for row in rows if number in row]
        if len(parts) < 2:
            continue
        edges = (
            [cell[0].left for cell in parts],
            [cell[-1].right for cell in parts],
            [(cell[0].left + cell[-1].right) / 2 for cell in parts],
        )
        if not any(_share_one(each) for each in edges):
            return False
    return True


def _share_one(edges: Sequence[float]) -> bool:
    middle = median(edges)
    return sum(abs(edge - middle) <= _NEAR for edge in edges) >= _MIN_ALIGNED * len(edges)


def _is_no_prose(rows: Sequence[_Cells], columns: Sequence[tuple[float, float]]) -> bool:
    texts = [(number, " ".join(part.text for part in cell)) for row in rows for number, cell in row.items()]
    words = sum(len(text.split()) for _, text in texts) / len(texts)
    first = [text for number, text in texts if number == 0]
    if len(columns) == 2 and sum(_MARK.match(text) is not None for text in first) > 0.5 * len(first):
        return False  # a list
    later = [text for number, text in texts[1:] if number]
    numbers = sum(is_number(text) for text in later)
    if later and numbers >= _MIN_NUMBERS * len(later):
        return words <= _MAX_WORDS_WITH_NUMBERS
    if words > _MAX_WORDS:
        return False
    # Lines of prose run to the edge of their column; texts in cells end anywhere.
    if sum(len(text.split()) for text in first) <= 2.5 * len(first):
        return True
    ends = [row[0][-1].right for row in rows if 0 in row]
    return sum(right >= columns[0][1] - 6 for right in ends) <= 0.6 * len(ends)


def _to_item(run: Sequence[_Row], cells: Sequence[_Cells], columns: Sequence[tuple[float, float]], page: int) -> Line:
    rows: list[list[Cell]] = []
    places = []
    left, right = columns[0][0], columns[-1][1]
    starts = [at for at in range(len(run)) if at == 0 or not _is_more(cells[at], cells[at - 1])]
    for start, end in pairwise([*starts, len(run)]):
        merged: _Cells = {}
        for row in cells[start:end]:
            for number, parts in row.items():
                merged.setdefault(number, []).extend(parts)
        rows.append(_row_cells(merged, columns))
        lines = [part.line for row in run[start:end] for part in row.parts]
        top, bottom = min(line.top for line in lines), max(line.bottom for line in lines)
        places.append(box_of(page, (left, top, right, bottom)))
    bold = all(part.line.bold for part in run[0].parts) and not any(part.line.bold for part in run[-1].parts)
    box = (left, float(places[0].top), right, float(places[-1].bottom))
    return to_item(rows, places, box, is_bold=bold)


def _is_more(row: _Cells, above: _Cells) -> bool:
    """Whether a row holds only further lines of the cells above it."""
    return 0 not in row and all(number in above for number in row)


def _row_cells(cells: _Cells, columns: Sequence[tuple[float, float]]) -> list[Cell]:
    row: list[Cell] = []
    covered = 0
    for number in range(len(columns)):
        if number < covered:
            continue
        parts = cells.get(number, [])
        reach = max((part.right for part in parts), default=0.0)
        covered = number + 1
        while covered < len(columns) and columns[covered][0] < reach - _NEAR and covered not in cells:
            covered += 1
        pieces = [Piece(part.line.base, part.left, part.text, part.line.size) for part in parts]
        row.append(Cell(cell_text(pieces), columns=covered - number))
    return row
