"""The running text of a page, told from what stands around it, and its rows.

Notes, captions, tables and figures are aside, and so are page numbers and the lines at a page's edges that the profile
does not know as repeated: the title of a chapter, say. Judges a page by its blocks alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rag.parser.blocks import Block, BlockKind, Box

_ASIDE = (BlockKind.FOOTNOTE, BlockKind.CAPTION, BlockKind.TABLE, BlockKind.FIGURE)
_NUMBER = re.compile(r"[\W\d_]*|[\W_]*[ivxlc]+[\W_]*", re.IGNORECASE)
_ENDS_IN_NUMBER = re.compile(r"\d\s*$")
_ENDS = (
    r".!?:;\u2026\u2025\u203c\u2047-\u2049\u3002\uff01\uff1f\uff1a\uff1b\uff0e\uff61"  # Latin and its kin, East Asia
    r"\u037e\u0589\u05c3\u061b\u061f\u06d4"  # Greek, Armenian, Hebrew, Arabic, Urdu
    r"\u0964\u0965\u0df4\u0e2f\u0e5a\u0e5b\u0f0d\u0f0e\u104a\u104b\u17d4\u17d5"  # South and Southeast Asia
    r"\u1362-\u1368\u1801-\u1803\u1c7e\u1c7f"
)
# Behind a sentence's end there may be a quotation mark, a bracket, or the number of a note.
_SENTENCE_END = re.compile(
    rf"[{_ENDS}][\"'\u2019\u201d\u00ab\u00bb\u203a\u300d\u300f\u3011\u300b\uff09)\]\s]*"
    r"(?:\[?\d{1,3}\]?|[\u00b9\u00b2\u00b3\u2070-\u2079]+|[*\u2020\u2021])?\s*$"
)
_END_CHARS = 16


class Row(NamedTuple):
    """What of a block stands at one height, and where in the block's text that starts."""

    left: int
    right: int
    top: int
    bottom: int
    start: int


class PageText(NamedTuple):
    """The blocks of a page, and the places among them of its running text, in the order of reading."""

    blocks: Sequence[Block]
    places: Sequence[int] = ()

    @property
    def first(self) -> Block | None:
        return self.blocks[self.places[0]] if self.places else None

    @property
    def last(self) -> Block | None:
        return self.blocks[self.places[-1]] if self.places else None


def page_text(blocks: Sequence[Block]) -> PageText:
    places = [place for place, block in enumerate(blocks) if block.kind not in _ASIDE and block.lines]
    if len(places) > 1:
        spans = [_Span(place, blocks[place]) for place in places]
        edges = {span.place for span in (*_header(spans), *_footer(spans))}
        # Never all of a page: what looks like its edges is then its text.
        places = [place for place in places if place not in edges] or places
    return PageText(blocks, places)


def ends_sentence(text: str) -> bool:
    return _SENTENCE_END.search(text, max(0, len(text) - _END_CHARS)) is not None


def rows(block: Block) -> list[Row]:
    """From top to bottom, column by column."""
    found: list[Row] = []
    for line in block.lines:
        if found and _is_beside(found[-1], line.box):
            found[-1] = _joined(found[-1], line.box)
        else:
            found.append(Row(line.box.left, line.box.right, line.box.top, line.box.bottom, line.start))
    return found


def _is_beside(row: Row, box: Box) -> bool:
    shared = min(row.bottom, box.bottom) - max(row.top, box.top)
    return 2 * shared > min(row.bottom - row.top, box.bottom - box.top)


def _joined(row: Row, box: Box) -> Row:
    return Row(
        left=min(row.left, box.left),
        right=max(row.right, box.right),
        top=min(row.top, box.top),
        bottom=max(row.bottom, box.bottom),
        start=row.start,
    )


class _Span:
    """A block, and how far down the page it goes."""

    def __init__(self, place: int, block: Block) -> None:
        self.place = place
        self.block = block
        self.top = min([line.box.top for line in block.lines])
        self.bottom = max([line.box.bottom for line in block.lines])


def _header(spans: Sequence[_Span]) -> list[_Span]:
    """What stands at the top of the page, wherever in the order of reading: a file may draw it last."""
    first = min(spans, key=lambda span: span.top)
    edge = max(first.bottom, first.top + 1)
    band = [span for span in spans if span.top < edge]
    below = min((span.top for span in spans if span.top >= edge), default=0)
    return band if _is_aside(band, below - max(span.bottom for span in band)) else []


def _footer(spans: Sequence[_Span]) -> list[_Span]:
    last = max(spans, key=lambda span: span.bottom)
    edge = min(last.top, last.bottom - 1)
    band = [span for span in spans if span.bottom > edge]
    above = max((span.bottom for span in spans if span.bottom <= edge), default=last.bottom)
    return band if _is_aside(band, min(span.top for span in band) - above) else []


def _is_aside(band: Sequence[_Span], gap: int) -> bool:
    """Whether it is a number with all else beyond it, or one line with a gap as high as itself."""
    if gap >= 0 and all(_NUMBER.fullmatch(span.block.text) for span in band):
        return True
    return all(gap > span.bottom - span.top and _may_be_aside(span.block) for span in band)


def _may_be_aside(block: Block) -> bool:
    # "3. Measuring 57" looks like an item of a list.
    is_item = block.kind is BlockKind.LIST_ITEM and _ENDS_IN_NUMBER.search(block.text) is not None
    is_line = (is_item or block.kind is BlockKind.PARAGRAPH) and len(rows(block)) == 1
    return is_line and not ends_sentence(block.text)
