"""Whether a paragraph runs on over the edge between two pages, and its two parts as one block.

Told from these two pages alone, so that it does not depend on how a document is split; and only where it is plain: a
paragraph that is cut is still found, but one that is wrongly joined mixes two."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from msgspec.structs import replace

from rag.parser.blocks import Block, BlockKind, PlacedLine
from rag.parser.hyphens import keeps_hyphen, words_of
from rag.parser.line_joins import space_between
from rag.parser.page_text import PageText, Row, ends_sentence, rows

# A page that is one paragraph ends it if its number is a multiple of this: no block grows with the document.
MAX_PAGES_ON = 8

_OPENING = "\"'\u2018\u201c\u201e\u00ab\u2039([\u300c\u300e\u300a\uff08\u00bf\u00a1"
_COLONS = (":", "\uff1a")
_HYPHENS = ("-", "\u2010")
# What may stand before a word that goes on with the sentence, besides letters.
_GOES_ON = ",-\u2010\u060c\u3001\uff0c"
# Letters that Unicode calls lower case in a script that has no other, and those of formulas.
_NEVER_LOW = re.compile("[\u10d0-\u10ff\U0001d400-\U0001d7ff]")
_UNSPACED = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u0e00-\u0eff\U00020000-\U0003ffff]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")
_NUMBERED = re.compile(r"\w+\.?\s+\d+(?:[.-]\d+)*\s*[.:]")
# The least rows that tell how wide a column is; the least letters of a line of prose; the most of a column that the
# last line of a paragraph that goes on leaves empty.
_MARGIN_ROWS = 3
_LEAST_LETTERS = 16
_MAX_EMPTY = 0.4
# Letters are not all as wide; and nobody can say of a very long word where else it would have been broken.
_SLACK = 1.25
_MOST_LETTERS = 16
# How much larger the one type may be than the other, by rough measures.
_ALIKE = 1.25
_LEAST_STEPS = 2


def may_go_on(page: PageText) -> bool:
    """Whether the last paragraph of the page may run on, as far as this page tells."""
    block = page.last
    if block is None or block.kind is not BlockKind.PARAGRAPH or ends_sentence(block.text):
        return False
    if block.text[-1:].isdecimal() or not any(letter.isalpha() for letter in block.text):
        return False  # a page number, or the end of an entry in a list of contents
    if len(page.places) == 1 and block.page % MAX_PAGES_ON == 0:
        return False
    column = _column(page, rows(block)[-1])
    if any(row.top >= column.last.bottom for row in column.rows):
        return False  # there is text below it
    end = column.end(block)
    return end is None or end.empty <= _MAX_EMPTY * end.width


def may_be_tail(page: PageText) -> bool:
    """Whether the first paragraph of the page may be the end of another, as far as this page tells."""
    block = page.first
    if block is None or block.kind is not BlockKind.PARAGRAPH or _NUMBERED.match(block.text):
        return False
    if not block.text.lstrip(_OPENING)[:1].isalpha():
        return False
    first = rows(block)[0]
    return not any(row.bottom <= first.top for row in _column(page, first).rows)


def runs_on(before: PageText, after: PageText) -> bool:
    """Whether the last paragraph of one page goes on with the first of the next."""
    head, tail = before.last, after.first
    if head is None or tail is None or not (may_go_on(before) and may_be_tail(after) and _is_alike(head, tail)):
        return False
    is_short = len(rows(tail)) == 1
    if is_short and not ends_sentence(tail.text):
        return False
    end = _column(before, rows(head)[-1]).end(head)
    if _starts_low(tail.text):
        return end is None or (
            end.letters >= _LEAST_LETTERS and (head.text.endswith(_HYPHENS) or end.has_no_room(tail.text, _SLACK))
        )
    # What starts with a capital, or is in a script that has none, may be a paragraph of its own.
    if end is None or end.letters < _LEAST_LETTERS or not end.has_no_room(tail.text):
        return False
    if not _ends_with_letter(head.text) and head.text[-1] not in _GOES_ON:
        return False
    return not _is_indented(tail) and not (is_short and tail.text.endswith(_COLONS))


def join(before: PageText, after: PageText, head: Block) -> Block:
    """`head`, which ends with the last paragraph of the page before, with the first of the one after behind it."""
    tail = after.first
    assert tail is not None, "a page without text continues nothing"
    text = head.text
    if text.endswith(_HYPHENS) and text[-2:-1].isalpha():
        words = words_of(block.text for block in (*before.blocks, *after.blocks))
        text = text if keeps_hyphen(text[:-1], tail.text, words) else text[:-1]
    else:
        text += space_between(text, tail.text)
    lines = (PlacedLine(len(text) + line.start, line.box) for line in tail.lines)
    return replace(head, text=text + tail.text, lines=(*head.lines, *lines))


class _LineEnd(NamedTuple):
    """The end of a page's last line: what of the column's width is empty behind it, and its letters."""

    empty: float
    width: float
    letters: int
    letter_width: float

    def has_no_room(self, following: str, slack: float = 1.0) -> bool:
        """Whether the word that follows could not have stood on the line."""
        word = following.split(None, 1)[0]
        length = 2 if _UNSPACED.match(word) else 1 + min(len(word), _MOST_LETTERS)
        return self.empty <= slack * length * self.letter_width


class _Column(NamedTuple):
    """The rows of running text above and below a row, which is one of them."""

    last: Row
    rows: Sequence[Row]

    def end(self, block: Block) -> _LineEnd | None:
        """What is behind the last row of `block`; None where there are too few rows to tell how wide the column is."""
        if len(self.rows) < _MARGIN_ROWS:
            return None
        left, right = min(row.left for row in self.rows), max(row.right for row in self.rows)
        leftwards = _RIGHT_TO_LEFT.search(block.text, self.last.start) is not None
        empty = self.last.left - left if leftwards else right - self.last.right
        letters = max(1, len(block.text) - self.last.start)
        return _LineEnd(empty, max(1, right - left), letters, (self.last.right - self.last.left) / letters)


def _column(page: PageText, row: Row) -> _Column:
    own = [
        other
        for place in page.places
        if page.blocks[place].kind in (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM)
        for other in rows(page.blocks[place])
        if other.left < row.right and other.right > row.left
    ]
    return _Column(row, own)


def _starts_low(text: str) -> bool:
    first = text.lstrip(_OPENING)[:1]
    return first.islower() and not _NEVER_LOW.match(first)


def _ends_with_letter(text: str) -> bool:
    """Or with a sign that belongs to one, as vowels of Indian scripts do."""
    return unicodedata.category(text[-1])[0] in "LM"


def _is_indented(block: Block) -> bool:
    own = rows(block)
    if len(own) == 1:
        return False
    least = 0.5 * (own[0].bottom - own[0].top)
    if _RIGHT_TO_LEFT.search(block.text, 0, own[1].start):
        return own[1].right - own[0].right > least
    return own[0].left - own[1].left > least


def _is_alike(head: Block, tail: Block) -> bool:
    """Whether both are set in type of about the same size, as far as their rows tell."""
    one, other = rows(head), rows(tail)
    if not _is_near(_height(one), _height(other)):
        return False
    pitch, other_pitch = _pitch(one), _pitch(other)
    return not pitch or not other_pitch or _is_near(pitch, other_pitch)


def _height(own: Sequence[Row]) -> float:
    return max(row.bottom - row.top for row in own)


def _pitch(own: Sequence[Row]) -> float:
    """From row to row; 0 where these are too few to tell."""
    steps = [after.bottom - before.bottom for before, after in pairwise(own) if after.bottom > before.bottom]
    return median(steps) if len(steps) >= _LEAST_STEPS else 0.0


def _is_near(one: float, other: float) -> bool:
    return max(one, other) <= _ALIKE * min(one, other) + 1
