"""The lines of a page, and the order in which a person reads them: one column, or two.

Knows nothing of PDF libraries, and judges a page by itself alone. Joining lines is left to paragraphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from statistics import median
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

# Points; beyond any page that the format allows.
MAX_PAGE = 20_000.0


def clamp(value: float, most: float) -> float:
    """Within the page: a damaged file has its text anywhere, or at no number at all."""
    return min(max(0.0, value), most)


class Span(NamedTuple):
    """A stretch of a line between two wide gaps, and where in the line's text it starts."""

    left: float
    right: float
    start: int


class Line(msgspec.Struct, frozen=True):
    """A line of text. Points from the top left of the page as it is shown; `base` is where its letters stand.

    `spans` is empty for a line without wide gaps."""

    text: str
    left: float
    right: float
    top: float
    bottom: float
    base: float
    size: float
    hyphened: bool = False
    spans: tuple[Span, ...] = ()


class Page(msgspec.Struct, frozen=True):
    """The lines of a page in the order of the file."""

    number: int
    width: float
    height: float
    lines: tuple[Line, ...]


def order(page: Page) -> list[Line]:
    """The lines as a person reads them: down one column, then the next."""
    gutter = _find_gutter(page.lines)
    if gutter is not None:
        return _by_columns(page.lines, gutter)
    falls = sum(after.base >= before.base - 1 for before, after in pairwise(page.lines))
    # A file's own order is better than any sorting (side notes, tables), unless it plainly jumps about.
    if falls >= 0.7 * (len(page.lines) - 1):
        return list(page.lines)
    return sorted(page.lines, key=_place)


def _place(line: Line) -> tuple[float, float]:
    return round(line.base), line.left


def _find_gutter(lines: Sequence[Line]) -> float | None:
    """Where a page of two columns has its empty middle, or None.

    Text of two columns fills both sides of it; the cells of a table do not."""
    spans = [span for line in lines for span in (line.spans or (Span(line.left, line.right, 0),))]
    if len(spans) < 10:
        return None
    left, right = min(span.left for span in spans), max(span.right for span in spans)
    width = right - left
    near, far = left + 0.35 * width, left + 0.65 * width
    middle = [span for span in spans if span.left <= near and span.right >= far]
    if len(middle) > 0.6 * len(spans) or width < 150:
        return None
    gutter = _emptiest(spans, near, far)
    before = [span.right - span.left for span in spans if span.right <= gutter]
    after = [span.right - span.left for span in spans if span.left >= gutter]
    if min(len(before), len(after)) < max(5, 0.5 * len(middle)):
        return None
    filled = min(median(before) / (gutter - left), median(after) / (right - gutter))
    return gutter if filled > 0.55 else None


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


def _by_columns(lines: Sequence[Line], gutter: float) -> list[Line]:
    """Lines across both columns part the page; between them the left column comes before the right."""
    ordered: list[Line] = []
    columns: tuple[list[Line], list[Line]] = ([], [])
    parts = [part for line in lines for part in _split_at(line, gutter)]
    for line in sorted(parts, key=_place):
        if line.left < gutter < line.right:
            ordered += [*columns[0], *columns[1], line]
            columns = ([], [])
        else:
            columns[line.left >= gutter].append(line)
    return [*ordered, *columns[0], *columns[1]]


def _split_at(line: Line, gutter: float) -> Iterator[Line]:
    for before, after in pairwise(line.spans):
        if before.right <= gutter <= after.left:
            yield replace(line, text=line.text[: after.start].strip(), right=before.right, hyphened=False, spans=())
            yield replace(line, text=line.text[after.start :], left=after.left, spans=())
            return
    yield line
