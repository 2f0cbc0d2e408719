"""Lines of code on a page: runs of lines in type whose letters are all as wide become blocks that keep their line ends
and how far in each line stands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from rag.parser.blocks import Block, BlockKind, PlacedLine
from rag.parser.layout import Line
from rag.parser.line_joins import box_of_line
from rag.parser.paragraphs import HeadingFinder

# Of a letter, against the size of its type.
_WIDTH = 0.6
# In sizes of their type: lines further apart are two pieces of code; nearer, they stand beside each other.
_MAX_STEP = 3.0
_SAME_LINE = 0.5
# Against the usual step of a piece of code: more, and an empty line is between.
_EMPTY_LINE = 1.6
# A line alone is code if it stands further in than the text around it, or apart from it, in sizes of its type.
_MIN_INDENT = 0.8
_MIN_GAP = 1.6
_ADDRESS = re.compile(r"\S+@\S+$|(?:https?|ftp)://\S+$|www\.\S+$")


def with_code(page: int, lines: Sequence[Line], headings: HeadingFinder) -> Sequence[Line]:
    """The lines in reading order, with a block in the place of each piece of code."""
    if not [line for line in lines if line.mono]:
        return lines
    found: list[Line] = []
    at = 0
    while at < len(lines):
        end = _end_of_run(lines, at, headings)
        if end > at and _is_code(lines, at, end):
            found.append(_item(page, lines[at:end]))
        else:
            end = max(end, at + 1)
            found += lines[at:end]
        at = end
    return found


def _end_of_run(lines: Sequence[Line], start: int, headings: HeadingFinder) -> int:
    """Where the lines from `start` on that may be one piece of code end; `start` itself if there are none."""
    end = start
    while end < len(lines) and _may_be_code(lines[end], headings):
        if end > start and not _goes_on(lines[end - 1], lines[end]):
            break
        end += 1
    return end


def _may_be_code(line: Line, headings: HeadingFinder) -> bool:
    return line.mono and line.block is None and not headings.level(line.text, line.size)


def _goes_on(line: Line, after: Line) -> bool:
    return -_SAME_LINE * line.size < after.base - line.base <= _MAX_STEP * line.size


def _is_code(lines: Sequence[Line], start: int, end: int) -> bool:
    """Whether a run is no part of the prose around it."""
    first, last = lines[start], lines[end - 1]
    above, below = (lines[start - 1] if start else None), (lines[end] if end < len(lines) else None)
    if (above is not None and _is_beside(above, first)) or (below is not None and _is_beside(below, last)):
        return False
    if end - start > 1:
        return True
    if first.bold or _ADDRESS.match(first.text):
        return False
    near = [other for other in (above, below) if other is not None and other.block is None]
    return all(_is_apart(first, other) for other in near)


def _is_beside(line: Line, other: Line) -> bool:
    return line.block is None and abs(line.base - other.base) < _SAME_LINE * max(other.size, 1.0)


def _is_apart(line: Line, other: Line) -> bool:
    is_further_in = line.left - other.left > _MIN_INDENT * line.size
    return is_further_in or abs(line.base - other.base) > _MIN_GAP * max(line.size, other.size)


def _item(page: int, run: Sequence[Line]) -> Line:
    """The code as a block in its place among the lines."""
    left, right = min([line.left for line in run]), max([line.right for line in run])
    steps = [step for before, line in pairwise(run) if (step := line.base - before.base) > _SAME_LINE * line.size]
    usual = median(steps) if steps else 0.0
    text = ""
    places: list[PlacedLine] = []
    before: Line | None = None
    for line in run:
        step = line.base - before.base if before is not None else 0.0
        if before is not None and step < _SAME_LINE * line.size:
            text += _spaces(line.left - before.right, line) or " "
        else:
            if before is not None:
                text += "\n\n" if step > _EMPTY_LINE * usual else "\n"
            text += _spaces(line.left - left, line)
        places.append(PlacedLine(len(text), box_of_line(page, line)))
        text += line.text + ("-" if line.hyphened else "")
        before = line
    block = Block(kind=BlockKind.CODE, text=text, page=page, lines=tuple(places))
    return Line("", left, right, run[0].top, run[-1].bottom, run[0].base, 0.0, block=block)


def _spaces(width: float, line: Line) -> str:
    return " " * max(0, round(width / (_WIDTH * max(line.size, 1.0))))
