"""The cells of a table without rules, from rows of short texts whose columns stand under each other."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from operator import itemgetter
from statistics import median, mode
from string import digits

from rag.parser.blocks import Cell
from rag.parser.layout import Line
from rag.parser.line_joins import has_leaders, without_leaders
from rag.parser.pdf_rows import MIN_ROWS
from rag.parser.pdf_tables import Letters, Piece, box_of, cell_text, is_number, to_item
from rag.parser.row_parts import Part, Row, words_of
from rag.parser.wrapped_rows import Cells, is_one_text, is_wrapped, row_starts

# Between columns, in sizes of the type: wider than a space between words.
_MIN_GAP = 0.45
_MAX_COLUMNS = 40
# Points that edges of cells of a column may differ by, and how many must not.
_NEAR = 3.0
_MIN_ALIGNED = 0.7
# Cells that have text; words in a cell, at the mean, beyond which it is prose.
_MIN_FILLED = 0.6
_MAX_WORDS = 4.0
_MAX_WORDS_WITH_NUMBERS = 8.0
_MIN_PROSE_WORDS = 2.5
# Rows with text in more than their first cell.
_MIN_SEVERAL = 0.55
_MIN_NUMBERS = 0.4
# Of the lines of a table whose cells take several, those that have as many parts.
_MAX_ALIKE = 0.8
_MIN_WITH_DIGITS = 0.2
# Of an entry of a list of contents: its number, its title, its page.
_MAX_CONTENTS_PARTS = 3
_DIGIT = re.compile(r"\d")
_MARK = re.compile(
    r"(?:[\u2022\u2023\u25e6\u25aa\u25cf\u25cb\u25a0\u25a1\u2013\u2014\u00b7*-]|\(?\w{1,3}[.)]|\[\w+\])$"
)
_LISTED = re.compile(r"(?:[\u2022\u2023\u25e6\u25aa\u25cf\u25cb\u25a0\u25a1]|\[\w+\])$")
# An entry of an index.
_ENTRY = re.compile(r"\D.*,\s*[\divx]+(?:[\s,\u2013-]+[\divx]+)*,?$")
_SECTION = re.compile(r"\d+(?:\.\d+)*\.?$")


def table_of(run: Sequence[Row], page: int, letters: Letters | None) -> Line | None:
    """The table that a run of rows is; None if it is rather a text.

    Doubtful cases are left as text: prose in columns must not become a table."""
    # Columns of prose and lists of contents end here, before their words are asked for their places.
    if _is_prose(run) or _has_leaders(run) or _is_index(run):
        return None
    gap = _MIN_GAP * median([row.size for row in run])
    words: list[list[Part]] = []
    for row in run:
        found = words_of(row, letters)
        if found is None:
            return None
        words.append(found)
    columns = _columns([word for row in words for word in row], gap)
    header_spans = False
    if len(run) > MIN_ROWS:
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
    starts = row_starts(run, cells, columns)
    if len(starts) < (MIN_ROWS if len(columns) == 2 else 2):
        return None
    wraps = is_wrapped(starts, cells, len(columns))
    filled = [cells[at] for at in starts if at or not header_spans] if wraps else body
    if not (_is_filled(filled) and _are_aligned(body, len(columns)) and _is_no_prose(cells, columns, wraps=wraps)):
        return None
    if is_one_text(starts, cells, columns) or _has_lone_names(run, starts, cells):
        return None
    return _to_item(run, cells, starts, columns, page)


def _is_prose(run: Sequence[Row]) -> bool:
    """Whether the parts have too many words for cells."""
    texts = [line.text for row in run for line in row.lines]
    count = sum([row.count for row in run])
    whole = "\n".join(texts)
    if "  " in whole:
        words = sum([part.text.count(" ") + 1 for row in run for part in row.parts])
    else:
        words = sum([text.count(" ") + 1 for text in texts])
    if not _MAX_WORDS * count < words <= _MAX_WORDS_WITH_NUMBERS * count:
        return words > _MAX_WORDS * count
    if _may_wrap(run):
        return False
    if not any(digit in whole for digit in digits) and (whole.isascii() or not _DIGIT.search(whole)):
        return True
    numbers = sum(_DIGIT.search(part.text) is not None for row in run for part in row.parts)
    return numbers / count < _MIN_WITH_DIGITS


def _may_wrap(run: Sequence[Row]) -> bool:
    """Whether there are lines of three parts or more, and lines with fewer: columns of prose go on side by side."""
    counts = [row.count for row in run if row.count > 2]
    return len(counts) >= MIN_ROWS and counts.count(mode(counts)) <= _MAX_ALIKE * len(run)


def _has_leaders(run: Sequence[Row]) -> bool:
    """Whether dots lead to one other part in a third of the rows, as in a list of contents; those that lead to several
    are of a table."""
    leading = [
        row for row in run if row.count <= _MAX_CONTENTS_PARTS and any(has_leaders(line.text) for line in row.lines)
    ]
    return 3 * len(leading) >= len(run)


def _is_index(run: Sequence[Row]) -> bool:
    """Whether most texts end with the numbers of pages behind a comma."""
    texts = [part.text for row in run for part in row.parts]
    return 2 * len([text for text in texts if _ENTRY.match(text)]) > len(texts)


def _columns(parts: Sequence[Part], gap: float) -> list[tuple[float, float]]:
    """The stretches across the page that have text somewhere, parted by those that have none."""
    if not parts:
        return []
    found: list[tuple[float, float]] = []
    ordered = sorted(parts, key=itemgetter(0))
    start, end = ordered[0].left, ordered[0].right
    for left, right, _, _ in ordered:
        if left >= end + gap:
            found.append((start, end))
            start, end = left, right
        elif right > end:
            end = right
    found.append((start, end))
    return found


def _cells(parts: Sequence[Part], columns: Sequence[tuple[float, float]]) -> Cells:
    cells: Cells = {}
    rights = [right for _, right in columns]
    for part in parts:
        cells.setdefault(min(bisect_left(rights, part.left), len(rights) - 1), []).append(part)
    return cells


def _is_filled(rows: Sequence[Cells]) -> bool:
    several = [row for row in rows if len(row) > 1]
    columns = max((max(row) for row in several), default=0) + 1
    return sum(len(row) for row in several) >= _MIN_FILLED * columns * len(several)


def _has_lone_names(run: Sequence[Row], starts: Sequence[int], cells: Sequence[Cells]) -> bool:
    """Whether too many rows have text in their first cell alone."""
    if all(row.count > 1 or 0 not in own for row, own in zip(run, cells, strict=True)):
        return False
    several = len([at for at in starts if len(cells[at]) > 1])
    return several < max(MIN_ROWS, _MIN_SEVERAL * len(starts))


def _are_aligned(rows: Sequence[Cells], columns: int) -> bool:
    """Whether the parts of each column share their left edges, their right edges, or their middles."""
    for number in range(columns):
        parts = [row[number] for row in rows if number in row]
        if len(parts) < 2:
            continue
        if not (
            _share_one([cell[0].left for cell in parts])
            or _share_one([cell[-1].right for cell in parts])
            or _share_one([(cell[0].left + cell[-1].right) / 2 for cell in parts])
        ):
            return False
    return True


def _share_one(edges: Sequence[float]) -> bool:
    middle = median(edges)
    return len([edge for edge in edges if abs(edge - middle) <= _NEAR]) >= _MIN_ALIGNED * len(edges)


def _is_no_prose(rows: Sequence[Cells], columns: Sequence[tuple[float, float]], *, wraps: bool) -> bool:
    texts = [(number, " ".join([part.text for part in cell])) for row in rows for number, cell in row.items()]
    words = sum([len(text.split()) for _, text in texts]) / len(texts)
    first = [text for number, text in texts if number == 0]
    later = [text for number, text in texts[1:] if number]
    numbers = sum(is_number(text) for text in later)
    if len(columns) == 2 and sum(_MARK.match(text) is not None for text in first) > 0.5 * len(first):
        return False  # a list
    if sum(_LISTED.match(text) is not None for text in first) > 0.5 * len(first):
        return False
    if len(columns) == 2 and not numbers and _are_sections(first):
        return False
    if _are_columns_of_prose(rows, len(columns)):
        return False
    if wraps or (later and numbers >= _MIN_NUMBERS * len(later)):
        return words <= _MAX_WORDS_WITH_NUMBERS
    if words > _MAX_WORDS:
        return False
    # Lines of prose run to the edge of their column; texts in cells end anywhere.
    if sum(len(text.split()) for text in first) <= 2.5 * len(first):
        return True
    ends = [row[0][-1].right for row in rows if 0 in row]
    return sum(right >= columns[0][1] - 6 for right in ends) <= 0.6 * len(ends)


def _are_sections(texts: Sequence[str]) -> bool:
    """Whether they are the numbers of headings, of more than one level."""
    return all(_SECTION.match(text) for text in texts) and any("." in text[:-1] for text in texts)


def _are_columns_of_prose(rows: Sequence[Cells], columns: int) -> bool:
    """Whether the texts of every column below the first row go on with a sentence: several words, the first in lower
    case."""
    for number in range(columns):
        texts = [" ".join([part.text for part in row[number]]) for row in rows[1:] if number in row]
        low = len([text for text in texts if text[:1].islower()])
        if 2 * low <= len(texts) or sum([len(text.split()) for text in texts]) < _MIN_PROSE_WORDS * len(texts):
            return False
    return True


def _to_item(
    run: Sequence[Row], cells: Sequence[Cells], starts: Sequence[int], columns: Sequence[tuple[float, float]], page: int
) -> Line:
    rows: list[list[Cell]] = []
    places = []
    left, right = columns[0][0], columns[-1][1]
    for start, end in pairwise([*starts, len(run)]):
        merged = cells[start]
        for row in cells[start + 1 : end]:
            for number, parts in row.items():
                merged.setdefault(number, []).extend(parts)
        rows.append(_row_cells(merged, columns))
        lines = [line for row in run[start:end] for line in row.lines]
        top, bottom = min([line.top for line in lines]), max([line.bottom for line in lines])
        places.append(box_of(page, (left, top, right, bottom)))
    bold = all(line.bold for line in run[0].lines) and not any(line.bold for line in run[-1].lines)
    box = (left, float(places[0].top), right, float(places[-1].bottom))
    return to_item(rows, places, box, is_bold=bold)


def _row_cells(cells: Cells, columns: Sequence[tuple[float, float]]) -> list[Cell]:
    row: list[Cell] = []
    covered = 0
    for number in range(len(columns)):
        if number < covered:
            continue
        parts = cells.get(number, [])
        covered = number + 1
        if parts and covered < len(columns) and covered not in cells:
            reach = max([part.right for part in parts])
            while covered < len(columns) and columns[covered][0] < reach - _NEAR and covered not in cells:
                covered += 1
        row.append(Cell(without_leaders(_text(parts)), covered - number))
    return row


def _text(parts: Sequence[Part]) -> str:
    if not [one for one, other in pairwise(parts) if one.line is not other.line or one.left > other.left]:
        return " ".join(" ".join([part.text for part in parts]).split())
    return cell_text([Piece(part.line.base, part.left, part.text, part.line.size) for part in parts])
