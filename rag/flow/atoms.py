"""From the blocks of a part to atoms, which are not cut any further: running text in one row, and apart from it the
figures and the large tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rag.flow.arranging import Item, arrange
from rag.flow.headings import HeadingPath
from rag.flow.packing import Atom, Piece
from rag.flow.parts import Part
from rag.flow.tables import table_parts
from rag.flow.tokens import Scale
from rag.parser.blocks import Block, BlockKind, Picture

# A table larger than this share of a chunk gets chunks of its own.
_SMALL_TABLE = 4
# Looked up once: an enum takes its time to give a member.
_HEADING, _PARAGRAPH = BlockKind.HEADING, BlockKind.PARAGRAPH


class Special(NamedTuple):
    """Atoms that get chunks of their own."""

    atoms: list[Atom]
    picture: Picture | None = None


class AtomMaker:
    """`limit` is what a chunk takes, `fresh` what is left of it for text that is not taken over from the last."""

    def __init__(self, scale: Scale, *, rows: bool) -> None:
        self._scale = scale
        # The rows of sheets have the names of their columns in their text: they are no tables to be drawn.
        self._rows = rows

    def atoms(self, part: Part, path: HeadingPath, limit: int, fresh: int) -> tuple[list[Atom], list[Special]]:
        """Enters the part's headings into `path` on the way."""
        for heading in part.headed_by:
            if heading.kind is BlockKind.HEADING:
                path.enter(heading.level, heading.text)
        titles = {id(part.blocks[title.at]): title for title in part.titles}
        items = arrange(part.blocks)
        drawn = not self._rows
        weights = self._scale.weigh(
            ["" if drawn and item.block.table is not None else item.block.text for item in items]
        )
        flow: list[Atom] = []
        specials: list[Special] = []
        followed: list[bool] | None = None
        held: list[Piece] = []
        for order, (item, tokens) in enumerate(zip(items, weights, strict=True)):
            block = item.block
            if titles and (title := titles.get(id(block))):
                path.enter(title.level, title.text)
            if block.kind is _HEADING:
                path.enter(block.level, block.text)
                held += self._pieces(block, tokens, fresh)
                continue
            if tokens <= fresh and not held and block.kind is _PARAGRAPH and block.text:
                flow.append(Atom([Piece(block.text, tokens, block)], tokens, path.titles, order))
                continue
            pieces, apart = self._item(item, tokens, limit, fresh)
            if apart and not part.inline:
                followed = followed or _followed_by_text(items)
                mine, held = ([], held) if followed[order] else (held, [])
                atoms = list(_headed(mine, pieces, path.titles, order, limit))
                if pieces:
                    specials.append(Special(atoms, block.picture))
                else:
                    held = mine + held
                continue
            flow += _headed(held, pieces, path.titles, order, fresh)
            held = [] if pieces else held
        flow += [Atom([each], each.tokens, path.titles, len(items)) for each in held]
        return flow, specials

    def _item(self, item: Item, tokens: int, limit: int, fresh: int) -> tuple[list[Piece], bool]:
        """The pieces of a block and its captions, and whether they get chunks of their own."""
        block = item.block
        if self._is_drawn(block):
            return self._table(item, limit, fresh)
        pieces = self._pieces(block, tokens, fresh)
        if item.captions:
            texts = [caption.text for caption in item.captions]
            words = [
                piece
                for caption, weight in zip(item.captions, self._scale.weigh(texts), strict=True)
                for piece in self._pieces(caption, weight, fresh)
            ]
            pieces = pieces + words if block.kind is BlockKind.FIGURE else words + pieces
        return pieces, block.kind is BlockKind.FIGURE

    def _table(self, item: Item, limit: int, fresh: int) -> tuple[list[Piece], bool]:
        block = item.block
        if block.table is None:
            return [], False
        caption = " ".join(" ".join(each.text.split()) for each in item.captions)
        places = tuple(box for each in item.captions for box in each.boxes)
        parts = table_parts(block.table, caption, limit, self._scale)
        pieces = [
            Piece(part.text, part.tokens, block, -1, (*places, *(part.boxes or block.boxes)))
            for part in parts
            if part.text.strip()
        ]
        return pieces, sum(piece.tokens for piece in pieces) > min(limit // _SMALL_TABLE, fresh)

    def _is_drawn(self, block: Block) -> bool:
        return block.table is not None and not self._rows

    def _pieces(self, block: Block, tokens: int, limit: int) -> list[Piece]:
        if tokens <= limit:
            return [Piece(block.text, tokens, block)] if block.text else []
        pieces, start = [], 0
        for text, part_tokens in self._scale.divide(block.text, limit):
            pieces.append(Piece(text, part_tokens, block, start))
            start += len(text)
        return pieces


def _headed(
    held: Sequence[Piece], pieces: Sequence[Piece], titles: tuple[str, ...], order: int, limit: int
) -> Iterator[Atom]:
    """Headings stay with the first piece below them if there is room."""
    if held and pieces:
        tokens = sum(each.tokens for each in held) + pieces[0].tokens
        if tokens <= limit:
            yield Atom([*held, pieces[0]], tokens, titles, order)
            pieces = pieces[1:]
        else:
            yield from (Atom([each], each.tokens, titles, order) for each in held)
    for piece in pieces:
        yield Atom([piece], piece.tokens, titles, order)


def _followed_by_text(items: Sequence[Item]) -> list[bool]:
    """For each item, whether running text comes after it and before the next heading."""
    followed = [False] * len(items)
    after = False
    for position in range(len(items) - 1, -1, -1):
        followed[position] = after
        block = items[position].block
        if block.kind is BlockKind.HEADING:
            after = False
        elif block.kind is not BlockKind.FIGURE and block.table is None:
            after = True
    return followed
