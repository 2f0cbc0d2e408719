"""The places of a block's text: one box around its lines in each column of each page."""

from __future__ import annotations

from rag.parser.blocks import Block, BlockKind, Box, PlacedLine

_ABOVE, _BELOW = Box(1, 72, 300, 700, 712), Box(1, 60, 310, 714, 726)
_NEXT_COLUMN, _NEXT_PAGE = Box(1, 320, 540, 80, 92), Box(2, 72, 300, 80, 92)


def _block(*boxes: Box) -> Block:
    lines = tuple(PlacedLine(10 * number, box) for number, box in enumerate(boxes))
    return Block(kind=BlockKind.PARAGRAPH, text="x" * 10 * len(boxes), page=1, lines=lines)


def test_lines_below_each_other_have_one_box() -> None:
    assert _block(_ABOVE, _BELOW).boxes == (Box(1, 60, 310, 700, 726),)


def test_the_next_column_and_the_next_page_have_boxes_of_their_own() -> None:
    found = _block(_ABOVE, _BELOW, _NEXT_COLUMN, _NEXT_PAGE).boxes
    assert found == (Box(1, 60, 310, 700, 726), _NEXT_COLUMN, _NEXT_PAGE)


def test_a_part_of_the_text_has_the_boxes_of_its_lines() -> None:
    block = _block(_ABOVE, _BELOW, _NEXT_COLUMN)
    assert block.boxes_of(0, 10) == (_ABOVE,)
    assert block.boxes_of(5, 11) == (Box(1, 60, 310, 700, 726),)
    assert block.boxes_of(10, 30) == (_BELOW, _NEXT_COLUMN)


def test_an_empty_line_at_either_end_has_no_box() -> None:
    lines = tuple(PlacedLine(start, box) for start, box in ((0, _ABOVE), (0, _BELOW), (8, _NEXT_PAGE)))
    block = Block(kind=BlockKind.PARAGRAPH, text="x" * 8, page=1, lines=lines)
    assert block.boxes == (_BELOW,)


def test_text_without_a_place_has_no_box() -> None:
    assert _block().boxes == ()
