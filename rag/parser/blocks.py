"""What a parser gives: typed blocks with their place, and the profile of a document. Parsers know nothing
of chunk methods; chunkers know nothing of file kinds."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import zip_longest

import msgspec

# Goes into every task digest: raise it whenever the blocks or chunks of an unchanged file may change.
PARSER_VERSION = 8


class FileKind(StrEnum):
    PDF = "pdf"
    TEXT = "text"
    MARKDOWN = "markdown"
    CSV = "csv"
    SHEETS = "sheets"
    DOCX = "docx"
    ODT = "odt"
    RTF = "rtf"
    PPTX = "pptx"
    HTML = "html"
    EPUB = "epub"
    EMAIL = "email"
    MBOX = "mbox"
    JSON = "json"
    JSON_LINES = "json_lines"
    CODE = "code"
    IMAGE = "image"
    LEGACY_OFFICE = "legacy_office"


class Unit(StrEnum):
    """What a document is split by."""

    PAGE = "page"
    ROW = "row"
    SLIDE = "slide"
    WHOLE = "whole"


class BlockKind(StrEnum):
    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE = "table"
    FIGURE = "figure"
    CAPTION = "caption"
    FOOTNOTE = "footnote"
    CODE = "code"


class Box(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A place on a page, in points from the top left; page counts from 1."""

    page: int
    left: int
    right: int
    top: int
    bottom: int


class PlacedLine(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Where a line of a block stands, and where in the block's text it starts."""

    start: int
    box: Box


class Cell(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A cell of a table, where it starts; places that a span covers have none of their own."""

    text: str
    columns: int = 1
    rows: int = 1


class Table(msgspec.Struct, frozen=True, gc=False):
    """The cells of a table, row by row; the first `header_rows` name the columns.

    `places` are the boxes of the rows, or empty for kinds of file whose text has no place."""

    rows: tuple[tuple[Cell, ...], ...]
    header_rows: int = 0
    places: tuple[Box, ...] = ()


class Picture(msgspec.Struct, frozen=True, gc=False):
    """Where in its file a figure can be cut out again: a part of it by name, or a place on a page."""

    part: str = ""
    box: Box | None = None


class Block(msgspec.Struct, frozen=True, gc=False):
    """One piece of a document in reading order. `page` counts from 1 (the row for sheets, 1 for whole files); it is the
    first of a paragraph that runs over several, whose lines say where each part of it stands.

    `lines` is empty for kinds of file whose text has no place. A table has its cells in `table`, and their text row by
    row in `text`: cells parted by tabs, rows by line ends. A figure's `text` is what is written in it, if anything."""

    kind: BlockKind
    text: str
    page: int
    level: int = 0
    lines: tuple[PlacedLine, ...] = ()
    table: Table | None = None
    picture: Picture | None = None

    @property
    def boxes(self) -> tuple[Box, ...]:
        return self.boxes_of(0, len(self.text))

    def boxes_of(self, start: int, end: int) -> tuple[Box, ...]:
        """The place of this part of the text: one box around its lines in each column of each page."""
        lines = self.lines
        if not lines:
            return ()
        # Mostly it is all of the text, and no line of it is empty.
        if lines[-1].start >= end or (len(lines) > 1 and lines[1].start <= start):
            lines = tuple(
                line
                for line, after in zip_longest(lines, lines[1:])
                if line.start < end and (after is None or after.start > start)
            )
        return _around_columns(lines)


def _around_columns(lines: Sequence[PlacedLine]) -> tuple[Box, ...]:
    """A box around the lines of each column: a line above the one before it starts the next."""
    if len(lines) < 2:
        return tuple([line.box for line in lines])
    found: list[Box] = []
    box = lines[0].box
    page, left, right, top, bottom = box.page, box.left, box.right, box.top, box.bottom
    last_top = top
    for line in lines[1:]:
        box = line.box
        if box.page != page or box.bottom < last_top:
            found.append(Box(page, left, right, top, bottom))
            page, left, right, top, bottom = box.page, box.left, box.right, box.top, box.bottom
            last_top = top
            continue
        last_top = box.top
        if box.left < left:
            left = box.left
        if box.right > right:
            right = box.right
        if last_top < top:
            top = last_top
        if box.bottom > bottom:
            bottom = box.bottom
    found.append(Box(page, left, right, top, bottom))
    return tuple(found)


class Heading(msgspec.Struct, frozen=True):
    """An entry of the document's outline. `page` counts from 1."""

    title: str
    level: int
    page: int


class Sheet(msgspec.Struct, frozen=True):
    """A sheet of a workbook; its rows are counted on from those of the sheets before it."""

    name: str
    rows: int
    columns: tuple[str, ...] = ()


class ReadOptions(msgspec.Struct, frozen=True):
    """What the owner of a document says about how its file is read.

    `pages` are the first and last pages, counted from 1, of what may be read of it; empty: all of it."""

    password: str = ""
    ocr: bool = True
    pages: tuple[tuple[int, int], ...] = ()


PLAIN = ReadOptions()


class Profile(msgspec.Struct, frozen=True):
    """What `prepare` learns of a file once, and every range uses: never read again from the whole file."""

    kind: FileKind
    unit: Unit
    units: int
    title: str = ""
    author: str = ""
    encoding: str = ""
    body_size: float = 0.0
    # Whether all letters of its type are as wide: what else would be code is then prose.
    is_mono: bool = False
    outline: tuple[Heading, ...] = ()
    # Headers and footers, but for their numbers; those that all pages after one leave out; and by how much printed page
    # numbers are higher than those of the pages.
    repeated_lines: tuple[str, ...] = ()
    repeated_after: tuple[tuple[str, int], ...] = ()
    number_offset: int | None = None
    columns: tuple[str, ...] = ()
    sheets: tuple[Sheet, ...] = ()
    created: str = ""
    modified: str = ""
    # The part of the pages that are pictures of text, which takes seconds a page to read.
    scanned: float = 0.0
    parser_version: int = PARSER_VERSION
