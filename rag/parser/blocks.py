"""What a parser gives: typed blocks with their place, and the profile of a document. Parsers know nothing
of chunk methods; chunkers know nothing of file kinds."""

from __future__ import annotations

from enum import StrEnum
from itertools import zip_longest

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


class PlacedLine(msgspec.Struct, frozen=True, array_like=True):
    """Where a line of a block stands, and where in the block's text it starts."""

    start: int
    box: Box


class Block(msgspec.Struct, frozen=True):
    """One piece of a document in reading order. `page` counts from 1 (the row for sheets, 1 for whole files).

    `lines` is empty for kinds of file whose text has no place."""

    kind: BlockKind
    text: str
    page: int
    level: int = 0
    lines: tuple[PlacedLine, ...] = ()

    @property
    def boxes(self) -> tuple[Box, ...]:
        return self.boxes_of(0, len(self.text))

    def boxes_of(self, start: int, end: int) -> tuple[Box, ...]:
        """The place of this part of the text: one box around its lines in each column."""
        found: list[Box] = []
        above: Box | None = None
        for line, after in zip_longest(self.lines, self.lines[1:]):
            if line.start >= end or (after is not None and after.start <= start):
                continue
            if above is not None and line.box.bottom >= above.top:
                found[-1] = _around(found[-1], line.box)
            else:
                found.append(line.box)
            above = line.box
        return tuple(found)


def _around(one: Box, other: Box) -> Box:
    return Box(
        page=one.page,
        left=min(one.left, other.left),
        right=max(one.right, other.right),
        top=min(one.top, other.top),
        bottom=max(one.bottom, other.bottom),
    )


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
