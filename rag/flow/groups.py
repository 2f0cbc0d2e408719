"""The stream of a document's blocks in groups that are cut into chunks each on its own, so that an edit changes the
chunks of one group only, and so that chunks do not depend on how a document is split into ranges."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain, groupby
from zlib import crc32

from rag.flow.split import ROW_GROUP
from rag.parser.blocks import Block, BlockKind, Profile, Unit

# A file without pages is one group up to this size, about sixteen chunks.
SMALL_CHARS = 32_768
# No group is larger: memory and the time to pack it stay bounded.
_MAX_CHARS = 2 << 20
_SECTION_LEVEL = 2
# A section shorter than this does not make its neighbour start a group, except by its title (one of sixteen).
_LEAST_SECTION_CHARS = 2048
_TITLE_MASK = 15
_PARAGRAPH_MASK = 63
_RUNNING = (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM, BlockKind.CODE)


def groups(blocks: Iterable[Block], profile: Profile, *, whole: bool, paired: bool) -> Iterator[list[Block]]:
    """Pages, slides, ROW_GROUP rows of a sheet, or sections. `whole`: one group. `paired`: what belongs together may
    be far apart, so groups start at headings only."""
    if whole:
        everything = list(blocks)
        if everything:
            yield everything
    elif profile.unit is Unit.ROW:
        starts = list(accumulate((sheet.rows for sheet in profile.sheets), initial=0))
        for _, rows in groupby(blocks, key=lambda block: _row_group(block.page - 1, starts)):
            yield list(rows)
    elif profile.unit is Unit.WHOLE:
        yield from _sections(blocks, paired)
    else:
        for _, page in groupby(blocks, key=lambda block: block.page):
            yield list(page)


def _row_group(row: int, sheet_starts: list[int]) -> tuple[int, int]:
    return bisect_right(sheet_starts, row), row // ROW_GROUP


def _sections(blocks: Iterable[Block], paired: bool) -> Iterator[list[Block]]:
    """A small file is one group. In a large one, whether a block starts a group is told by it and the section before
    it alone: after an edit, all others are what they were."""
    source = iter(blocks)
    head: list[Block] = []
    size = 0
    for block in source:
        head.append(block)
        size += len(block.text)
        if size > SMALL_CHARS:
            break
    else:
        if head:
            yield head
        return
    group: list[Block] = []
    size = section = 0
    for block in chain(head, source):
        # A heading stays with what follows it.
        ended = bool(group) and group[-1].kind is not BlockKind.HEADING
        if ended and (size > _MAX_CHARS or _starts_group(block, section, paired)):
            yield group
            group, size = [], 0
        if block.kind is BlockKind.HEADING and block.level <= _SECTION_LEVEL:
            section = 0
        group.append(block)
        size += len(block.text)
        section += len(block.text)
    yield group


def _starts_group(block: Block, section: int, paired: bool) -> bool:
    """Sections do; and where they are tiny or endless, some blocks that their own text picks."""
    if block.kind is BlockKind.HEADING:
        if block.level > _SECTION_LEVEL:
            return False
        return section >= _LEAST_SECTION_CHARS or _hash(block) & _TITLE_MASK == 0
    return not paired and block.kind in _RUNNING and _hash(block) & _PARAGRAPH_MASK == 0


def _hash(block: Block) -> int:
    return crc32(block.text[:256].encode("utf-8", "replace"))
