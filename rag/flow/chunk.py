"""What a chunker gives, and the settings it follows."""

from __future__ import annotations

import msgspec

from rag.parser.blocks import Box, Heading, Picture


class ChunkSettings(msgspec.Struct, frozen=True):
    """The part of a document's parser_config that decides where chunks end.

    `max_tokens` is what the embedding model takes: no chunk is larger. `overlapped_percent` of a chunk's tokens are
    taken over from the one before. `children_delimiter` cuts chunks into children; empty: there are none."""

    method: str = "naive"
    chunk_token_num: int = 512
    delimiter: str = "\n"
    overlapped_percent: int = 0
    children_delimiter: str = ""
    html_tables: bool = False
    max_tokens: int = 2048


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """A piece of a document that is found as one. `page` is the first page it stands on, from 1.

    `kind` is "text", "table" or "image"; an image has its `picture`. `is_parent` marks a chunk that is not searched
    itself but shown for its children, which follow it: each says by `parent_back` how many chunks before it.
    `headings` is the way to the section that most of it belongs to; `contents` are the headings that stand in it."""

    text: str
    tokens: int
    page: int
    boxes: tuple[Box, ...] = ()
    headings: tuple[str, ...] = ()
    kind: str = "text"
    picture: Picture | None = None
    tags: tuple[str, ...] = ()
    is_parent: bool = False
    parent_back: int = 0
    contents: tuple[Heading, ...] = ()
