"""What a chunker gives, and the settings it follows."""

from __future__ import annotations

import msgspec

from rag.parser.blocks import Box


class ChunkSettings(msgspec.Struct, frozen=True):
    """The part of a document's parser_config that decides where chunks end."""

    method: str = "naive"
    chunk_token_num: int = 512
    delimiter: str = "\n"


class Chunk(msgspec.Struct, frozen=True):
    """A piece of a document that is found as one. `page` is the first page it stands on, from 1."""

    text: str
    tokens: int
    page: int
    boxes: tuple[Box, ...] = ()
    headings: tuple[str, ...] = ()
    kind: str = "text"
