"""Lines in reading order become blocks: paragraphs, headings, list items and captions, each with its boxes.

Judges a page by itself and the profile alone, so that the blocks of a page are the same whatever range it is
read in."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from rag.parser.blocks import Block, BlockKind, PlacedLine
from rag.parser.captions import is_caption
from rag.parser.layout import Line
from rag.parser.line_joins import box_of_line, has_leaders, join_lines, words_around_hyphens

_BULLETS = (
    "\u2022\u2023\u25e6\u25aa\u25cf\u25cb\u25a0\u25a1\u2013\u2014\u00b7\u25b6\u25b7\u25b8\u25b9\u25ba\u25c6\u25c7"
    "\u2713\u2714\u2756\u27a2\u27a4*-"
)
_ITEM = re.compile(rf"(?:[{_BULLETS}]|\[\d{{1,3}}\]|\(?(?:\d{{1,3}}|[a-zA-Z]|[ivx]{{2,4}})[.)])\s+\S")
_SECTION = re.compile(r"(?:\d+(?:\.\d+)*|[A-Z](?:\.\d+)*|[IVXL]+)\.?")
SENTENCE_ENDS = (".", "!", "?", ":", "\u3002", "\uff01", "\uff1f", "\uff1a")
_SENTENCE_ENDS = frozenset(SENTENCE_ENDS)
# Type this much larger than the body's makes a line a heading; the larger, the higher its level.
_HEADING_RATIOS = ((1.7, 1), (1.35, 2), (1.12, 3))
_MAX_HEADING_CHARS = 200
# From line to line of a heading, in sizes of its type.
_MAX_TITLE_STEP = 1.5
# A line of the body's size that is bold is a heading below those.
_BOLD_LEVEL = 4
_MAX_BOLD_WORDS = 12
# Levels of headings known by their type stand below those of an outline.
_BELOW_OUTLINE = 10


class HeadingFinder:
    """Tells headings by the outline's titles on a page, or by their size against the body's."""

    def __init__(self, body_size: float, titles: dict[str, int], *, has_outline: bool) -> None:
        self._body_size = body_size
        self._least_size = _HEADING_RATIOS[-1][0] * body_size
        self._titles = titles
        # Smaller type makes no heading, unless it is bold or a title of the outline.
        self.plain_below = 0.0 if titles else self._least_size
        # A line much longer than any title, with its number and spaces, need not be compared.
        self._longest_title = 2 * max(map(len, titles), default=0) + 16
        self._base_level = _BELOW_OUTLINE if has_outline else 0

    def level(self, text: str, size: float, *, bold: bool = False) -> int:
        """1 for the highest; 0 for a line that is no heading."""
        if (not bold and size < self._least_size and not self._titles) or len(text) > _MAX_HEADING_CHARS:
            return 0
        if self._titles and len(text) <= self._longest_title and (level := self._titles.get(normalised(text), 0)):
            return level
        ratio = size / self._body_size if self._body_size else 0.0
        if ratio < _HEADING_RATIOS[-1][0]:
            return self._base_level + _BOLD_LEVEL if bold and ratio > 0.95 and _may_be_title(text) else 0
        if not any(letter.isalpha() for letter in text):
            return 0
        return next((self._base_level + level for least, level in _HEADING_RATIOS if ratio >= least), 0)


def _may_be_title(text: str) -> bool:
    return (
        len(text.split()) <= _MAX_BOLD_WORDS
        and not text.endswith(SENTENCE_ENDS)
        and len(text) > 2
        and (any(letter.isalpha() for letter in text) and not text[0].islower())
    )


def normalised(title: str) -> str:
    """A title without its number, case and punctuation: the outline's and the page's differ in these."""
    words = re.findall(r"\w+", title.casefold())
    while words and words[0].isdecimal():
        words.pop(0)
    return "".join(words)


class _Draft:
    """A block whose end is not yet found. `right` is the right edge of its widest line."""

    __slots__ = ("kind", "level", "lines", "right")

    def __init__(self, kind: BlockKind, level: int, line: Line) -> None:
        self.kind, self.level, self.lines, self.right = kind, level, [line], line.right


def to_blocks(page: int, lines: Sequence[Line], headings: HeadingFinder) -> Iterator[Block]:
    """Join lines in reading order into blocks, each with its boxes."""
    items = [line for line in lines if line.block is not None]
    texts = [line for line in lines if line.block is None] if items else lines
    pitches = _usual_pitches(texts)
    words = words_around_hyphens(texts)
    bold_ends = _bold_headings(texts)
    draft: _Draft | None = None
    for line in lines:
        if line.block is not None:
            if draft is not None:
                yield _finished(page, draft, headings, words, items)
            yield line.block
            draft = None
            continue
        bold = line.bold and line.first in bold_ends
        level = headings.level(line.text, line.size, bold=bold) if bold or line.size >= headings.plain_below else 0
        if level and has_leaders(line.text):
            level = 0  # an entry in a table of contents
        is_item = _ITEM.match(line.text) is not None
        if draft is not None:
            if not is_item and _continues(draft, line, level, pitches.get(round(line.size), 0.0)):
                draft.lines.append(line)
                if line.right > draft.right:
                    draft.right = line.right
                continue
            yield _finished(page, draft, headings, words, items)
        kind = BlockKind.LIST_ITEM if is_item else BlockKind.PARAGRAPH
        draft = _Draft(BlockKind.HEADING if level else kind, level, line)
    if draft is not None:
        yield _finished(page, draft, headings, words, items)


def _bold_headings(lines: Sequence[Line]) -> frozenset[int]:
    """The bold lines that stand by themselves: not beside other text, and above text that is not bold."""
    count = len([line for line in lines if line.bold])
    # On a page that is bold throughout, this says nothing.
    if not count or 2 * count > len(lines):
        return frozenset()
    found: set[int] = set()
    for before, line, after in zip([None, *lines], lines, [*lines[1:], None], strict=False):
        if not line.bold or (line.spans and not _is_numbered(line)):
            continue
        beside = any(other is not None and abs(other.base - line.base) < 0.5 * line.size for other in (before, after))
        goes_on = (
            before is not None
            and not before.bold
            and not before.text.endswith(SENTENCE_ENDS)
            and (0 < line.base - before.base < 1.35 * line.size and before.right > line.right)
        )
        if not beside and not goes_on and after is not None:
            found.add(line.first)
    return frozenset(found)


def _is_numbered(line: Line) -> bool:
    """Whether the gap in a line is the one between the number of a section and its title."""
    return len(line.spans) == 2 and _SECTION.fullmatch(line.text[: line.spans[1].start].strip()) is not None


def _usual_pitches(lines: Sequence[Line]) -> dict[int, float]:
    """From line to line of each size of type: code, notes and tables are set closer than prose."""
    steps: dict[int, list[float]] = defaultdict(list)
    for before, after in pairwise(lines):
        if (step := after.base - before.base) > 1:
            steps[round(after.size)].append(step)
    return {size: median(found) for size, found in steps.items()}


def _continues(draft: _Draft, line: Line, level: int, pitch: float) -> bool:
    last = draft.lines[-1]
    size = last.size
    if level != draft.level or abs(line.size - size) > 0.12 * size:
        return False
    if last.hyphened:
        return True
    step = line.base - last.base
    if step < -size:  # the next column
        return last.text[-1:] not in _SENTENCE_ENDS and line.text[:1].islower()
    if step < 0.5 * size:  # further along on the same line
        return not level or step == 0
    most = 1.3 * min(pitch, 1.8 * size)
    if level:
        return step <= max(most, _MAX_TITLE_STEP * size)
    if step > most or has_leaders(last.text) or (last.text[-1:].isdecimal() and has_leaders(line.text)):
        return False
    if len(draft.lines) == 1 and _is_title(last, line):
        return False
    if line.left - last.left > 0.8 * size and not (len(draft.lines) == 1 and _may_hang(draft, line)):
        return False
    if last.text[-1:] not in _SENTENCE_ENDS:
        return True
    ends_early = last.right < max(line.right, draft.right) - 4 * size
    return not ends_early


def _is_title(first: Line, below: Line) -> bool:
    """Whether a line stands in the middle above another, or is bold and short where the other is neither."""
    inset, short = first.left - below.left, below.right - first.right
    if first.bold and not below.bold and short > 4 * first.size:
        return True
    return inset > 3 * first.size and short > 3 * first.size and abs(inset - short) < first.size


def _may_hang(draft: _Draft, line: Line) -> bool:
    """Whether a line further in than the first goes on with it: with an item, or a full line that ends no sentence."""
    if draft.kind is BlockKind.LIST_ITEM:
        return True
    last = draft.lines[-1]
    return last.text[-1:] not in _SENTENCE_ENDS and last.right >= line.right - 2 * last.size


def _finished(
    page: int, draft: _Draft, headings: HeadingFinder, words: frozenset[str], items: Sequence[Line] = ()
) -> Block:
    text, starts = join_lines(draft.lines, words)
    boxes = [box_of_line(page, line) for line in draft.lines]
    kind, level = draft.kind, 0
    if kind is BlockKind.HEADING:
        first = draft.lines[0]
        level = headings.level(text, first.size, bold=first.bold)
        kind = kind if level else BlockKind.PARAGRAPH
    if kind is not BlockKind.LIST_ITEM and is_caption(text, draft.lines, items):
        kind, level = BlockKind.CAPTION, 0
    return Block(kind=kind, text=text, page=page, level=level, lines=tuple(map(PlacedLine, starts, boxes)))
