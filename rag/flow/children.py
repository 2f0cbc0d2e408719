"""Parents and children: a chunk is shown, and found by the smaller ones it is cut into."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from rag.flow.chunk import Chunk
from rag.flow.packing import Atom, Piece, to_chunk
from rag.flow.tokens import Scale, cut, delimiter_pattern


class ChildCutter:
    def __init__(self, delimiter: str, scale: Scale) -> None:
        self._pattern = delimiter_pattern(delimiter) if delimiter else None
        self._end = re.compile(rf"(?:{self._pattern.pattern})\Z") if self._pattern else None
        self._at_blocks = self._pattern is not None and bool(self._pattern.fullmatch("\n"))
        self._scale = scale

    def family(self, parent: Chunk, atoms: Sequence[Atom]) -> Iterator[Chunk]:
        """The parent and its children; or the chunk alone, where it is no text or the delimiter is not in it."""
        if self._pattern is None or parent.kind != "text":
            yield parent
            return
        families = [group for group in self._cut(atoms) if any(piece.text.strip() for piece in group)]
        if len(families) < 2:
            yield parent
            return
        yield msgspec.structs.replace(parent, is_parent=True)
        chunks = [to_chunk([Atom(group, 0, parent.headings)]) for group in families]
        weights = self._scale.weigh([chunk.text for chunk in chunks])
        for back, (chunk, tokens) in enumerate(zip(chunks, weights, strict=True), start=1):
            contents = parent.contents if back == 1 else ()
            yield msgspec.structs.replace(chunk, tokens=tokens, parent_back=back, tags=parent.tags, contents=contents)

    def _cut(self, atoms: Sequence[Atom]) -> Iterator[list[Piece]]:
        """Pieces up to each delimiter; the end of a block is one if line ends are."""
        group: list[Piece] = []
        for piece in (piece for atom in atoms for piece in atom.pieces):
            if group and self._at_blocks and not _continues(group[-1], piece):
                yield group
                group = []
            start = piece.start
            # Markup stays whole.
            texts = [piece.text] if piece.boxes is not None or self._pattern is None else cut(piece.text, self._pattern)
            for text in texts:
                group.append(piece._replace(text=text, start=start))
                start += len(text)
                if self._end is not None and piece.boxes is None and self._end.search(text):
                    yield group
                    group = []
        if group:
            yield group


def _continues(before: Piece, piece: Piece) -> bool:
    return piece.block is before.block and piece.start == before.end
