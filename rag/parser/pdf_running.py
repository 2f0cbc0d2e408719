"""Headers, footers and page numbers: found in the sample of a document, and left out of each of its pages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from rag.parser.blocks import Profile
from rag.parser.layout import Line, Page
from rag.parser.paragraphs import SENTENCE_ENDS, normalised
from rag.parser.pdf_numbers import ending_number, is_lone_number, leading_number, number_offset

# Header and footer lines stand in the outer eighths of a page.
_MARGIN = 0.12
_MAX_EDGE_LINES = 2
_MIN_USES = 3
# In a document of few pages, two uses are many; what only these tell of is kept where it stands first.
_FEW_PAGES = 6
_MIN_USES_OF_FEW = 2
# Against the body's: larger type is a title, and smaller is a header even with no gap below it.
_MAX_EDGE_SIZE = 1.2
_SMALL_SIZE = 0.9
# Only these are numbered with letters: further on, a lone one is the name of an axis, or of a part of an index.
_FRONT_PAGES = 40
# Points between a number on one side of the page and words on the other.
_WIDE_GAP = 100.0
_DIGITS = re.compile(r"\d+")


class _Use(NamedTuple):
    """Where a line that may be a header or footer stands, and the numbers in it."""

    page: int
    numbers: tuple[int, ...]
    is_parted: bool
    is_small: bool


class Running(NamedTuple):
    """What is left out of pages: lines, but for their numbers; others on the pages after one; and page numbers, with by
    how much they are higher than those of the pages."""

    everywhere: tuple[str, ...] = ()
    after: tuple[tuple[str, int], ...] = ()
    offset: int | None = None


def find_running(sample: Sequence[Page], body_size: float) -> Running:
    """Headers and footers: a line that half of the sampled pages have, the same but for its page number; or a third of
    them, where the first one keeps it."""
    least = _MIN_USES_OF_FEW if len(sample) <= _FEW_PAGES else _MIN_USES
    if len(sample) < least:
        return Running()
    edges = {page.number: list(_edge_lines(page)) for page in sample}
    everywhere, after = [], []
    for pattern, uses in sorted(_uses(sample, edges, body_size).items()):
        parted = [use for use in uses if use.is_parted]
        if _is_header(uses, len(sample)):
            everywhere.append(pattern)
        elif len(parted) >= max(least, len(sample) / 3) and _is_running(parted):
            after.append((pattern, min(use.page for use in parted)))
    numbered = [(page.number, [line.text for line in (*edges[page.number], *_foot(page))]) for page in sample]
    return Running(tuple(everywhere), tuple(after), number_offset(numbered, max(least, len(sample) / 2)))


def _uses(sample: Sequence[Page], edges: Mapping[int, Sequence[Line]], body_size: float) -> dict[str, list[_Use]]:
    """The lines in the margins, by what they are but for their numbers."""
    uses: dict[str, list[_Use]] = defaultdict(list)
    for page in sample:
        parted = edges[page.number]
        for line in (*_in_margin(page, top=True), *_in_margin(page, top=False)):
            if line.size <= _MAX_EDGE_SIZE * body_size:
                small = line.size <= _SMALL_SIZE * body_size
                use = _Use(page.number, _numbers(line.text), line in parted, small)
                uses[_pattern(line.text)].append(use)
    return uses


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
    if not _DIGITS.search(text):
        return text
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
        if len(group) <= _MAX_EDGE_LINES and not any(_ends_sentence(line) for line in group):
            yield from group


def _ends_sentence(line: Line) -> bool:
    """What has parts on both sides of the page is no sentence."""
    return not line.spans and line.text.endswith(SENTENCE_ENDS)


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


def _foot(page: Page, offset: int | None = None) -> Sequence[Line]:
    """The lowest line, if it is a number alone that a gap parts from the text, and with an offset the number of this
    page: in small books it stands far above the page's edge."""
    if len(page.lines) < 2:
        return ()
    bases = [line.base for line in page.lines]
    lowest = page.lines[bases.index(max(bases))]
    if not lowest.text.isdecimal() or (offset is not None and int(lowest.text[:9]) != page.number + offset):
        return ()
    above = max([line.bottom for line in page.lines if line is not lowest])
    return (lowest,) if lowest.top - above > lowest.size else ()


def _base(line: Line) -> float:
    return line.base


def without_repeated(page: Page, profile: Profile) -> Page:
    """Never all of a page: what looks repeated is then its text."""
    largest = _MAX_EDGE_SIZE * profile.body_size
    margins = [line for line in (*_in_margin(page, top=True), *_in_margin(page, top=False)) if line.size <= largest]
    foot = _foot(page, profile.number_offset) if profile.number_offset is not None else ()
    if not margins and not foot:
        return page
    repeated = [*profile.repeated_lines, *[line for line, first in profile.repeated_after if page.number > first]]
    # To make a pattern takes long, and most lines of text start otherwise than any of them.
    starts = {pattern[:1] for pattern in repeated}
    dropped = {
        id(line)
        for line in margins
        if (line.text[:1] in starts or line.text[:1].isdecimal()) and _pattern(line.text) in repeated
    }
    dropped.update(map(id, foot))
    numbered = [line for line in margins if id(line) not in dropped and _has_page_number(line, page.number, profile)]
    if numbered:
        edges = {id(line) for line in _edge_lines(page)}
        dropped |= {id(line) for line in numbered if id(line) in edges}
    lines = tuple([line for line in page.lines if id(line) not in dropped]) if dropped else ()
    return replace(page, lines=lines) if lines else page


def _has_page_number(line: Line, page: int, profile: Profile) -> bool:
    """Whether a line at a page's edge is the number of this page, or has it at an end as the document's headers do."""
    if profile.units == 1:
        return False
    if is_lone_number(line.text):
        return page <= _FRONT_PAGES or _DIGITS.search(line.text) is not None
    if profile.number_offset is None:
        return False
    number = page + profile.number_offset
    # To look for it at the ends takes long, and most lines do not have it at all.
    if line.text.isascii() and str(number) not in line.text:
        return False
    return not _is_title(line, page, profile) and number in (ending_number(line.text), leading_number(line.text))


def _is_title(line: Line, page: int, profile: Profile) -> bool:
    """Whether a number before the words is rather that of a heading, which stands close to it."""
    if leading_number(line.text) is None or (line.spans and line.spans[1].left - line.spans[0].right > _WIDE_GAP):
        return False
    title = normalised(line.text)
    return line.bold or any(entry.page == page and normalised(entry.title) == title for entry in profile.outline)
