"""From pieces of text to chunks: as few as the limit allows, evenly, with the tail of the one before if asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rag.flow.chunk import Chunk
from rag.flow.tokens import Scale
from rag.parser.blocks import Block, BlockKind, Box, Picture

_CONTEXT = (BlockKind.HEADING, BlockKind.CAPTION)


class Piece(NamedTuple):
    """A block, or a part of one that is too large; parts of a block in a row make up its text.

    Text that was made for the block (the markup of a table) has its `boxes` beside it, and starts nowhere."""

    text: str
    tokens: int
    block: Block
    start: int = 0
    boxes: tuple[Box, ...] | None = None

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Atom(NamedTuple):
    """Pieces that stay together: headings and what follows them. `order` is their place in the document."""

    pieces: list[Piece]
    tokens: int
    headings: tuple[str, ...]
    order: int = 0


class Look(NamedTuple):
    """What all chunks of a part have: text in front of each, its size, places, the picture, the tags, the kind."""

    prefix: str = ""
    prefix_tokens: int = 0
    boxes: tuple[Box, ...] = ()
    picture: Picture | None = None
    tags: tuple[str, ...] = ()
    kind: str = ""


NO_LOOK = Look()


def even_groups(sizes: Sequence[int], limit: int) -> Iterator[tuple[int, int]]:
    """As few groups as the limit allows, and of these the ones whose largest is smallest; as (first, end)."""
    if not sizes:
        return
    if sum(sizes) <= limit:
        yield 0, len(sizes)
        return
    fewest = _groups_needed(sizes, limit)
    low, high = max(*sizes, -(-sum(sizes) // fewest)), limit
    while low < high:
        middle = (low + high) // 2
        if _groups_needed(sizes, middle) <= fewest:
            high = middle
        else:
            low = middle + 1
    first, size = 0, 0
    for position, each in enumerate(sizes):
        if position > first and size + each > low:
            yield first, position
            first, size = position, 0
        size += each
    yield first, len(sizes)


def pack(atoms: Sequence[Atom], limit: int, overlap: int, scale: Scale) -> Iterator[list[Atom]]:
    """Groups of atoms, a chunk each. Up to `overlap` tokens of the limit are taken over from the group before."""
    before: list[Atom] = []
    for first, end in even_groups([atom.tokens for atom in atoms], limit - overlap if overlap else limit):
        group = list(atoms[first:end])
        # An atom that is larger than what the overlap leaves free gets less of it.
        free = min(overlap, limit - sum(atom.tokens for atom in group))
        if before and free > 0:
            group = _tail(before, free, scale) + group
        yield group
        before = group


def to_chunk(atoms: Sequence[Atom], look: Look = NO_LOOK) -> Chunk:
    text = ""
    boxes: list[Box] = list(look.boxes)
    tokens = look.prefix_tokens
    paths: dict[tuple[str, ...], int] = {}
    kinds: set[BlockKind] = set()
    kind: BlockKind | None = None
    # The first of pieces that make up a part of a block, and where in the block the last of them ends.
    first: Piece | None = None
    end = 0
    for atom in atoms:
        paths[atom.headings] = paths.get(atom.headings, 0) + atom.tokens
        tokens += atom.tokens
        for piece in atom.pieces:
            own, _, block, start, _ = piece
            if block.kind is not kind:
                kind = block.kind
                kinds.add(kind)
            if first is not None and block is first.block and start == end:
                text += own
            else:
                if first is not None:
                    boxes += _boxes(first, end)
                first = piece
                text = text.rstrip() + "\n" + own
            end = start + len(own)
    if first is not None:
        boxes += _boxes(first, end)
    return Chunk(
        text=look.prefix + text.strip(),
        tokens=tokens,
        page=_page(atoms[0].pieces[0]),
        boxes=tuple(dict.fromkeys(boxes)),
        # The section that most of it belongs to: a chunk may begin with a page's running title.
        headings=max(paths, key=paths.__getitem__),
        kind=look.kind or _kind(kinds),
        picture=look.picture,
        tags=look.tags,
    )


def _tail(atoms: Sequence[Atom], most: int, scale: Scale) -> list[Atom]:
    """The end of the running text of a group, as an atom of its own; nothing where it ends with a table or a figure."""
    taken: list[Piece] = []
    free = most
    for piece in (piece for atom in reversed(atoms) for piece in reversed(atom.pieces)):
        if piece.boxes is not None or piece.block.kind in (BlockKind.FIGURE, BlockKind.HEADING) or free <= 0:
            break
        if piece.tokens <= free:
            taken.insert(0, piece)
            free -= piece.tokens
            continue
        text, tokens = scale.tail(piece.text, free)
        if text:
            taken.insert(0, Piece(text, tokens, piece.block, piece.end - len(text)))
        break
    if not taken:
        return []
    return [Atom(taken, sum(piece.tokens for piece in taken), atoms[-1].headings, atoms[-1].order)]


def _groups_needed(sizes: Sequence[int], limit: int) -> int:
    groups, size = 1, 0
    for each in sizes:
        if size and size + each > limit:
            groups, size = groups + 1, 0
        size += each
    return groups


def _page(piece: Piece) -> int:
    """Where it starts: the block that it is a part of may have started on the page before."""
    places = piece.block.boxes_of(piece.start, piece.end) if piece.start > 0 else ()
    return places[0].page if places else piece.block.page


def _boxes(first: Piece, end: int) -> tuple[Box, ...]:
    """Of the pieces of a block from this one on that end there."""
    return first.block.boxes_of(first.start, end) if first.boxes is None else first.boxes


def _kind(kinds: set[BlockKind]) -> str:
    """Headings and captions are what a table or an image is called by: they do not make it text."""
    if BlockKind.TABLE in kinds and kinds.issubset((BlockKind.TABLE, *_CONTEXT)):
        return "table"
    if BlockKind.FIGURE in kinds and kinds.issubset((BlockKind.FIGURE, *_CONTEXT)):
        return "image"
    return "text"
