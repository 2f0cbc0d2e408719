"""Rows as chunks: each on its own with the names of its columns, with its tags apart, or many as an HTML table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from rag.flow.parts import Part
from rag.flow.tables import row_values, table_parts
from rag.flow.tokens import Scale
from rag.parser.blocks import Block, BlockKind, Cell, PlacedLine, Table

_TAG_NAMES = ("tag", "tags", "label", "labels", "\u6807\u7b7e")
_SENTENCE_ENDS = (".", "!", "?", "\u3002", "\uff01", "\uff1f")
_MIN_SENTENCE_WORDS = 6
_TAG_BORDERS = re.compile(r"[,;|\n\uff0c\uff1b\u3001]")


def row_parts(blocks: Sequence[Block], limit: int) -> Iterator[Part]:
    """Each row of each table a part; blocks between the tables stay together."""
    for is_row, members in groupby(blocks, key=lambda block: block.kind is BlockKind.TABLE):
        if not is_row:
            yield Part(list(members))
            continue
        for block in members:
            yield from (Part([row], limit) for row in _rows(block))


def tag_parts(blocks: Sequence[Block], limit: int) -> Iterator[Part]:
    """A row's content, with the tags from the column that is named so, or else from the last."""
    for is_row, members in groupby(blocks, key=lambda block: block.table is not None):
        if not is_row:
            yield Part(list(members))
            continue
        for number, block in enumerate(members):
            if block.table is None:
                continue
            if number == 0 and block.page == 1 and _has_row_in_header(block.table):
                whole = msgspec.structs.replace(block.table, rows=block.table.rows[:1], header_rows=0)
                yield from (part._replace(limit=limit) for part in _tagged(block, whole))
            yield from (part._replace(limit=limit) for part in _tagged(block, block.table))


def html_row_parts(blocks: Sequence[Block], limit: int, scale: Scale) -> Iterator[Part]:
    """Rows with the same header as HTML tables, each of as many as a chunk takes."""
    for header, members in groupby(blocks, key=_header):
        rows = list(members)
        if header is None:
            yield Part(rows)
            continue
        # A block has one row; the few that have more keep their number.
        numbered = [(block, cells) for block in rows for cells in _cells(block)]
        table = Table(rows=(*header, *(cells for _, cells in numbered)), header_rows=len(header))
        for part in table_parts(table, "", limit, scale):
            block, _ = numbered[max(0, part.first_row - len(header))]
            yield Part([Block(kind=BlockKind.TABLE, text=part.text, page=block.page)], limit)


def _header(block: Block) -> tuple[tuple[Cell, ...], ...] | None:
    return block.table.rows[: block.table.header_rows] if block.table else None


def _cells(block: Block) -> tuple[tuple[Cell, ...], ...]:
    return block.table.rows[block.table.header_rows :] if block.table else ()


def _rows(block: Block) -> Iterator[Block]:
    """A row of a sheet is a block already; the rows of a table in a text are made such."""
    table = block.table
    if table is None or len(table.rows) <= table.header_rows + 1:
        yield block
        return
    for row, values in row_values(table):
        text = "; ".join(f"{name}: {value}" if name else value for name, value in values if value.strip())
        if text:
            yield placed_row(block, table, row, text)


def placed_row(block: Block, table: Table, row: int, text: str, kind: BlockKind = BlockKind.TABLE) -> Block:
    """A row with its own place if that is known, else with the table's."""
    lines = tuple(PlacedLine(0, place) for place in table.places[row : row + 1])
    return Block(kind=kind, text=text, page=block.page, lines=lines or block.lines)


def _tagged(block: Block, table: Table) -> Iterator[Part]:
    for row, values in row_values(table):
        if not values:
            continue
        at = next((n for n, (name, _) in enumerate(values) if name.strip().lower() in _TAG_NAMES), len(values) - 1)
        tags = _tags(values[at][1]) if len(values) > 1 else ()
        content = [pair for n, pair in enumerate(values) if (n != at or len(values) == 1) and pair[1].strip()]
        if len(content) == 1:
            text = content[0][1]
        else:
            text = "\n".join(f"{name}: {value}" if name else value for name, value in content)
        if text.strip() or tags:
            # A row of tags alone is still found by them.
            text = text if text.strip() else ", ".join(tags)
            yield Part([placed_row(block, table, row, text, BlockKind.PARAGRAPH)], tags=tags)


def _has_row_in_header(table: Table) -> bool:
    """Whether the first row of a sheet is a sentence and its tags, and no names of columns."""
    if table.header_rows != 1 or len(table.rows[0]) != 2:
        return False
    content, tags = (cell.text.strip() for cell in table.rows[0])
    is_sentence = content.endswith(_SENTENCE_ENDS) or len(content.split()) >= _MIN_SENTENCE_WORDS
    return is_sentence and bool(tags) and tags.lower() not in _TAG_NAMES


def _tags(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag.strip() for tag in _TAG_BORDERS.split(text) if tag.strip()))
