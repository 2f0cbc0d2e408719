"""Lines in reading order become blocks: paragraphs, headings and list items, each with its boxes.

Judges a page by itself and the profile alone, so that the blocks of a page are the same whatever range it is
read in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from rag.parser.blocks import Block, BlockKind, Box
from rag.parser.layout import Line

_BULLETS = "\u2022\u2023\u25e6\u25aa\u25cf\u25cb\u25a0\u25a1\u2013\u2014\u00b7*-"
_ITEM = re.compile(rf"(?:[{_BULLETS}]|\(?(?:\d{{1,3}}|[a-zA-Z]|[ivx]{{2,4}})[.)])\s+\S")
SENTENCE_ENDS = (".", "!", "?", ":", "\u3002", "\uff01", "\uff1f", "\uff1a")
# Type this much larger than the body's makes a line a heading; the larger, the higher its level.
_HEADING_RATIOS = ((1.7, 1), (1.35, 2), (1.12, 3))
_MAX_HEADING_CHARS = 200
# Levels of headings known by their size stand below those of an outline.
_BELOW_OUTLINE = 10


class HeadingFinder:
    """Tells headings by the outline's titles on a page, or by their size against the body's."""

    def __init__(self, body_size: float, titles: dict[str, int], *, has_outline: bool) -> None:
        self._body_size = body_size
        self._titles = titles
        self._base_level = _BELOW_OUTLINE if has_outline else 0

    def level(self, text: str, size: float) -> int:
        """1 for the highest; 0 for a line that is no heading."""
        if len(text) > _MAX_HEADING_CHARS:
            return 0
        if self._titles and (level := self._titles.get(normalised(text), 0)):
            return level
        if not self._body_size or not any(letter.isalpha() for letter in text):
            return 0
        ratio = size / self._body_size
        return next((self._base_level + level for least, level in _HEADING_RATIOS if ratio >= least), 0)


def normalised(title: str) -> str:
    """A title without its number, case and punctuation: the outline's and the page's differ in these."""
    words = re.findall(r"\w+", title.casefold())
    while words and words[0].isdecimal():
        words.pop(0)
    return "".join(words)


class _Draft(NamedTuple):
    kind: BlockKind
    level: int
    lines: list[Line]


def to_blocks(page: int, lines: Sequence[Line], headings: HeadingFinder) -> Iterator[Block]:
    """Join lines in reading order into blocks, each with its boxes."""
    pitch = _usual_pitch(lines)
    draft: _Draft | None = None
    for line in lines:
        level = headings.level(line.text, line.size)
        if draft is not None and _continues(draft, line, level, pitch):
            draft.lines.append(line)
            continue
        if draft is not None:
            yield _finished(page, draft, headings)
        kind = BlockKind.LIST_ITEM if _ITEM.match(line.text) else BlockKind.PARAGRAPH
        draft = _Draft(BlockKind.HEADING if level else kind, level, [line])
    if draft is not None:
        yield _finished(page, draft, headings)


def _usual_pitch(lines: Sequence[Line]) -> float:
    steps = [after.base - before.base for before, after in pairwise(lines) if after.base - before.base > 1]
    return median(steps) if steps else 0.0


def _continues(draft: _Draft, line: Line, level: int, pitch: float) -> bool:
    last = draft.lines[-1]
    if level != draft.level or abs(line.size - last.size) > 0.12 * last.size or _ITEM.match(line.text):
        return False
    if last.hyphened:
        return True
    step = line.base - last.base
    if step < -last.size:  # the next column
        return not last.text.endswith(SENTENCE_ENDS) and line.text[:1].islower()
    if step < 0.5 * last.size:  # further along on the same line
        return not level or step == 0
    if step > 1.3 * min(pitch, 1.8 * last.size):
        return False
    if level:
        return True
    indented = line.left - last.left > 0.8 * last.size
    if indented and not (draft.kind is BlockKind.LIST_ITEM and len(draft.lines) == 1):
        return False
    ends_early = last.right < max(line.right, *(each.right for each in draft.lines)) - 4 * last.size
    return not (ends_early and last.text.endswith(SENTENCE_ENDS))


def _finished(page: int, draft: _Draft, headings: HeadingFinder) -> Block:
    text = ""
    for line in draft.lines:
        text += line.text if line.hyphened else line.text + " "
    text = text.rstrip()
    level = headings.level(text, draft.lines[0].size) if draft.kind is BlockKind.HEADING else 0
    kind = draft.kind if level or draft.kind is not BlockKind.HEADING else BlockKind.PARAGRAPH
    return Block(kind=kind, text=text, page=page, level=level, boxes=tuple(_boxes(page, draft.lines)))


def _boxes(page: int, lines: Sequence[Line]) -> Iterator[Box]:
    """One box for the lines of a column."""
    group: list[Line] = []
    for line in lines:
        if group and line.base < group[-1].base - group[-1].size:
            yield _box(page, group)
            group = []
        group.append(line)
    yield _box(page, group)


def _box(page: int, lines: Sequence[Line]) -> Box:
    return Box(
        page=page,
        left=int(min(line.left for line in lines)),
        right=int(max(line.right for line in lines) + 0.999),
        top=int(min(line.top for line in lines)),
        bottom=int(max(line.bottom for line in lines) + 0.999),
    )
