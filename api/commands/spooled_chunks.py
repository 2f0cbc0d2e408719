"""The chunks of a long file, kept on disk and not in memory until they are shown."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator

import msgspec

from rag.flow.chunk import Chunk
from rag.svr.parser_protocol import ParsedChunk

_LENGTH_BYTES = 8
_IN_MEMORY_BYTES = 16 << 20


class SpooledChunks:
    """Added at the end, read from the start as often as one likes. Without their search terms, which are the index's
    own."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115 - close() is its end
        self._count = 0

    def add(self, chunks: Iterable[ParsedChunk]) -> None:
        self._file.seek(0, 2)
        for chunk in chunks:
            packed = msgspec.msgpack.encode({name: getattr(chunk, name) for name in Chunk.__struct_fields__})
            self._file.write(len(packed).to_bytes(_LENGTH_BYTES, "big") + packed)
            self._count += 1

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Chunk]:
        decoder, at = msgspec.msgpack.Decoder(Chunk), 0
        for _ in range(self._count):
            self._file.seek(at)
            length = int.from_bytes(self._file.read(_LENGTH_BYTES), "big")
            yield decoder.decode(self._file.read(length))
            at += _LENGTH_BYTES + length

    def close(self) -> None:
        self._file.close()
