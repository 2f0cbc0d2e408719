"""Runs of rows on a page that may be a table: rows of several parts that stand below each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter

from rag.parser.layout import Line
from rag.parser.pdf_tables import Letters
from rag.parser.row_parts import Row, words_of

# Of two parts or more, that stand below each other.
MIN_ROWS = 3
_MAX_LINES = 3_000
# Steps from row to row of a run, in sizes of its type.
_MAX_STEP = 3.2
# Points that the left edges of lines of a cell may differ by.
_NEAR = 3.0
_MAX_CELL_LINES = 12
# Steps from line to line of a cell: in sizes of its type, and against the closest lines of the run.
_CLOSE = 1.6
_SAME_STEP = 1.1
# Of a first row that is none of the run's, against all other steps.
_OFF = 1.3
# Between words of two cells, in sizes of their type.
_WORD_GAP = 0.45
# Of type, against that of the rows above.
_LARGER = 1.12
_NUMBERED = re.compile(r"(?:\d+(?:\.\d+)*|[A-Z]|[IVX]+)\.?(?:\s|$)")

_base, _size = attrgetter("base"), attrgetter("size")


def find_runs(rows: Sequence[Row], letters: Letters | None = None) -> Iterator[list[Row]]:
    """Rows below each other of two parts or more, with the ends of cells that take another line."""
    if len([row for row in rows if row.count > 1]) < MIN_ROWS - 1:
        return
    run: list[Row] = []
    above: Row | None = None
    before: Row | None = None
    for row in rows:
        follows = bool(run) and _is_next(run[-1], row) and not _is_heading(run, row)
        if follows and row.count == 1 and letters is not None and row.part(letters) and not _is_under(run[-1], row):
            row.join()
        if not (follows and (row.count > 1 or _goes_on(run, row, letters))):
            if _is_long_enough(run):
                yield _with_header(before, _begun(_ended(run)), letters)
            run, before = [], above
        if row.count > 1 or run:
            run.append(row)
        above = row
    if _is_long_enough(run):
        yield _with_header(before, _begun(_ended(run)), letters)


def parts_of(run: Sequence[Row]) -> Iterator[list[Row]]:
    """A run that is no table, parted at the lines that stand in its first column alone, if there are any."""
    first = run[0].parts[0].left
    part: list[Row] = []
    for row in run:
        if row.count > 1 or row.parts[0].left > first + _NEAR:
            part.append(row)
            continue
        if len(part) < len(run) and _is_long_enough(part):
            yield part
        part = []
    if len(part) < len(run) and _is_long_enough(part):
        yield part


def _is_next(above: Row, row: Row) -> bool:
    return row.base - above.base <= _MAX_STEP * max(row.size, 1.0)


def _is_heading(run: Sequence[Row], row: Row) -> bool:
    """Whether a row is rather a title with its number, in larger type."""
    if row.count > 2 or row.size <= _LARGER * run[-1].size or row.size <= _LARGER * max(run[-2:], key=_size).size:
        return False
    return _NUMBERED.match(row.parts[0].text) is not None


def _is_under(above: Row, row: Row) -> bool:
    """Whether the parts stand under those above them: each shares an edge, or the middle, with one of these."""
    return above.count > 1 and all(
        any(
            min(abs(part.left - other.left), abs(part.right - other.right)) <= _NEAR
            or abs(part.left + part.right - other.left - other.right) <= 2 * _NEAR
            for other in above.parts
        )
        for part in row.parts
    )


def _with_header(above: Row | None, run: list[Row], letters: Letters | None) -> list[Row]:
    """The run with the row above it, if that turns out to have as many parts as its first."""
    first = run[0]
    if above is None or letters is None or above.count > 1 or not _is_next(above, first) or not above.part(letters):
        return run
    return [above, *run] if above.count == first.count else run


def may_have_rows(lines: Sequence[Line]) -> bool:
    """Whether enough lines stand beside each other at all: most pages end here."""
    if len(lines) > _MAX_LINES:
        return False
    if len([line for line in lines if line.spans]) >= MIN_ROWS - 1:
        return True
    bases = [line.base for line in lines]
    if len([one for one, other in pairwise(bases) if -1 < one - other < 1]) >= MIN_ROWS - 1:
        return True
    return len(set(map(round, bases))) <= len(lines) - MIN_ROWS


def to_rows(lines: Sequence[Line]) -> list[Row]:
    """From top to bottom."""
    rows: list[Row] = []
    for line in sorted(lines, key=_base):
        if rows and line.base - rows[-1].base < 0.35 * max(line.size, 1.0):
            rows[-1].add(line)
        else:
            rows.append(Row(line))
    return rows


def _is_long_enough(run: Sequence[Row]) -> bool:
    return len([row for row in run if row.count > 1]) >= MIN_ROWS


def _goes_on(run: Sequence[Row], row: Row, letters: Letters | None) -> bool:
    """Whether a lone part is the next line of a cell above it, and close."""
    step = row.base - run[-1].base
    if step > 2 * max(row.size, 1.0):
        return False
    left = row.parts[0].left
    # As many lines above as a cell may have.
    above = [part.left for one in run[-_MAX_CELL_LINES:] if one.count > 1 for part in one.parts]
    first = min(above, default=left)
    if left > first + _NEAR:
        return any(abs(left - other) <= _NEAR for other in above) or _is_under_word(run, left, letters)
    return _is_in_first_column(run, row, step)


def _is_under_word(run: Sequence[Row], left: float, letters: Letters | None) -> bool:
    """Whether a word above starts there, behind a gap that is too narrow to have parted the line by itself."""
    above = next((row for row in reversed(run[-_MAX_CELL_LINES:]) if row.count > 1), None)
    words = words_of(above, letters) if above is not None and letters is not None else None
    return any(
        abs(word.left - left) <= _NEAR and word.left - before.right > _WORD_GAP * max(word.line.size, 1.0)
        for before, word in pairwise(words or ())
    )


def _is_in_first_column(run: Sequence[Row], row: Row, step: float) -> bool:
    """Whether a lone part stands under the first cells of a table, left of all others, and as close as lines are."""
    part, rows = row.parts[0], [above for above in run[-_MAX_CELL_LINES:] if above.count > 1]
    if len(rows) < 2 and len(run) > 1:
        return False
    least = min([below.base - above.base for above, below in pairwise(run)], default=_CLOSE * row.size)
    return (
        step <= _SAME_STEP * least
        and step <= _CLOSE * row.size
        and abs(part.left - run[-1].parts[0].left) <= _NEAR
        and part.right < min([above.parts[1].left for above in rows])
        and row.lines[0].bold == run[-1].lines[0].bold
        and abs(row.size - run[-1].size) < 0.5
    )


def _begun(run: list[Row]) -> list[Row]:
    """The run without a first row that stands off from it and has fewer parts, as the header of a page has."""
    if len(run) <= MIN_ROWS + 1 or not run[0].count == 2 < run[1].count:
        return run
    step, *steps = [below.base - above.base for above, below in pairwise(run)]
    return run[1:] if step > _OFF * max(steps) else run


def _ended(run: list[Row]) -> list[Row]:
    """The run without lines at its end that stand in its first column alone, and had room on the lines above."""
    while len(run) > 1 and run[-1].count == 1 and abs(run[-1].parts[0].left - run[0].parts[0].left) <= _NEAR:
        last, above = run[-1].parts[0], run[-2].parts[0]
        widest = max([row.parts[0].right for row in run])
        word = last.text.split(" ", 1)[0]
        width = (last.right - last.left) * len(word) / max(1, len(last.text))
        if abs(above.left - last.left) <= _NEAR and above.right + width + 0.2 * run[-1].size > widest:
            break
        run = run[:-1]
    return run
