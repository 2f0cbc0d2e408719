"""The order in which a person reads the lines of a page: one column, two, or three.

Knows nothing of PDF libraries, and judges a page by itself alone. Joining lines is left to paragraphs."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import median

from msgspec.structs import replace

from rag.parser.beside import find_bands
from rag.parser.drop_caps import with_drop_caps
from rag.parser.formulas import with_formulas
from rag.parser.page_lines import MAX_PAGE, Line, Page, Span, clamp, remembered
from rag.parser.strands import by_cuts, in_strands, with_edges_in_place

# What most readers of pages need comes with their order.
__all__ = ["MAX_PAGE", "Line", "Page", "Span", "clamp", "find_gutters", "order", "split_at"]

# Fewer stretches of text than this make no columns.
_MIN_COLUMN_LINES = 5
_MIN_WIDTH = 150.0
# The lines of a column of prose fill this much of it at the median; the cells of a table do not.
_MIN_FILLED = 0.55
# Letters as high, against the page, across one that has lines of text are no text of it.
_WATERMARK = 0.15
_MIN_TEXT_LINES = 10
# Of the width of the text, a rule that parts what is above it from what is below.
_ACROSS = 0.9
# Of three columns: lines across a gutter, against those in the shortest column.
_MAX_ACROSS = 0.5


# Of a page: from where to where, and how far down.
Rule = tuple[float, float, float]


def order(page: Page) -> list[Line]:
    """The lines as a person reads them: down one column, then the next."""
    lines, marks = _without_watermarks(page, with_drop_caps(with_formulas(page.lines)))
    return [*_in_order(lines, page.items, page.rules), *marks]


def _in_order(lines: tuple[Line, ...], items: Sequence[Line], rules: Sequence[Rule]) -> list[Line]:
    gutters = find_gutters(lines)
    if gutters:
        return _by_sections((*lines, *items), gutters, rules)
    rises = [at for at, (before, after) in enumerate(pairwise(lines), start=1) if after.base < before.base - 1]
    # A file's own order is better than any sorting (side notes, tables), unless it plainly jumps about.
    if not rises:
        return _with_items(lines, items)
    if len(rises) <= 0.3 * (len(lines) - 1):
        found = in_strands(lines) if len(rises) > 1 else lines
        return _with_items(with_edges_in_place(lines, rises) if found is lines else found, items)
    return sorted((*lines, *items), key=_place)


def _without_watermarks(page: Page, lines: tuple[Line, ...]) -> tuple[tuple[Line, ...], Sequence[Line]]:
    """The lines, and apart from them those that are drawn across a page of text; their type makes no heading."""
    least = _WATERMARK * min(page.width, page.height)
    marks = [line for line in lines if line.size > least]
    if not marks or len(lines) - len(marks) < _MIN_TEXT_LINES:
        return lines, ()
    return tuple([line for line in lines if line.size <= least]), [replace(mark, size=0.0) for mark in marks]


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


@remembered
def find_gutters(lines: tuple[Line, ...]) -> tuple[float, ...]:
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
    middle = len([span for span in spans if span.left <= near and span.right >= far])
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
    ended = [right for left, right, _ in spans if left <= near < right]
    begun = [(left, right) for left, right, _ in spans if near < left < far]
    if begun:
        start, end = int(max(ended) - near) + 1 if ended else 0, int(min(begun)[0] - near)
        # Mostly no line crosses the strip, and one behind it goes on to the far end, so that there is no other.
        if start < end and any(right >= far for left, right in begun if int(left - near) == end):
            return near + start + (end - start) / 2
    changes = [0] * (int(far - near) + 2)
    changes[0] = len(ended)
    for start in [int(left - near) for left, _ in begun]:
        changes[start] += 1
    for end in [int(right - near) + 1 for left, right, _ in spans if near < right < far and left < far]:
        changes[end] -= 1
    crossed = list(accumulate(changes[:-1]))
    fewest = min(crossed)
    best_start = best_length = start = 0
    for position, count in enumerate([*crossed, fewest + 1]):
        if count != fewest:
            if position - start > best_length:
                best_start, best_length = start, position - start
            start = position + 1
    return near + best_start + best_length / 2


def _by_sections(lines: Sequence[Line], gutters: Sequence[float], rules: Sequence[Rule]) -> list[Line]:
    """By columns, above each rule across all of the text and then below it, if there are columns on both sides: the
    articles of a newspaper do not go on beyond it."""
    if not rules:  # as on most pages
        return _by_columns(lines, gutters)
    left, right = min([line.left for line in lines]), max([line.right for line in lines])
    most = _ACROSS * (right - left)
    across = sorted([at for start, end, at in rules if min(end, right) - max(start, left) >= most])
    ordered: list[Line] = []
    rest = lines
    for at in across:
        above, below = [line for line in rest if line.base <= at], [line for line in rest if line.base > at]
        if all(_has_columns(part, gutters) for part in (above, below)):
            ordered += _by_columns(above, gutters)
            rest = below
    return [*ordered, *_by_columns(rest, gutters)]


def _has_columns(lines: Sequence[Line], gutters: Sequence[float]) -> bool:
    """Whether lines of text stand on both sides of a gutter."""
    parts = [part for line in lines for part in split_at(line, gutters)]
    before = [part for part in parts if part.right <= gutters[-1]]
    behind = [part for part in parts if part.left >= gutters[0]]
    return min(len(before), len(behind)) >= _MIN_COLUMN_LINES


def _by_columns(lines: Sequence[Line], gutters: Sequence[float]) -> list[Line]:
    """Lines across the columns part the page; between them one column comes after the other."""
    ordered: list[Line] = []
    columns: list[list[Line]] = [[] for _ in range(len(gutters) + 1)]
    parts = sorted([part for line in lines for part in split_at(line, gutters)], key=_place)
    bands = find_bands(parts, gutters)
    if bands:
        return _around_bands(parts, gutters, bands)
    for line in parts:
        # Columns that the line's edges are in: a gutter is left of what starts on it, and right of what ends on it.
        column = bisect_right(gutters, line.left)
        if column == len(gutters) or line.right <= gutters[column]:
            columns[column].append(line)
            continue
        for each in columns:
            ordered += each
            each.clear()
        ordered.append(line)
    for each in columns:
        ordered += each
    return ordered


def _around_bands(parts: Sequence[Line], gutters: Sequence[float], bands: Sequence[tuple[float, float]]) -> list[Line]:
    """The same for a page where, between those heights, texts stand beside each other that are not its columns."""
    ordered: list[Line] = []
    above = 0.0
    for top, bottom in (*bands, (MAX_PAGE, MAX_PAGE)):
        ordered += _by_columns([line for line in parts if above <= line.top < top], gutters)
        band = [line for line in parts if top <= line.top < bottom]
        ordered += by_cuts(sorted(band, key=lambda line: (line.first, line.left)))
        above = bottom
    return ordered


def split_at(line: Line, gutters: Sequence[float]) -> Sequence[Line]:
    """The parts of a line that goes on in the next column at the same height."""
    if not line.spans:
        return (line,)
    if len(line.spans) == 2:
        return _halves(line, gutters)
    spans, parts, start = line.spans, [], 0
    for number in range(1, len(spans)):
        gutter = bisect_left(gutters, spans[number - 1].right)
        if gutter < len(gutters) and gutters[gutter] <= spans[number].left:
            parts.append(_part(line, start, number))
            start = number
    return [*parts, _part(line, start, len(spans))] if parts else (line,)


def _halves(line: Line, gutters: Sequence[float]) -> Sequence[Line]:
    """The same for a line with one gap, as nearly all lines over two columns are."""
    (_, end, _), (start, _, first) = line.spans
    gutter = bisect_left(gutters, end)
    if gutter == len(gutters) or gutters[gutter] > start:
        return (line,)
    text, top, bottom, base, size = line.text, line.top, line.bottom, line.base, line.size
    bold, at, count, mono = line.bold, line.first, line.count, line.mono
    before = text[:first].strip()
    return (
        Line(before, line.left, end, top, bottom, base, size, False, (), bold, at, count, None, mono),
        Line(text[first:], start, line.right, top, bottom, base, size, line.hyphened, (), bold, at, count, None, mono),
    )


def _part(line: Line, start: int, end: int) -> Line:
    """The part of a line from one of its spans up to but without another."""
    spans = line.spans
    first = spans[start].start
    left = spans[start].left if start else line.left
    if end == len(spans):
        text, right, hyphened = line.text[first:], line.right, line.hyphened
    else:
        text, right, hyphened = line.text[first : spans[end].start].strip(), spans[end - 1].right, False
    several = end - start > 1
    own = tuple([Span(each.left, each.right, each.start - first) for each in spans[start:end]]) if several else ()
    return Line(
        text, left, right, line.top, line.bottom, line.base, line.size,
        hyphened, own, line.bold, line.first, line.count, line.block, line.mono,
    )  # fmt: skip
