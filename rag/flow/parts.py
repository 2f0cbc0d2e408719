"""What a chunk method makes of a group of blocks: parts that no chunk mixes, and blocks cut in two."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from rag.parser.blocks import Block, BlockKind, Box, Picture, PlacedLine


class Title(NamedTuple):
    """A heading that is no block of its own: it holds from the block at `at`."""

    at: int
    level: int
    text: str


class Part(NamedTuple):
    """Blocks that are packed into chunks of their own.

    `limit` 0 is the one of the settings. `inline`: tables and figures stay where they stand in the text. `prefix` is
    in front of every chunk of the part, `prefix_boxes` is where it stands, and `headed_by` the headings among what it
    was made of. `kind` is told by the blocks if empty. `alone`: never joined to another."""

    blocks: Sequence[Block]
    limit: int = 0
    inline: bool = False
    alone: bool = False
    prefix: str = ""
    prefix_boxes: tuple[Box, ...] = ()
    headed_by: Sequence[Block] = ()
    picture: Picture | None = None
    kind: str = ""
    tags: tuple[str, ...] = ()
    titles: tuple[Title, ...] = ()


def cut_block(block: Block, starts: Sequence[int]) -> list[Block]:
    """The block in parts that begin at these places of its text, and at 0."""
    if not starts:
        return [block]
    borders = [0, *starts, len(block.text)]
    return [slice_block(block, start, end) for start, end in pairwise(borders)]


def slice_block(block: Block, start: int, end: int) -> Block:
    """A part of the block's text, with the lines that it stands on."""
    lines: list[PlacedLine] = []
    for number, line in enumerate(block.lines):
        after = block.lines[number + 1].start if number + 1 < len(block.lines) else len(block.text)
        if line.start < end and after > start:
            lines.append(PlacedLine(max(0, line.start - start), line.box))
    page = lines[0].box.page if lines else block.page
    return msgspec.structs.replace(block, text=block.text[start:end], page=page, lines=tuple(lines))


def with_prefix_as_text(part: Part) -> Part:
    """For a prefix so large that it would leave no room for anything else."""
    lines = tuple(PlacedLine(0, box) for box in part.prefix_boxes)
    first = part.blocks[0]
    prefix = Block(kind=BlockKind.PARAGRAPH, text=part.prefix, page=first.page, lines=lines)
    return part._replace(blocks=[prefix, *part.blocks], prefix="", prefix_boxes=())
