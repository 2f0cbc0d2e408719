"""Lines in reading order become blocks: paragraphs, headings, list items and captions, each with its boxes.

Judges a page by itself and the profile alone, so that the blocks of a page are the same whatever range it is
read in."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, repeat
from statistics import median

from rag.parser.blocks import Block, BlockKind, PlacedLine
from rag.parser.captions import is_caption
from rag.parser.headings import SENTENCE_ENDS, HeadingFinder, normalised, standing_titles
from rag.parser.layout import Line
from rag.parser.line_joins import boxes_of_lines, has_leaders, is_right_to_left, join_lines, words_around_hyphens

try:
    from rag.parser import _line_runs as line_runs
except ImportError:  # there was no compiler
    line_runs = None  # type: ignore[assignment]
else:
    line_runs.bind(Line)

# Who makes blocks of lines needs to tell headings.
__all__ = ["SENTENCE_ENDS", "HeadingFinder", "normalised", "to_blocks"]

_BULLETS = (
    "\u2022\u2023\u25e6\u25aa\u25cf\u25cb\u25a0\u25a1\u2013\u2014\u00b7\u25b6\u25b7\u25b8\u25b9\u25ba\u25c6\u25c7"
    "\u2713\u2714\u2756\u27a2\u27a4*-"
)
_NUMBER = r"(?:\d{1,3}|[a-zA-Z]|[ivx]{2,4})"
# What opens a bracket before its number closes it behind: "(p. 7)" goes on with a sentence.
_ITEM = re.compile(rf"(?:[{_BULLETS}]|\[\d{{1,3}}\]|\({_NUMBER}\)|{_NUMBER}[.)])\s+\S")
_SENTENCE_ENDS = frozenset(SENTENCE_ENDS)
_ENDS = "".join(SENTENCE_ENDS)
# In sizes of its type: a sentence that ends so much before the others may end its paragraph.
_EARLY = 4
# How a line goes on with the one before: it does, or does if that one does not end early; else it has to be asked.
_GOES_ON, _UNLESS_EARLY = 1, 2
# From line to line of a heading, in sizes of its type.
_MAX_TITLE_STEP = 1.5
# Shorter lines may be pieces of formulas.
_MIN_PITCH_CHARS = 16


class _Draft:
    """A block whose end is not yet found. `end` is how far its widest line goes, in the direction of reading."""

    __slots__ = ("end", "is_bold", "is_mirrored", "kind", "level", "lines")

    def __init__(self, kind: BlockKind, level: int, line: Line, *, is_bold: bool) -> None:
        self.kind, self.level, self.lines, self.is_bold = kind, level, [line], is_bold
        self.is_mirrored = is_right_to_left(line.text)
        _, self.end = self.edges(line)

    def edges(self, line: Line) -> tuple[float, float]:
        """Where a line starts and ends, the more the further along."""
        return (-line.right, -line.left) if self.is_mirrored else (line.left, line.right)

    def takes(self, line: Line, goes_on: int) -> bool:
        """Whether a line that goes on with the one before is plainly the next of these, which are more than one."""
        if self.level or self.is_mirrored or len(self.lines) == 1:
            return False
        return goes_on == _GOES_ON or not self.ends_early(line.right, self.lines[-1].right)

    def ends_early(self, end: float, last_end: float) -> bool:
        """Whether the last line ends long before the next one or the widest does."""
        return last_end < max(end, self.end) - _EARLY * self.lines[-1].size

    def add(self, line: Line) -> None:
        self.lines.append(line)
        end = -line.left if self.is_mirrored else line.right
        if end > self.end:
            self.end = end


def to_blocks(page: int, lines: Sequence[Line], headings: HeadingFinder) -> Iterator[Block]:
    """Join lines in reading order into blocks, each with its boxes."""
    items = [line for line in lines if line.block is not None]
    texts = [line for line in lines if line.block is None] if items else lines
    pitches = _usual_pitches(texts)
    words = words_around_hyphens(texts)
    titles = standing_titles(texts)
    # Most pages have none in all of their text, and then no line is asked.
    leaders = has_leaders("\n".join([line.text for line in texts]))
    if page == 1:
        headings.find_title(texts)
    plain_below = headings.plain_below
    draft: _Draft | None = None
    told = _told(lines, pitches, plain_below, leaders)
    for line, goes_on in zip(lines, told, strict=True):
        if goes_on and draft is not None and draft.takes(line, goes_on) and not (titles and id(line) in titles):
            draft.add(line)
            continue
        if line.block is not None:
            if draft is not None:
                yield _finished(page, draft, headings, words, items, leaders)
            yield line.block
            draft = None
            continue
        level, bold = 0, False
        if titles and id(line) in titles:
            level, bold = headings.level(line.text, line.size, bold=True), True
        elif line.size >= plain_below:
            level = headings.level(line.text, line.size)
        if level and leaders and has_leaders(line.text):
            level = 0  # an entry in a table of contents
        is_item = _ITEM.match(line.text) is not None
        if draft is not None:
            if not is_item and _continues(draft, line, level, pitches, leaders):
                draft.add(line)
                continue
            yield _finished(page, draft, headings, words, items, leaders)
        kind = BlockKind.LIST_ITEM if is_item else BlockKind.PARAGRAPH
        draft = _Draft(BlockKind.HEADING if level else kind, level, line, is_bold=bold or line.bold)
    if draft is not None:
        yield _finished(page, draft, headings, words, items, leaders)


def _told(lines: Sequence[Line], pitches: dict[float, float], plain_below: float, leaders: bool) -> Iterable[int]:
    """How each line goes on with the one before; 0 where `_continues` has to tell."""
    if line_runs is None or leaders:
        return repeat(0, len(lines))
    return line_runs.goes_on(lines, pitches, plain_below, _ENDS)


def _usual_pitches(lines: Sequence[Line]) -> dict[float, float]:
    """From line to line of each size of type: code, notes and tables are set closer than prose."""
    if line_runs is not None and (pitches := line_runs.pitches(lines)) is not None:
        return pitches
    exact: dict[float, list[float]] = defaultdict(list)
    sizes, bases = [line.size for line in lines], [line.base for line in lines]
    for size, before, base in zip(sizes[1:], bases, bases[1:], strict=False):
        if (step := base - before) > 1:
            exact[size].append(step)
    steps: dict[int, list[float]] = defaultdict(list)
    for size, found in exact.items():
        steps[round(size)] += found
    usual = {rounded: median(found) for rounded, found in steps.items()}
    if [rounded for rounded, step in usual.items() if step < rounded]:
        usual.update(_pitches_of_prose(lines, usual))
    return {size: usual.get(round(size), 0.0) for size in set(sizes)}


def _pitches_of_prose(lines: Sequence[Line], usual: dict[int, float]) -> dict[int, float]:
    """Where pieces of formulas make the usual steps less than the size of the type: those between longer lines."""
    steps: dict[int, list[float]] = defaultdict(list)
    for before, after in pairwise(lines):
        step, size = after.base - before.base, round(after.size)
        if step > 1 and usual[size] < size and len(after.text) >= _MIN_PITCH_CHARS <= len(before.text):
            steps[size].append(step)
    return {size: median(found) for size, found in steps.items()}


def _continues(draft: _Draft, line: Line, level: int, pitches: dict[float, float], leaders: bool) -> bool:
    """`leaders`: whether any line of the page has some."""
    last = draft.lines[-1]
    size = last.size
    if level != draft.level or abs(line.size - size) > 0.12 * size:
        return False
    if last.hyphened:
        return not line.text.isdecimal()  # the number of the page
    step = line.base - last.base
    if step < -size:  # the next column
        return last.text[-1:] not in _SENTENCE_ENDS and line.text[:1].islower()
    if step < 0.5 * size:  # further along on the same line
        return not level or step == 0
    most = 1.3 * min(pitches[line.size], 1.8 * size)
    if level:
        return step <= max(most, _MAX_TITLE_STEP * size)
    if step > most:
        return False
    if leaders and (has_leaders(last.text) or (last.text[-1:].isdecimal() and has_leaders(line.text))):
        return False
    if len(draft.lines) == 1 and _is_title(draft, line):
        return False
    if draft.is_mirrored:
        start, end, last_start, last_end = -line.right, -line.left, -last.right, -last.left
    else:
        start, end, last_start, last_end = line.left, line.right, last.left, last.right
    if start - last_start > 0.8 * size and not (len(draft.lines) == 1 and _may_hang(draft, line)):
        return False
    if last.text[-1:] not in _SENTENCE_ENDS:
        return True
    return not draft.ends_early(end, last_end)


def _is_title(draft: _Draft, below: Line) -> bool:
    """Whether its only line stands in the middle above another, or is bold and short where the other is neither."""
    first = draft.lines[0]
    (start, end), (below_start, below_end) = draft.edges(first), draft.edges(below)
    inset, short = start - below_start, below_end - end
    if first.bold and not below.bold and short > 4 * first.size:
        return True
    return inset > 3 * first.size and short > 3 * first.size and abs(inset - short) < first.size


def _may_hang(draft: _Draft, line: Line) -> bool:
    """Whether a line further in than the first goes on with it: with an item, or a full line that ends no sentence."""
    if draft.kind is BlockKind.LIST_ITEM:
        return True
    last = draft.lines[-1]
    return last.text[-1:] not in _SENTENCE_ENDS and draft.edges(last)[1] >= draft.edges(line)[1] - 2 * last.size


def _finished(
    page: int, draft: _Draft, headings: HeadingFinder, words: frozenset[str], items: Sequence[Line], leaders: bool
) -> Block:
    text, starts = join_lines(draft.lines, words, leaders=leaders)
    boxes = boxes_of_lines(page, draft.lines)
    kind, level = draft.kind, 0
    if kind is BlockKind.HEADING:
        first = draft.lines[0]
        level = headings.level(text, first.size, bold=draft.is_bold)
        kind = kind if level else BlockKind.PARAGRAPH
    if kind is not BlockKind.LIST_ITEM and is_caption(text, draft.lines, items):
        kind, level = BlockKind.CAPTION, 0
    return Block(kind=kind, text=text, page=page, level=level, lines=tuple(map(PlacedLine, starts, boxes)))
