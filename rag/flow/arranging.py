"""The blocks of a part in the order they are packed: captions with what they caption, footnotes at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rag.parser.blocks import Block, BlockKind

_CAPTIONED = (BlockKind.FIGURE, BlockKind.TABLE)
_FIGURE_WORDS = ("fig", "abb", "image", "photo", "chart", "\u56fe", "\u5716")
_TABLE_WORDS = ("tab", "\u8868")
# The likeliest first.
_PLAIN = (BlockKind.PARAGRAPH, BlockKind.HEADING, BlockKind.LIST_ITEM, BlockKind.CODE)


class Item(NamedTuple):
    block: Block
    captions: tuple[Block, ...] = ()


def arrange(blocks: Sequence[Block]) -> list[Item]:
    if not [block for block in blocks if block.kind not in _PLAIN]:
        return list(map(Item, blocks))
    owners = _owners(blocks)
    captions: dict[int, list[Block]] = {}
    for position, owner in owners.items():
        captions.setdefault(owner, []).append(blocks[position])
    text: list[Item] = []
    notes: list[Item] = []
    for position, block in enumerate(blocks):
        if position in owners:
            continue
        item = Item(block, tuple(captions.get(position, ())))
        (notes if block.kind is BlockKind.FOOTNOTE else text).append(item)
    return text + notes


def _owners(blocks: Sequence[Block]) -> dict[int, int]:
    """For each caption that has one, the place of the figure or table it stands next to."""
    owners: dict[int, int] = {}
    for position, block in enumerate(blocks):
        if block.kind is not BlockKind.CAPTION:
            continue
        beside = [
            place
            for place in (position - 1, position + 1)
            if 0 <= place < len(blocks) and blocks[place].kind in _CAPTIONED
        ]
        wanted = _wanted(block.text)
        fitting = [place for place in beside if blocks[place].kind is wanted] or beside
        if len(fitting) == 2 and wanted is BlockKind.TABLE:
            fitting.reverse()  # the words of a table stand above it, those of a figure below
        if fitting:
            owners[position] = fitting[0]
    return owners


def _wanted(caption: str) -> BlockKind | None:
    start = caption[:16].strip().lower()
    if start.startswith(_FIGURE_WORDS):
        return BlockKind.FIGURE
    return BlockKind.TABLE if start.startswith(_TABLE_WORDS) else None
