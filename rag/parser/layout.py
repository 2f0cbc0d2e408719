"""The lines of a page, and the order in which a person reads them: one column, two, or three.

Knows nothing of PDF libraries, and judges a page by itself alone. Joining lines is left to paragraphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from statistics import median
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from rag.parser.blocks import Block

# Points; beyond any page that the format allows.
MAX_PAGE = 20_000.0

# Fewer stretches of text than this make no columns.
_MIN_COLUMN_LINES = 5
_MIN_WIDTH = 150.0
# The lines of a column of prose fill this much of it at the median; the cells of a table do not.
_MIN_FILLED = 0.55
# Of three columns: lines across a gutter, against those in the shortest column.
_MAX_ACROSS = 0.5


def clamp(value: float, most: float) -> float:
    """Within the page: a damaged file has its text anywhere, or at no number at all."""
    return min(max(0.0, value), most)


class Span(NamedTuple):
    """A stretch of a line between two wide gaps, and where in the line's text it starts."""

    left: float
    right: float
    start: int


class Line(msgspec.Struct, frozen=True, gc=False):
    """A line of text. Points from the top left of the page as it is shown; `base` is where its letters stand.

    `spans` is empty for a line without wide gaps. `first` and `count` are its characters in the page's text, if it
    has any there. A `block` stands in the place of a table or a figure, and has no text."""

    text: str
    left: float
    right: float
    top: float
    bottom: float
    base: float
    size: float
    hyphened: bool = False
    spans: tuple[Span, ...] = ()
    bold: bool = False
    first: int = 0
    count: int = 0
    block: Block | None = None


class Page(msgspec.Struct, frozen=True):
    """The lines of a page in the order of the file, and the tables and figures that stand among them.

    `rules` are its horizontal lines: left, right and how far down. A page is not whole if its picture was to be
    recognised, and was not."""

    number: int
    width: float
    height: float
    lines: tuple[Line, ...]
    items: tuple[Line, ...] = ()
    rules: tuple[tuple[float, float, float], ...] = ()
    is_whole: bool = True


def order(page: Page) -> list[Line]:
    """The lines as a person reads them: down one column, then the next."""
    gutters = find_gutters(page.lines)
    if gutters:
        return _by_columns((*page.lines, *page.items), gutters)
    rises = len([before for before, after in pairwise(page.lines) if after.base < before.base - 1])
    # A file's own order is better than any sorting (side notes, tables), unless it plainly jumps about.
    if rises <= 0.3 * (len(page.lines) - 1):
        return _with_items(page.lines, page.items)
    return sorted((*page.lines, *page.items), key=_place)


def _place(line: Line) -> tuple[float, float]:
    return round(line.base), line.left


def _with_items(lines: Sequence[Line], items: Sequence[Line]) -> list[Line]:
    """Each item before the first line that stands below its top, in its own column."""
    placed = list(lines)
    for item in sorted(items, key=_place):
        position = next((at for at, line in enumerate(placed) if _is_below(line, item)), len(placed))
        placed.insert(position, item)
    return placed


def _is_below(line: Line, item: Line) -> bool:
    return line.base > item.top + 1 and line.left < item.right and line.right > item.left


def find_gutters(lines: Sequence[Line]) -> tuple[float, ...]:
    """Where a page of two or three columns is empty between them; nothing for a page of one.

    Text of columns fills both sides of a gutter; the cells of a table do not."""
    if len(lines) < _MIN_COLUMN_LINES:
        return ()
    left, right = min([line.left for line in lines]), max([line.right for line in lines])
    width = right - left
    if width < _MIN_WIDTH:
        return ()
    near, far = left + 0.35 * width, left + 0.65 * width
    # Most lines of a page of one column go through its middle: most pages end here.
    wide = len([line for line in lines if line.left <= near and line.right >= far and not line.spans])
    if wide > 0.6 * len(lines):
        return ()
    spans = [span for line in lines for span in (line.spans or (Span(line.left, line.right, 0),))]
    if len(spans) < 2 * _MIN_COLUMN_LINES:
        return ()
    return _two_gutters(spans, left, right) or _one_gutter(spans, left, right)


def _one_gutter(spans: Sequence[Span], left: float, right: float) -> tuple[float, ...]:
    width = right - left
    near, far = left + 0.35 * width, left + 0.65 * width
    middle = sum(span.left <= near and span.right >= far for span in spans)
    if middle > 0.6 * len(spans):
        return ()
    gutter = _emptiest(spans, near, far)
    before = [span.right - span.left for span in spans if span.right <= gutter]
    after = [span.right - span.left for span in spans if span.left >= gutter]
    if min(len(before), len(after)) < max(_MIN_COLUMN_LINES, 0.5 * middle):
        return ()
    filled = min(median(before) / (gutter - left), median(after) / (right - gutter))
    return (gutter,) if filled > _MIN_FILLED else ()


def _two_gutters(spans: Sequence[Span], left: float, right: float) -> tuple[float, ...]:
    width = right - left
    near, far = left + 0.25 * width, left + 0.75 * width
    if len([span for span in spans if near < span.left and span.right < far]) < _MIN_COLUMN_LINES:
        return ()  # nothing is in the middle alone
    first = _emptiest(spans, left + 0.22 * width, left + 0.45 * width)
    second = _emptiest(spans, left + 0.55 * width, left + 0.78 * width)
    columns: tuple[list[float], list[float], list[float]] = ([], [], [])
    across = 0
    for span in spans:
        if span.left < first < span.right or span.left < second < span.right:
            across += 1
        else:
            columns[(span.left >= first) + (span.left >= second)].append(span.right - span.left)
    fewest = min(len(column) for column in columns)
    if fewest < _MIN_COLUMN_LINES or across > _MAX_ACROSS * fewest:
        return ()
    widths = (first - left, second - first, right - second)
    filled = min(median(column) / each for column, each in zip(columns, widths, strict=True))
    return (first, second) if filled > _MIN_FILLED else ()


def _emptiest(spans: Sequence[Span], near: float, far: float) -> float:
    """The centre of the widest strip that the fewest lines cross."""
    changes = [0] * (int(far - near) + 2)
    for span in spans:
        if span.right > near and span.left < far:
            changes[max(0, int(span.left - near))] += 1
            changes[min(len(changes) - 1, int(span.right - near) + 1)] -= 1
    crossed = list(accumulate(changes[:-1]))
    fewest = min(crossed)
    best_start = best_length = start = 0
    for position, count in enumerate([*crossed, fewest + 1]):
        if count != fewest:
            if position - start > best_length:
                best_start, best_length = start, position - start
            start = position + 1
    return near + best_start + best_length / 2


def _by_columns(lines: Sequence[Line], gutters: Sequence[float]) -> list[Line]:
    """Lines across the columns part the page; between them one column comes after the other."""
    ordered: list[Line] = []
    columns: list[list[Line]] = [[] for _ in range(len(gutters) + 1)]
    parts = [part for line in lines for part in _split_at(line, gutters)]
    for line in sorted(parts, key=_place):
        if any(line.left < gutter < line.right for gutter in gutters):
            for column in columns:
                ordered += column
                column.clear()
            ordered.append(line)
        else:
            columns[sum(line.left >= gutter for gutter in gutters)].append(line)
    for column in columns:
        ordered += column
    return ordered


def _split_at(line: Line, gutters: Sequence[float]) -> Iterator[Line]:
    """The parts of a line that goes on in the next column at the same height."""
    rest, offset, spans = line, 0, line.spans
    for before, after in pairwise(line.spans):
        if any(before.right <= gutter <= after.left for gutter in gutters):
            cut = after.start - offset
            yield replace(rest, text=rest.text[:cut].strip(), right=before.right, hyphened=False, spans=())
            rest = replace(rest, text=rest.text[cut:], left=after.left, spans=())
            offset = after.start
            spans = ()
    yield rest if offset else replace(rest, spans=spans) if spans is not line.spans else rest
