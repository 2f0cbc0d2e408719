"""From blocks to chunks: packs the blocks of a page evenly into as few chunks as the token limit allows.

Starts anew with every page, and every ROW_GROUP rows of a sheet, and keeps nothing from one to the next:
chunks do not depend on how a document is split. Reading files and counting tokens are left to others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from tokenizers import Tokenizer

from rag.flow.chunk import Chunk, ChunkSettings
from rag.flow.split import ROW_GROUP
from rag.parser.blocks import Block, BlockKind, Box, Heading, Profile, Unit

CountTokens = Callable[[Sequence[str]], list[int]]

_BATCH_CHARS = 200_000
_MAX_TITLE = 200
# A "word" of hundreds of characters is one unknown token to most models; its size must count nevertheless.
_MAX_CHARS_PER_TOKEN = 16
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f\uff1b])")
_WORD = re.compile(r"\s+")


class _Piece(NamedTuple):
    """A block, or a part of one that is too large; parts of a block in a row make up its text."""

    text: str
    tokens: int
    block: Block
    start: int = 0

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class _Atom(NamedTuple):
    """Pieces that stay together: headings and what follows them."""

    pieces: list[_Piece]
    tokens: int
    headings: tuple[str, ...]


def token_counter(tokenizer: Tokenizer) -> CountTokens:
    """Counts the tokens of many texts at once, in batches that keep the tokenizer's memory small."""

    def count(texts: Sequence[str]) -> list[int]:
        counts: list[int] = []
        for batch in _batches(texts):
            counts += [len(found.ids) for found in tokenizer.encode_batch_fast(batch, add_special_tokens=False)]
        return counts

    return count


class Chunker:
    """Cuts the blocks of one document's range."""

    def __init__(self, count: CountTokens, settings: ChunkSettings, profile: Profile) -> None:
        self._count = count
        self._limit = max(1, settings.chunk_token_num)
        self._profile = profile
        # Where a block that is too large is cut, best first: at every match, or at every so many.
        self._cuts = (
            *((pattern, 1) for pattern in _delimiter_pattern(settings.delimiter)),
            (_SENTENCE, 1),
            (_WORD, max(1, self._limit // 16)),
            (_WORD, 1),
        )

    def chunk(self, blocks: Iterable[Block]) -> Iterator[Chunk]:
        """The chunks of `blocks`, which come in reading order. No character but white space is lost."""
        for _, group in groupby(blocks, key=self._group):
            atoms = self._atoms(list(group))
            for members in _pack(atoms, self._limit):
                chunk = _to_chunk(members)
                if chunk.text:
                    yield chunk

    def _group(self, block: Block) -> int:
        return (block.page - 1) // ROW_GROUP if self._profile.unit is Unit.ROW else block.page

    def _atoms(self, blocks: Sequence[Block]) -> list[_Atom]:
        path = _Path(self._profile.outline, blocks[0].page)
        atoms: list[_Atom] = []
        held: list[_Piece] = []
        for piece in self._pieces(blocks):
            if piece.block.kind is BlockKind.HEADING:
                path.enter(piece.block)
                held.append(piece)
                continue
            tokens = sum(each.tokens for each in held)
            if held and tokens + piece.tokens > self._limit:
                atoms += [_Atom([each], each.tokens, path.titles) for each in held]
                held, tokens = [], 0
            atoms.append(_Atom([*held, piece], tokens + piece.tokens, path.titles))
            held = []
        return atoms + [_Atom([each], each.tokens, path.titles) for each in held]

    def _pieces(self, blocks: Sequence[Block]) -> Iterator[_Piece]:
        for block, tokens in zip(blocks, self._weigh([block.text for block in blocks]), strict=True):
            if tokens <= self._limit:
                yield _Piece(block.text, tokens, block)
                continue
            start = 0
            for text, part_tokens in self._divide(block.text, 0):
                yield _Piece(text, part_tokens, block, start)
                start += len(text)

    def _divide(self, text: str, depth: int) -> Iterator[tuple[str, int]]:
        """Parts of at most the limit: cut at delimiters, else at sentences, else at words, else anywhere."""
        if depth < len(self._cuts):
            parts = _cut(text, *self._cuts[depth])
            if len(parts) == 1:
                yield from self._divide(text, depth + 1)
                return
        else:
            step = max(1, self._limit // 4)
            parts = [text[start : start + step] for start in range(0, len(text), step)]
        held, held_tokens = "", 0
        for part, tokens in zip(parts, self._weigh(parts), strict=True):
            # Small parts are joined to quarters of a chunk: enough to cut evenly by, and far fewer.
            if held and held_tokens + tokens > max(1, self._limit // 4):
                yield held, held_tokens
                held, held_tokens = "", 0
            if tokens > self._limit and depth < len(self._cuts):
                yield from self._divide(part, depth + 1)
            else:
                held, held_tokens = held + part, held_tokens + tokens
        if held:
            yield held, held_tokens

    def _weigh(self, texts: Sequence[str]) -> list[int]:
        return [
            max(tokens, -(-len(text.rstrip()) // _MAX_CHARS_PER_TOKEN))
            for text, tokens in zip(texts, self._count(texts), strict=True)
        ]


class _Path:
    """The headings above a place: the outline's from the pages before, then those met on the page itself."""

    def __init__(self, outline: Sequence[Heading], page: int) -> None:
        self._stack: list[tuple[int, str]] = []
        for entry in outline:
            if entry.page < page:
                self._push(entry.level, entry.title)

    def enter(self, block: Block) -> None:
        self._push(block.level, block.text)

    @property
    def titles(self) -> tuple[str, ...]:
        return tuple(title for _, title in self._stack)

    def _push(self, level: int, title: str) -> None:
        while self._stack and self._stack[-1][0] >= level:
            self._stack.pop()
        self._stack.append((level, title[:_MAX_TITLE]))


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and size + len(text) > _BATCH_CHARS:
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _delimiter_pattern(delimiter: str) -> tuple[re.Pattern[str], ...]:
    """One pattern for all delimiters: each character is one, and so is a string between backticks."""
    strings = [quoted for quoted in re.findall(r"`([^`]+)`", delimiter) if quoted]
    strings += list(re.sub(r"`[^`]+`", "", delimiter).replace("`", ""))
    if not strings:
        return ()
    return (re.compile("|".join(re.escape(each) for each in sorted(set(strings), key=len, reverse=True))),)


def _cut(text: str, pattern: re.Pattern[str], every: int) -> list[str]:
    """The text in parts that each end with a match, or with every so many."""
    ends = [match.end() for match in pattern.finditer(text) if 0 < match.end() < len(text)][every - 1 :: every]
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]


def _pack(atoms: Sequence[_Atom], limit: int) -> Iterator[list[_Atom]]:
    """As few groups as the limit allows, and of these the ones whose largest is smallest: evenly."""
    sizes = [atom.tokens for atom in atoms]
    fewest = _groups_needed(sizes, limit)
    low, high = max(*sizes, -(-sum(sizes) // fewest)), limit
    while low < high:
        middle = (low + high) // 2
        if _groups_needed(sizes, middle) <= fewest:
            high = middle
        else:
            low = middle + 1
    group: list[_Atom] = []
    size = 0
    for atom in atoms:
        if group and size + atom.tokens > low:
            yield group
            group, size = [], 0
        group.append(atom)
        size += atom.tokens
    yield group


def _groups_needed(sizes: Sequence[int], limit: int) -> int:
    groups, size = 1, 0
    for each in sizes:
        if size and size + each > limit:
            groups, size = groups + 1, 0
        size += each
    return groups


def _to_chunk(atoms: Sequence[_Atom]) -> Chunk:
    pieces = [piece for atom in atoms for piece in atom.pieces]
    text = ""
    boxes: list[Box] = []
    paths: Counter[tuple[str, ...]] = Counter()
    for atom in atoms:
        paths[atom.headings] += atom.tokens
    for block, group in _by_block(pieces):
        text = text.rstrip() + "\n" + "".join(piece.text for piece in group)
        boxes += block.boxes_of(group[0].start, group[-1].end)
    return Chunk(
        text=text.strip(),
        tokens=sum(piece.tokens for piece in pieces),
        page=pieces[0].block.page,
        boxes=tuple(dict.fromkeys(boxes)),
        # The section that most of it belongs to: a chunk may begin with a page's running title.
        headings=max(paths, key=paths.__getitem__),
        kind="table" if all(piece.block.kind is BlockKind.TABLE for piece in pieces) else "text",
    )


def _by_block(pieces: Sequence[_Piece]) -> Iterator[tuple[Block, list[_Piece]]]:
    """The pieces of each block, in a row."""
    for _, group in groupby(pieces, key=lambda piece: id(piece.block)):
        members = list(group)
        yield members[0].block, members
