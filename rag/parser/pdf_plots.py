"""Plots of a PDF page: what is drawn by paths around axes, or of many strokes, with the words that belong to it.

Borders, rules, underlines, backgrounds and boxes around text are no plots: a plot has hardly any text in it, and short
texts only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rag.parser.captions import names_item
from rag.parser.layout import Line
from rag.parser.pdf_aligned import find_aligned
from rag.parser.pdf_figures import (
    MIN_STROKES,
    around,
    find_groups,
    has_few_words,
    holds,
    is_inside,
    is_large,
    is_ticks,
    is_whole,
    to_figure,
    touches,
)
from rag.parser.pdf_frame import Rect
from rag.parser.pdf_objects import Drawn
from rag.parser.pdf_tables import Letters

# Points between the parts of a plot.
_GAP = 5.0
_MIN_AXIS = 30.0
# Of the curves of a plot together; one with fewer is an arrow or an ornament.
_MIN_SEGMENTS = 8
_MIN_BARS = 3
_NEAR = 1.0
_MAX_FRAMES = 200
# Of the page: a longer rule is one of its own.
_WIDE = 0.9
# Of its area, what lines of text may cover in a plot, and in a drawing without axes.
_MAX_COVERED = 0.3
_MAX_COVERED_OF_STROKES = 0.12
# In sizes of the type: how far labels stand from the axes, and the names of axes from these.
_LABEL_REACH = 1.8
_NAME_REACH = 2.2
_LABEL_WORDS = 3
_NAME_WORDS = 9
_CENTRED = 0.08


class FoundPlot(NamedTuple):
    """A figure in its place, and the lines that are left besides it."""

    item: Line
    lines: tuple[Line, ...]


@dataclass(slots=True)
class _Group:
    """What is drawn in one place."""

    box: Rect
    strokes: int = 0
    segments: int = 0
    across: int = 0
    down: int = 0
    bars: list[Rect] = field(default_factory=list)

    def add(self, other: _Group) -> None:
        self.box = around(self.box, other.box)
        self.strokes += other.strokes
        self.segments += other.segments
        self.across += other.across
        self.down += other.down
        self.bars += other.bars


def find_plots(
    drawn: Drawn,
    lines: tuple[Line, ...],
    width: float,
    height: float,
    page: int,
    tables: Sequence[Line],
    letters: Letters | None = None,
) -> Iterator[FoundPlot]:
    """Each plot, with the lines that are left besides it and those before."""
    if not drawn.drawings and len(drawn.fills) < _MIN_BARS:
        return
    for group in _groups(drawn, width, height, tables):
        if not is_large(group.box):
            continue
        has_axes = _has_axes(group)
        if not has_axes and group.strokes < MIN_STROKES:
            continue
        inside = [line for line in lines if holds(group.box, line)]
        if not has_few_words(group.box, inside, _MAX_COVERED if has_axes else _MAX_COVERED_OF_STROKES):
            continue
        if _is_table(tuple(inside), page, letters):
            continue
        box, words = _with_labels(group.box, inside, lines)
        lines = tuple([line for line in lines if not any(line is word for word in words)])
        yield FoundPlot(to_figure(box, page, words), lines)


def _groups(drawn: Drawn, width: float, height: float, tables: Sequence[Line]) -> list[_Group]:
    parts = [
        _Group(box, strokes=1, segments=segments)
        for box, segments in zip(drawn.drawings, drawn.segments, strict=True)
        if not is_whole(box, width, height)
    ]
    parts += [_Group(box, bars=[box]) for box in drawn.fills if not is_whole(box, width, height)]
    parts = [part for part in parts if not any(is_inside(part.box, table) for table in tables)]
    if not parts:
        return []
    rules = [_Group((start, at, end, at), across=end - start >= _MIN_AXIS) for at, start, end in drawn.across]
    rules += [_Group((at, start, at, end), down=end - start >= _MIN_AXIS) for at, start, end in drawn.down]
    rules = [rule for rule in rules if not _is_of_page(rule.box, width, height)]
    rules = [rule for rule in rules if not any(is_inside(rule.box, table) for table in tables)]
    # A frame joins as a whole: its far side may be far from what is drawn in it.
    near = [box for box, _ in find_groups([part.box for part in parts], _GAP)]
    frames = _joined(rules, _NEAR)[:_MAX_FRAMES]
    return _joined([*parts, *(each for each in frames if any(touches(each.box, box, 2 * _GAP) for box in near))], _GAP)


def _joined(parts: Sequence[_Group], gap: float) -> list[_Group]:
    """The groups of those that touch."""
    boxes = [box for box, _ in find_groups([part.box for part in parts], gap)]
    # Boxes that have grown may touch others by then.
    groups = [_Group(box) for box, _ in find_groups(boxes, gap)]
    for part in parts:
        group = next((each for each in groups if touches(part.box, each.box, 0.0)), None)
        if group is not None:
            group.add(part)
    return groups


def _is_of_page(rule: Rect, width: float, height: float) -> bool:
    return rule[2] - rule[0] >= _WIDE * width or rule[3] - rule[1] >= _WIDE * height


def _has_axes(group: _Group) -> bool:
    if group.across and group.down and group.segments >= _MIN_SEGMENTS:
        return True
    return (group.across > 0 or group.down > 0) and _are_bars(group.bars)


def _is_table(inside: tuple[Line, ...], page: int, letters: Letters | None) -> bool:
    """Whether most of what stands in a box is a table, of which the box is an ornament."""
    left = min([len(found.lines) for found in find_aligned(inside, page, letters)], default=len(inside))
    return 2 * left < len(inside)


def _are_bars(boxes: Sequence[Rect]) -> bool:
    """Whether several stand on one line, and are of the same breadth and of different lengths."""
    for foot, start, end in ((3, 0, 2), (0, 1, 3)):
        for box in boxes:
            bars = [
                other
                for other in boxes
                if abs(other[foot] - box[foot]) <= _NEAR
                and abs((other[end] - other[start]) - (box[end] - box[start])) <= _NEAR
            ]
            if len(bars) >= _MIN_BARS and len({round(bar[foot - 2]) for bar in bars}) >= _MIN_BARS:
                return True
    return False


def _with_labels(box: Rect, inside: list[Line], lines: Sequence[Line]) -> tuple[Rect, list[Line]]:
    """The box with the labels at the axes, and then with their names; and the lines of all of these."""
    words = [line for line in inside if not names_item(line.text)]
    for reach, is_one in ((_LABEL_REACH, _is_label), (_NAME_REACH, _is_name)):
        held = {id(line) for line in words}
        found = [
            line
            for line in lines
            if id(line) not in held and _is_beside(box, line, reach) and is_one(line, box) and not names_item(line.text)
        ]
        for line in found:
            box = around(box, (line.left, line.top, line.right, line.bottom))
        words += found
    held = {id(line) for line in words}
    return box, [line for line in lines if id(line) in held]


def _is_beside(box: Rect, line: Line, reach: float) -> bool:
    return touches((line.left, line.top, line.right, line.bottom), box, reach * min(max(line.size, 1.0), 14.0))


def _is_label(line: Line, box: Rect) -> bool:
    """A few words, or a row of numbers, within the breadth or the height of the axes."""
    if len(line.text.split()) > _LABEL_WORDS and not is_ticks(line):
        return False
    slack = 2 * line.size
    within = line.left >= box[0] - slack and line.right <= box[2] + slack
    return (within and (line.bottom >= box[3] or line.top <= box[1]) and is_ticks(line)) or (
        line.top >= box[1] - slack and line.bottom <= box[3] + slack and is_ticks(line)
    )


def _is_name(line: Line, box: Rect) -> bool:
    """Centred at a side of the box, in plain type."""
    if line.bold or len(line.text.split()) > _NAME_WORDS:
        return False
    x = abs((line.left + line.right) - (box[0] + box[2])) / 2
    y = abs((line.top + line.bottom) - (box[1] + box[3])) / 2
    tall = line.bottom - line.top > 1.5 * (line.right - line.left)
    if tall or line.right <= box[0] or line.left >= box[2]:
        return tall and y <= _CENTRED * (box[3] - box[1]) + line.size
    return line.right - line.left <= box[2] - box[0] and x <= _CENTRED * (box[2] - box[0])
