"""Figures of a PDF page: pictures of some size, and drawings of many strokes, each once and in its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag.parser.blocks import Block, BlockKind, Picture, PlacedLine
from rag.parser.layout import Line
from rag.parser.pdf_frame import Rect
from rag.parser.pdf_objects import Drawn
from rag.parser.pdf_tables import box_of

# Points: what is smaller is an icon or an ornament.
_MIN_SIDE = 36.0
_MIN_AREA = 72.0 * 60.0
# Of the page: a picture beyond is the scan of it, or its background.
_WHOLE_PAGE = 0.8
_PART_OF_PAGE = 0.1
# Tiles of one picture touch; strokes of a drawing leave gaps.
_TILE_GAP = 2.0
_STROKE_GAP = 12.0
MIN_STROKES = 6
_MAX_GROUPS = 400
# What lines of text may cover of a drawing; of its lines, those that may be long; and what a long one is.
_MAX_COVERED = 0.3
_MAX_LONG = 0.25
_LONG_WORDS = 7
_TICK_CHARS = 12


def has_picture(drawn: Drawn, width: float, height: float) -> bool:
    """Whether there is a picture that may be the page's text: a scan, or most of one."""
    pictures = (box for box, _ in find_groups(drawn.pictures, _TILE_GAP))
    return any((box[2] - box[0]) * (box[3] - box[1]) >= _PART_OF_PAGE * width * height > 0 for box in pictures)


def find_figures(
    drawn: Drawn, width: float, height: float, page: int, items: Sequence[Line], lines: Sequence[Line] = ()
) -> Iterator[Line]:
    """A place for each figure that is no scan or background of the page or its text, and no part of a table or plot."""
    boxes = [box for box, _ in find_groups(drawn.pictures, _TILE_GAP)]
    for box, strokes in find_groups(drawn.drawings, _STROKE_GAP):
        if strokes >= MIN_STROKES and has_few_words(box, [line for line in lines if holds(box, line)], _MAX_COVERED):
            boxes.append(box)
    for box, _ in find_groups([box for box in boxes if not is_whole(box, width, height)], 0.0):
        if is_large(box) and not any(is_inside(box, item) for item in items):
            yield to_figure(box, page)


def to_figure(box: Rect, page: int, words: Sequence[Line] = ()) -> Line:
    """A figure in its place, with the words that are written in it."""
    left, top, right, bottom = box
    place = box_of(page, box)
    text = " ".join([line.text + "-" if line.hyphened else line.text for line in words])
    lines = (PlacedLine(0, place),) if text else ()
    block = Block(kind=BlockKind.FIGURE, text=text, page=page, lines=lines, picture=Picture(box=place))
    return Line("", left, right, top, bottom, top, 0.0, block=block)


def find_groups(boxes: Sequence[Rect], gap: float) -> list[tuple[Rect, int]]:
    """The boxes around groups of those that touch, and how many are in each."""
    groups: list[tuple[Rect, int]] = []
    for box in boxes:
        count = 1
        # Parts of a figure mostly come one after the other: the last groups are the likeliest.
        for position in range(len(groups) - 1, max(-1, len(groups) - _MAX_GROUPS - 1), -1):
            other, others = groups[position]
            if touches(box, other, gap):
                box, count = around(box, other), count + others
                del groups[position]
        groups.append((box, count))
    return groups


def touches(one: Rect, other: Rect, gap: float) -> bool:
    return (
        one[0] <= other[2] + gap and other[0] <= one[2] + gap and one[1] <= other[3] + gap and other[1] <= one[3] + gap
    )


def around(one: Rect, other: Rect) -> Rect:
    return min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])


def is_large(box: Rect) -> bool:
    width, height = box[2] - box[0], box[3] - box[1]
    return min(width, height) >= _MIN_SIDE and width * height >= _MIN_AREA


def is_whole(box: Rect, width: float, height: float) -> bool:
    return (box[2] - box[0]) * (box[3] - box[1]) >= _WHOLE_PAGE * width * height > 0


def is_inside(box: Rect, table: Line) -> bool:
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return table.left <= x <= table.right and table.top <= y <= table.bottom


def holds(box: Rect, line: Line) -> bool:
    x, y = (line.left + line.right) / 2, (line.top + line.bottom) / 2
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]


def has_few_words(box: Rect, inside: Sequence[Line], most: float) -> bool:
    """Whether the lines cover no more than this of the box, and are short."""
    covered = sum([(line.right - line.left) * (line.bottom - line.top) for line in inside])
    if covered > most * (box[2] - box[0]) * (box[3] - box[1]):
        return False
    long = [line for line in inside if len(line.text.split()) >= _LONG_WORDS and not is_ticks(line)]
    return len(long) <= _MAX_LONG * len(inside)


def is_ticks(line: Line) -> bool:
    """Whether it is numbers, or one word, as stand along an axis."""
    words = line.text.split()
    if max(map(len, words), default=0) > _TICK_CHARS:
        return False
    return len(words) == 1 or all(any(letter.isdigit() for letter in word) for word in words)
