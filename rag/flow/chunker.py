"""From blocks to chunks: the chunk method makes parts of each group of blocks, and each part is packed evenly into
as few chunks as the token limit allows.

A group starts anew with every page, and every ROW_GROUP rows of a sheet, and keeps nothing from one to the next:
chunks do not depend on how a document is split. Reading files and counting tokens are left to others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rag.flow.atoms import AtomMaker, Special
from rag.flow.children import ChildCutter
from rag.flow.chunk import Chunk, ChunkSettings
from rag.flow.contents import OutlineContents, PartContents
from rag.flow.groups import groups
from rag.flow.headings import HeadingPath, OutlinePaths
from rag.flow.methods import CHILDLESS, PAIRED, WHOLE_DOCUMENT, parts_of
from rag.flow.packing import Atom, Look, pack, to_chunk
from rag.flow.parts import Part, with_prefix_as_text
from rag.flow.token_counter import CountTokens
from rag.flow.tokens import Scale
from rag.parser.blocks import Block, Profile, Unit

_MOST_OVERLAP_PERCENT = 90


class Chunker:
    """Cuts the blocks of one document's range."""

    def __init__(self, count: CountTokens, settings: ChunkSettings, profile: Profile) -> None:
        self._settings = settings
        self._profile = profile
        self._scale = Scale(count, settings.delimiter)
        self._most = max(1, settings.max_tokens)
        self._limit = max(1, min(settings.chunk_token_num, self._most))
        self._overlap_percent = min(max(settings.overlapped_percent, 0), _MOST_OVERLAP_PERCENT)
        delimiter = "" if settings.method in CHILDLESS else settings.children_delimiter
        self._children = ChildCutter(delimiter, self._scale)
        self._atoms = AtomMaker(self._scale, rows=profile.unit is Unit.ROW)
        self._outline = OutlineContents(profile.outline) if profile.outline else None
        self._paths = OutlinePaths(profile.outline)

    def chunk(self, blocks: Iterable[Block]) -> Iterator[Chunk]:
        """The chunks of `blocks`, which come in reading order. No character but white space is lost."""
        method = self._settings.method
        path = HeadingPath()
        one_path = self._profile.unit is Unit.WHOLE or method in WHOLE_DOCUMENT
        for group in groups(blocks, self._profile, whole=method in WHOLE_DOCUMENT, paired=method in PAIRED):
            if not one_path:
                path = self._path(group[0].page)
            chunks = self._of_group(group, path)
            if self._outline is None:
                yield from chunks
            else:
                yield from self._outline.of_pages(list(chunks), dict.fromkeys(block.page for block in group))

    def _of_group(self, group: Sequence[Block], path: HeadingPath) -> Iterator[Chunk]:
        for part in parts_of(self._settings, self._profile, group, self._limit, self._most, self._scale):
            yield from self._cut(part, path)

    def _path(self, page: int) -> HeadingPath:
        if self._profile.unit is not Unit.ROW:
            return self._paths.above(page)
        path = HeadingPath()
        for sheet in self._profile.sheets:
            page -= sheet.rows
            if page <= 0:
                path.enter(1, sheet.name)
                break
        return path

    def _cut(self, part: Part, path: HeadingPath) -> Iterator[Chunk]:
        look = Look(part.prefix, 0, part.prefix_boxes, part.picture, part.tags, part.kind)
        limit = min(part.limit or self._limit, self._most)
        if part.prefix:
            (tokens,) = self._scale.weigh([part.prefix])
            if tokens > limit // 2:
                yield from self._cut(with_prefix_as_text(part), path)
                return
            look = look._replace(prefix_tokens=tokens)
            limit -= tokens
        overlap = limit * self._overlap_percent // 100
        flow, specials = self._atoms.atoms(part, path, limit, limit - overlap)
        packed = pack(flow, limit, overlap, self._scale)
        contents = PartContents(part)
        if not specials:
            for atoms in packed:
                yield from self._family(atoms, look, contents)
            return
        for atoms, its_look in self._in_order(packed, look, specials, limit):
            yield from self._family(atoms, its_look, contents)

    def _in_order(
        self, text: Iterable[list[Atom]], look: Look, specials: Sequence[Special], limit: int
    ) -> list[tuple[list[Atom], Look]]:
        """Running text, and what is apart from it, as they begin in the document."""
        found = [(atoms, look) for atoms in text]
        for special in specials:
            picture = special.picture
            place = (picture.box,) if picture and picture.box else ()
            apart = look._replace(picture=picture, boxes=look.boxes + place)
            found += [(atoms, apart) for atoms in pack(special.atoms, limit, 0, self._scale)]
        return sorted(found, key=lambda each: each[0][0].order)

    def _family(self, atoms: Sequence[Atom], look: Look, contents: PartContents) -> Iterator[Chunk]:
        chunk = to_chunk(atoms, look)
        if chunk.text:
            yield from self._children.family(contents.of_chunk(chunk, atoms), atoms)
