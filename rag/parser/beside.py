"""Parts of a page of columns where texts of other widths stand beside each other: an abstract beside its keywords.

Told by lines across the gutter that have lines beside them; judges a page by itself alone."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from rag.parser.page_lines import Line

# Fewer lines across a gutter with text beside them are formulas, or words in a picture.
_MIN_LINES = 3
# Of the height of the lower of two lines.
_MIN_SHARED = 0.3
# In sizes of type: how far apart rows of one such part stand.
_MAX_STEP = 3.5

Band = tuple[float, float]


def find_bands(lines: Sequence[Line], gutters: Sequence[float]) -> list[Band]:
    """From where to where down the page there are such parts; `lines` come from top to bottom."""
    across = [line for line in lines if line.block is None and _is_across(line, gutters)]
    if len(across) < _MIN_LINES:
        return []
    found: list[Band] = []
    count = 0
    for row in _rows_beside(lines, gutters):
        top, bottom = min(line.top for line in row), max(line.bottom for line in row)
        has_across = any(_is_across(line, gutters) for line in row)
        size = max(line.size for line in row)
        if found and top - found[-1][1] <= _MAX_STEP * size:
            found[-1] = (found[-1][0], max(bottom, found[-1][1]))
            count += has_across
            continue
        if found and count < _MIN_LINES:
            found.pop()
        found.append((top, bottom))
        count = int(has_across)
    if found and count < _MIN_LINES:
        found.pop()
    return found


def _rows_beside(lines: Sequence[Line], gutters: Sequence[float]) -> list[list[Line]]:
    """Lines with the next ones that stand beside them, though not in columns of their own."""
    rows: list[list[Line]] = []
    texts = [line for line in lines if line.block is None]
    for at, line in enumerate(texts):
        row = [line]
        for other in texts[at + 1 : at + 4]:
            if _are_beside(line, other) and not _are_columns(line, other, gutters):
                row.append(other)
        if len(row) > 1:
            rows.append(row)
    return rows


def _are_beside(line: Line, other: Line) -> bool:
    shared = min(line.bottom, other.bottom) - max(line.top, other.top)
    if shared < _MIN_SHARED * min(line.bottom - line.top, other.bottom - other.top):
        return False
    return other.left >= line.right or line.left >= other.right


def _are_columns(line: Line, other: Line, gutters: Sequence[float]) -> bool:
    """Whether each stands in a column of the page."""
    if _is_across(line, gutters) or _is_across(other, gutters):
        return False
    return bisect_right(gutters, line.left) != bisect_right(gutters, other.left)


def _is_across(line: Line, gutters: Sequence[float]) -> bool:
    column = bisect_right(gutters, line.left)
    return column < len(gutters) and line.right > gutters[column]
