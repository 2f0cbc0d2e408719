"""Headers, footers and page numbers: found in the sample of a document, and left out of each of its pages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from rag.parser.blocks import Profile
from rag.parser.layout import Line, Page
from rag.parser.paragraphs import SENTENCE_ENDS

# Header and footer lines stand in the outer tenths of a page.
_MARGIN = 0.1
_MAX_EDGE_LINES = 2
_MIN_USES = 3
# Against the body's: larger type is a title, and smaller is a header even with no gap below it.
_MAX_EDGE_SIZE = 1.2
_SMALL_SIZE = 0.9
_DIGITS = re.compile(r"\d+")


class _Use(NamedTuple):
    """Where a line that may be a header or footer stands, and the numbers in it."""

    page: int
    numbers: tuple[int, ...]
    is_parted: bool
    is_small: bool


def repeated_lines(sample: Sequence[Page], body_size: float) -> tuple[str, ...]:
    """Headers and footers: a line that half of the sampled pages have, the same but for its page number."""
    if len(sample) < _MIN_USES:
        return ()
    uses: dict[str, list[_Use]] = defaultdict(list)
    for page in sample:
        parted = set(_edge_lines(page))
        for line in (*_in_margin(page, top=True), *_in_margin(page, top=False)):
            if line.size <= _MAX_EDGE_SIZE * body_size:
                small = line.size <= _SMALL_SIZE * body_size
                use = _Use(page.number, _numbers(line.text), line in parted, small)
                uses[_pattern(line.text)].append(use)
    return tuple(sorted(pattern for pattern, found in uses.items() if _is_header(found, len(sample))))


def _is_header(uses: Sequence[_Use], pages: int) -> bool:
    """Whether half of the pages have it with a gap to the text, or nearly all have it in small type."""
    parted = [use for use in uses if use.is_parted]
    if len(parted) >= max(_MIN_USES, pages / 2) and _is_running(parted):
        return True
    small = [use for use in uses if use.is_small]
    return len(small) >= max(_MIN_USES, 0.8 * pages) and _is_running(small)


def _is_running(uses: Sequence[_Use]) -> bool:
    """Whether numbers in the lines are all the same, or one of them counts the pages."""
    if len({use.numbers for use in uses}) == 1:
        return True
    columns = zip(*(tuple(number - use.page for number in use.numbers) for use in uses), strict=True)
    return any(len(set(offsets)) == 1 for offsets in columns)


def _pattern(text: str) -> str:
    """The line without its numbers. A number before the words counts as one behind them: facing pages have theirs on
    different sides."""
    pattern = _DIGITS.sub("#", text)
    return f"{pattern[2:]} #" if pattern.startswith("# ") and text[0] != "#" else pattern


def _numbers(text: str) -> tuple[int, ...]:
    """In the order in which they stand in the pattern."""
    numbers = tuple([int(digits[:9]) for digits in _DIGITS.findall(text)])
    leads = _DIGITS.sub("#", text).startswith("# ") and text[0] != "#"
    return (*numbers[1:], numbers[0]) if leads else numbers


def _edge_lines(page: Page) -> Iterator[Line]:
    """The lines in the top and bottom margin that a gap parts from the rest of the page."""
    lines = sorted(page.lines, key=lambda line: line.base)
    top = bottom = 0
    for count, (line, below) in enumerate(pairwise(lines), start=1):
        gap = below.top - line.bottom > line.size
        if gap and line.bottom < page.height * _MARGIN:
            top = count
        if gap and not bottom and below.top > page.height * (1 - _MARGIN):
            bottom = len(lines) - count
    for group in (lines[:top], lines[len(lines) - bottom :]):
        # More lines, or a sentence, are a short paragraph and no header.
        if len(group) <= _MAX_EDGE_LINES and not any(line.text.endswith(SENTENCE_ENDS) for line in group):
            yield from group


def _in_margin(page: Page, *, top: bool) -> list[Line]:
    """The outermost lines in the top or the bottom margin, whatever follows them."""
    if top:
        edge = page.height * _MARGIN
        found = [line for line in page.lines if line.bottom < edge]
    else:
        edge = page.height * (1 - _MARGIN)
        found = [line for line in page.lines if line.top > edge]
    found.sort(key=_base, reverse=not top)
    return found[:_MAX_EDGE_LINES]


def _base(line: Line) -> float:
    return line.base


def without_repeated(page: Page, profile: Profile) -> Page:
    """Never all of a page: what looks repeated is then its text."""
    repeated = profile.repeated_lines
    if not repeated:
        return page
    dropped = [
        line
        for line in (*_in_margin(page, top=True), *_in_margin(page, top=False))
        if line.size <= _MAX_EDGE_SIZE * profile.body_size and _pattern(line.text) in repeated
    ]
    lines = tuple([line for line in page.lines if line not in dropped]) if dropped else ()
    return replace(page, lines=lines) if lines else page
