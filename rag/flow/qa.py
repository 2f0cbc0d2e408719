"""Questions and answers: from rows of two columns, from headings and what stands below them, from "Q:" and "A:"
lines. A pair is a part; what is no pair stays text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from rag.flow.parts import Part, cut_block, slice_block
from rag.flow.rows import placed_row
from rag.flow.tables import row_values
from rag.parser.blocks import Block, BlockKind, Table

_COLON = r"[ \t]*\d{0,4}[ \t]*[:\uff1a]\s*"
_QUESTION = re.compile(rf"[ \t]*(?:Q|Question|Frage|\u95ee|\u95ee\u9898|\u554f){_COLON}", re.IGNORECASE)
_ANSWER = re.compile(rf"[ \t]*(?:A|Answer|Antwort|\u7b54|\u7b54\u6848|\u56de\u7b54){_COLON}", re.IGNORECASE)
_QUESTION_NAMES = ("question", "questions", "q", "frage", "\u95ee\u9898", "\u95ee")
_ANSWER_NAMES = ("answer", "answers", "a", "antwort", "\u7b54\u6848", "\u56de\u7b54", "\u7b54")
_LINES = (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM)


class _Open(NamedTuple):
    """A question that waits for its answer."""

    question: str
    blocks: list[Block]
    answer: list[Block]


def pairs_of_rows(blocks: Sequence[Block], limit: int) -> Iterator[Part]:
    for number, block in enumerate(blocks):
        if block.table is None:
            yield Part([block], limit)
            continue
        if number == 0 and block.page == 1 and (header := _pair_in_header(block)):
            yield header._replace(limit=limit)
        yield from (part._replace(limit=limit) for part in _pairs_in_table(block, block.table))


def pairs_of_text(blocks: Sequence[Block], limit: int) -> Iterator[Part]:
    """Lines win: in a text that has both, headings are where its questions belong."""
    lines = list(_cut_at_lines(blocks))
    if any(block.kind in _LINES and _QUESTION.match(block.text) for block in lines):
        yield from _pairs_by_lines(lines, limit)
    else:
        yield from _pairs_by_headings(blocks, limit)


def _pairs_by_lines(blocks: Sequence[Block], limit: int) -> Iterator[Part]:
    opened: _Open | None = None
    text: list[Block] = []
    answering = False
    for block in blocks:
        asks = _QUESTION.match(block.text) if block.kind in _LINES else None
        replies = _ANSWER.match(block.text) if block.kind in _LINES and opened else None
        if asks or block.kind is BlockKind.HEADING:
            yield from _pair(opened, limit)
            opened, answering = None, False
        if asks:
            yield from _plain(text)
            text = []
            opened = _Open(block.text[asks.end() :].strip(), [block], [])
        elif opened is None:
            text.append(block)
        elif replies:
            answering = True
            opened.answer.append(slice_block(block, replies.end(), len(block.text)))
        elif answering or block.kind not in _LINES:
            opened.answer.append(block)
        else:
            opened = opened._replace(question=f"{opened.question} {block.text.strip()}")
            opened.blocks.append(block)
    yield from _pair(opened, limit)
    yield from _plain(text)


def _pairs_by_headings(blocks: Sequence[Block], limit: int) -> Iterator[Part]:
    """A heading with nothing but other headings below it is part of their first question."""
    asked: list[Block] = []
    answer: list[Block] = []
    tables: list[Block] = []
    for block in blocks:
        if block.kind is BlockKind.HEADING:
            if answer:
                yield from _headed(asked, answer, limit)
                asked, answer = [], []
            asked.append(block)
        elif block.table is not None and _is_pairs(block.table):
            tables.append(block)
        else:
            answer.append(block)
    yield from _headed(asked, answer, limit)
    for block in tables:
        if block.table is not None:
            table = block.table if _is_named(block.table) else msgspec.structs.replace(block.table, header_rows=0)
            yield from (part._replace(limit=limit) for part in _pairs_in_table(block, table))


def _headed(asked: Sequence[Block], answer: Sequence[Block], limit: int) -> Iterator[Part]:
    if not asked or not answer:
        yield from _plain([*asked, *answer])
        return
    yield from _pair(_Open(" / ".join(block.text.strip() for block in asked), list(asked), list(answer)), limit)


def _pair(opened: _Open | None, limit: int) -> Iterator[Part]:
    if opened is None:
        return
    if not any(block.text.strip() for block in opened.answer) or not opened.question:
        yield from _plain([*opened.blocks, *opened.answer])
        return
    boxes = tuple(box for block in opened.blocks for box in block.boxes)
    yield Part(
        opened.answer, limit, inline=True, prefix=_prefix(opened.question), prefix_boxes=boxes, headed_by=opened.blocks
    )


def _pairs_in_table(block: Block, table: Table) -> Iterator[Part]:
    """A row a pair: the columns that are named so, or else the first two; others are part of the answer."""
    for row, values in row_values(table):
        filled = [(name.strip().lower(), name, text) for name, text in values if text.strip()]
        asked = next((n for n, each in enumerate(filled) if each[0] in _QUESTION_NAMES), None)
        replied = next((n for n, each in enumerate(filled) if each[0] in _ANSWER_NAMES), None)
        if asked is None:
            asked = next((n for n in range(len(filled)) if n != replied), None)
        if replied is None:
            replied = next((n for n in range(len(filled)) if n != asked), None)
        if asked is None or replied is None:
            if filled:
                yield Part([placed_row(block, table, row, filled[0][2], BlockKind.PARAGRAPH)])
            continue
        others = [f"{name}: {text}" if name else text for _, name, text in filled]
        answer = [filled[replied][2], *(text for n, text in enumerate(others) if n not in (asked, replied))]
        body = placed_row(block, table, row, "\n".join(answer), BlockKind.PARAGRAPH)
        yield Part([body], prefix=_prefix(filled[asked][2]))


def _pair_in_header(block: Block) -> Part | None:
    """A sheet whose first row is a question and not the name of a column."""
    table = block.table
    if table is None or table.header_rows != 1 or len(table.rows[0]) < 2:
        return None
    asked, replied = (cell.text for cell in table.rows[0][:2])
    if not asked.rstrip().endswith(("?", "\uff1f")) or not replied.strip():
        return None
    return Part([placed_row(block, table, 0, replied, BlockKind.PARAGRAPH)], prefix=_prefix(asked))


def _is_pairs(table: Table) -> bool:
    return bool(table.rows) and max(len(row) for row in table.rows) == 2


def _is_named(table: Table) -> bool:
    """Whether the header does no more than name the columns."""
    names = [cell.text.strip().lower() for row in table.rows[: table.header_rows] for cell in row]
    return all(name in _QUESTION_NAMES + _ANSWER_NAMES for name in names)


def _prefix(question: str) -> str:
    return f"Question: {' '.join(question.split())}\tAnswer: "


def _plain(blocks: Sequence[Block]) -> Iterator[Part]:
    if blocks:
        yield Part(list(blocks))


def _cut_at_lines(blocks: Sequence[Block]) -> Iterator[Block]:
    for block in blocks:
        if block.kind not in _LINES:
            yield block
            continue
        starts = {line.start for line in block.lines} | {found.end() for found in re.finditer(r"\n", block.text)}
        marked = [
            start
            for start in sorted(starts)
            if 0 < start < len(block.text) and (_QUESTION.match(block.text, start) or _ANSWER.match(block.text, start))
        ]
        yield from cut_block(block, marked)
