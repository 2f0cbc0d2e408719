"""The order of a page whose file does not go down it: magazines and forms are put together from pieces in any order.

A strand is a stretch of lines that follow each other down a column. Strands are read from left to right where a gap
goes down between them, else from top to bottom; what each holds stays as it is in the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from rag.parser.page_lines import Line

# In sizes of type: how far below its last line a strand goes on.
_MAX_STEP = 3.0
# Lines in strands that the file has behind one further down in the same column, against all: fewer are the header of
# a page, or a note.
_MIN_MISPLACED = 0.2
_MIN_LINES = 12
_MAX_STRANDS = 300
_MAX_DEPTH = 40
# Points between columns.
_MIN_GUTTER = 8.0


# What stands above all else on a page, or below, has no more lines.
_MAX_EDGE_LINES = 8
_MAX_EDGE = 0.35


class _Strand:
    """Some lines, and the box around them."""

    __slots__ = ("bottom", "left", "lines", "right", "top")

    def __init__(self, line: Line) -> None:
        self.lines = [line]
        self.left, self.right, self.top, self.bottom = line.left, line.right, line.top, line.bottom

    def add(self, line: Line) -> None:
        self.lines.append(line)
        self.left, self.right = min(self.left, line.left), max(self.right, line.right)
        self.top, self.bottom = min(self.top, line.top), max(self.bottom, line.bottom)


def by_cuts(lines: Sequence[Line]) -> Sequence[Line]:
    """Lines of a part of a page that has texts beside each other, one text after the other."""
    strands = _strands(lines)
    return [
        line for strand in (_sorted(strands, 0) if len(strands) <= _MAX_STRANDS else strands) for line in strand.lines
    ]


def with_edges_in_place(lines: Sequence[Line], rises: Sequence[int]) -> Sequence[Line]:
    """The lines, with what a file draws first though it stands below all else at their end, and what it draws last
    though it stands above all else at their start. `rises` are the lines that stand above the one before them."""
    most = min(_MAX_EDGE_LINES, int(_MAX_EDGE * len(lines)))
    for at in rises:
        if at <= most and _is_above(lines[at:], lines[:at]):
            return [*lines[at:], *lines[:at]]
    for at in rises:
        if len(lines) - at <= most and _is_above(lines[at:], lines[:at]):
            return [*sorted(lines[at:], key=lambda line: (round(line.base), line.left)), *lines[:at]]
    return lines


def _is_above(lines: Sequence[Line], others: Sequence[Line]) -> bool:
    return max([line.bottom for line in lines]) <= min([line.top for line in others])


def in_strands(lines: Sequence[Line]) -> Sequence[Line]:
    """The lines from top to bottom, if their file plainly does not have them so; else as they are."""
    rises = [after for before, after in pairwise(lines) if after.bottom < before.top]
    if len(lines) < _MIN_LINES or len(rises) < 2:
        return lines
    strands = _strands(lines)
    if len(strands) > _MAX_STRANDS or _misplaced(strands) < _MIN_MISPLACED * len(lines):
        return lines
    return [line for strand in _sorted(strands, 0) for line in strand.lines]


def _strands(lines: Sequence[Line]) -> list[_Strand]:
    found: list[_Strand] = []
    for line in lines:
        if found and _goes_on(found[-1].lines[-1], line):
            found[-1].add(line)
        else:
            found.append(_Strand(line))
    return found


def _goes_on(last: Line, line: Line) -> bool:
    step = line.base - last.base
    is_below = line.left < last.right and line.right > last.left
    if is_below:
        return -0.5 * line.size < step <= _MAX_STEP * max(line.size, last.size)
    return abs(step) < 0.5 * line.size


def _misplaced(strands: Sequence[_Strand]) -> int:
    """How many lines are in strands that stand above the one before them in the file, and in its column."""
    return sum(
        len(strand.lines)
        for before, strand in pairwise(strands)
        if strand.bottom <= before.top and strand.left < before.right and strand.right > before.left
    )


def _sorted(strands: Sequence[_Strand], depth: int) -> list[_Strand]:
    """Cut where nothing stands: down the page between columns, else across it where the gap is widest."""
    if len(strands) < 2 or depth > _MAX_DEPTH:
        return list(strands)
    halves = _cut(strands, lambda strand: (strand.left, strand.right), _MIN_GUTTER)
    halves = halves or _cut(strands, lambda strand: (strand.top, strand.bottom), 0.0)
    if not halves:
        return sorted(strands, key=lambda strand: (strand.top, strand.left))
    return [strand for half in halves for strand in _sorted(half, depth + 1)]


def _cut(
    strands: Sequence[_Strand], stretch: Callable[[_Strand], tuple[float, float]], least: float
) -> tuple[Sequence[_Strand], ...]:
    """Those before the widest gap and those behind it; nothing if no gap is as wide as `least`."""
    ordered = sorted(strands, key=stretch)
    widest, at, end = least, 0, stretch(ordered[0])[1]
    for number, strand in enumerate(ordered):
        start, its_end = stretch(strand)
        if number and start - end >= widest:
            widest, at = start - end, number
        end = max(end, its_end)
    return (ordered[:at], ordered[at:]) if at else ()
