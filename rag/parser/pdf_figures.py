"""Figures of a PDF page: pictures of some size, and drawings of many strokes, each once and in its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag.parser.blocks import Block, BlockKind, Picture
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
_MIN_STROKES = 6
_MAX_GROUPS = 400


def has_picture(drawn: Drawn, width: float, height: float) -> bool:
    """Whether there is a picture that may be the page's text: a scan, or most of one."""
    pictures = (box for box, _ in _grouped(drawn.pictures, _TILE_GAP))
    return any((box[2] - box[0]) * (box[3] - box[1]) >= _PART_OF_PAGE * width * height > 0 for box in pictures)


def find_figures(drawn: Drawn, width: float, height: float, page: int, tables: Sequence[Line]) -> Iterator[Line]:
    """A place for each figure that is no scan or background of the page, and no part of a table."""
    boxes = [box for box, _ in _grouped(drawn.pictures, _TILE_GAP)]
    for box, strokes in _grouped(drawn.drawings, _STROKE_GAP):
        if strokes >= _MIN_STROKES:
            boxes.append(box)
    for box, _ in _grouped([box for box in boxes if not _is_whole(box, width, height)], 0.0):
        if _is_large(box) and not any(_is_inside(box, table) for table in tables):
            yield to_figure(box, page)


def to_figure(box: Rect, page: int) -> Line:
    left, top, right, bottom = box
    block = Block(kind=BlockKind.FIGURE, text="", page=page, picture=Picture(box=box_of(page, box)))
    return Line("", left, right, top, bottom, top, 0.0, block=block)


def _grouped(boxes: Sequence[Rect], gap: float) -> list[tuple[Rect, int]]:
    """The boxes around groups of those that touch, and how many are in each."""
    groups: list[tuple[Rect, int]] = []
    for box in boxes:
        count = 1
        # Parts of a figure mostly come one after the other: the last groups are the likeliest.
        for position in range(len(groups) - 1, max(-1, len(groups) - _MAX_GROUPS - 1), -1):
            other, others = groups[position]
            if _touch(box, other, gap):
                box, count = _around(box, other), count + others
                del groups[position]
        groups.append((box, count))
    return groups


def _touch(one: Rect, other: Rect, gap: float) -> bool:
    return (
        one[0] <= other[2] + gap and other[0] <= one[2] + gap and one[1] <= other[3] + gap and other[1] <= one[3] + gap
    )


def _around(one: Rect, other: Rect) -> Rect:
    return min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])


def _is_large(box: Rect) -> bool:
    width, height = box[2] - box[0], box[3] - box[1]
    return min(width, height) >= _MIN_SIDE and width * height >= _MIN_AREA


def _is_whole(box: Rect, width: float, height: float) -> bool:
    return (box[2] - box[0]) * (box[3] - box[1]) >= _WHOLE_PAGE * width * height > 0


def _is_inside(box: Rect, table: Line) -> bool:
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return table.left <= x <= table.right and table.top <= y <= table.bottom
