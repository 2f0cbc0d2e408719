"""What a parser gives: typed blocks with their place, and the profile of a document. Parsers know nothing
of chunk methods; chunkers know nothing of file kinds."""

from __future__ import annotations

from enum import StrEnum

import msgspec

# Goes into every task digest: raise it whenever the blocks or chunks of an unchanged file may change.
PARSER_VERSION = 1


class FileKind(StrEnum):
    PDF = "pdf"
    TEXT = "text"
    MARKDOWN = "markdown"
    CSV = "csv"


class Unit(StrEnum):
    """What a document is split by."""

    PAGE = "page"
    ROW = "row"
    WHOLE = "whole"


class BlockKind(StrEnum):
    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE = "table"
    CODE = "code"


class Box(msgspec.Struct, frozen=True, array_like=True):
    """A place on a page, in points from the top left; page counts from 1."""

    page: int
    left: int
    right: int
    top: int
    bottom: int


class Block(msgspec.Struct, frozen=True):
    """One piece of a document in reading order. `page` counts from 1 (the row for sheets, 1 for whole files)."""

    kind: BlockKind
    text: str
    page: int
    level: int = 0
    boxes: tuple[Box, ...] = ()


class Heading(msgspec.Struct, frozen=True):
    """An entry of the document's outline. `page` counts from 1."""

    title: str
    level: int
    page: int


class Profile(msgspec.Struct, frozen=True):
    """What `prepare` learns of a file once, and every range uses: never read again from the whole file."""

    kind: FileKind
    unit: Unit
    units: int
    title: str = ""
    author: str = ""
    encoding: str = ""
    body_size: float = 0.0
    outline: tuple[Heading, ...] = ()
    repeated_lines: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    parser_version: int = PARSER_VERSION
