"""Footnotes of a page: smaller type at the foot of a column that starts with a mark and stands below a gap or a rule;
below a rule of its own it needs no mark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from rag.parser.blocks import Block, BlockKind, PlacedLine
from rag.parser.captions import is_caption
from rag.parser.layout import Line, Page
from rag.parser.line_joins import box_of_line, space_between
from rag.parser.pdf_numbers import is_lone_number

# Against the body's type.
_MAX_SIZE = 0.92
# The part of the page that notes start in, and the most lines of them.
_FROM = 0.4
_MAX_LINES = 40
# Between the text and its notes, in sizes of the notes' type.
_MIN_GAP = 0.9
# Points that a rule above notes may start before or behind them, as their first line may be further in.
_NEAR = 16.0
# Of the first line of notes that have no mark.
_MIN_CHARS = 20
# A line that ends this much before the next one, in sizes of its type, ends its note.
_SHORT = 4.0
_MARK = re.compile(
    r"(?:[\[(]?(?P<number>\d{1,3})[\])]?|[*\u2217\u204e\u2020\u2021\u00a7\u00b6#]{1,3}|[\u00b9\u00b2\u00b3\u2070-\u2079]+)\.?\s*\D"
)


def part_footnotes(page: Page, ordered: Sequence[Line], body_size: float) -> tuple[list[Line], list[list[Line]]]:
    """The lines without the notes, and the lines of each note."""
    limit = _MAX_SIZE * body_size
    lowest = _FROM * page.height
    if not [line for line in ordered if line.size <= limit and line.top > lowest and line.size > 0]:
        return list(ordered), []
    kept: list[Line] = []
    notes: list[list[Line]] = []
    for column in _columns(ordered):
        end = len(column)
        # A page's number may stand below its notes, and what is drawn across the page has no size.
        while end > 1 and (is_lone_number(column[end - 1].text) or not column[end - 1].size):
            end -= 1
        start = _start(page, column[:end], limit)
        kept += [*column[:start], *column[end:]]
        notes += _notes(page, column[start:end])
    return kept, notes


def note_block(page: int, lines: Sequence[Line]) -> Block:
    text, places = "", []
    for line, after in zip_longest(lines, lines[1:]):
        places.append(PlacedLine(len(text), box_of_line(page, line)))
        text += line.text
        if after is not None and not line.hyphened:
            text += space_between(line.text, after.text)
        elif line.hyphened and after is None:
            text += "-"
    return Block(kind=BlockKind.FOOTNOTE, text=text, page=page, lines=tuple(places))


def _columns(ordered: Sequence[Line]) -> Iterator[list[Line]]:
    """The lines up to where the next column starts, further up."""
    column: list[Line] = []
    for line in ordered:
        if column and line.base < column[-1].base - 3 * max(line.size, 1.0):
            yield column
            column = []
        column.append(line)
    if column:
        yield column


def _start(page: Page, column: Sequence[Line], limit: float) -> int:
    """Where the notes at the foot of a column start; its length if there are none."""
    start = len(column)
    while start and _may_be_note(page, column[start - 1], limit) and len(column) - start < _MAX_LINES:
        start -= 1
    # The first that has a mark and is parted from the text.
    for position in range(max(start, 1), len(column)):
        above, line = column[position - 1], column[position]
        if line.mono:
            continue  # the numbers of lines of code are no marks
        has_mark = _MARK.match(line.text) is not None
        if has_mark and line.top - above.bottom > _MIN_GAP * line.size:
            return position
        if _is_below_rule(page, above, line, needs_edge=not has_mark) and not is_caption(line.text, (line,), ()):
            return position
    return len(column)


def _may_be_note(page: Page, line: Line, limit: float) -> bool:
    return line.block is None and 0 < line.size <= limit and line.top > _FROM * page.height


def _is_below_rule(page: Page, above: Line, line: Line, *, needs_edge: bool) -> bool:
    """Whether a rule parts the two; with `needs_edge` one that starts where a line of text does, and parts type of two
    sizes, which the rules of a table or a drawing do not."""
    if needs_edge and (above.size <= line.size / _MAX_SIZE or len(line.text) < _MIN_CHARS):
        return False
    return any(
        above.bottom - 1 <= at <= line.top + 1
        and (abs(start - line.left) <= _NEAR if needs_edge else start < line.right and end > line.left)
        for start, end, at in page.rules
    )


def _notes(page: Page, lines: Sequence[Line]) -> list[list[Line]]:
    notes: list[list[Line]] = []
    for line in lines:
        if not notes or _starts_note(page, line, notes[-1]):
            notes.append([line])
        else:
            notes[-1].append(line)
    return notes


def _starts_note(page: Page, line: Line, last: Sequence[Line]) -> bool:
    """Whether the line has a mark of its own: the next number, or any sign; or plainly is no more of the last note."""
    above = last[-1]
    if above.hyphened:
        return False
    mark, before = _MARK.match(line.text), _MARK.match(last[0].text)
    if mark is None:
        ends_early = (
            len(above.text) > 3 and above.right < line.right - _SHORT * line.size and not line.text[:1].islower()
        )
        return ends_early or _is_below_rule(page, above, line, needs_edge=False)
    if mark["number"] is None or before is None or before["number"] is None:
        return True
    return int(mark["number"]) == int(before["number"]) + 1
