"""Lines in reading order become blocks: paragraphs, headings and list items, each with its boxes.

Judges a page by itself and the profile alone, so that the blocks of a page are the same whatever range it is
read in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest
from statistics import median
from typing import NamedTuple

from rag.parser.blocks import Block, BlockKind, Box, PlacedLine
from rag.parser.layout import Line

_BULLETS = "\u2022\u2023\u25e6\u25aa\u25cf\u25cb\u25a0\u25a1\u2013\u2014\u00b7*-"
_ITEM = re.compile(rf"(?:[{_BULLETS}]|\(?(?:\d{{1,3}}|[a-zA-Z]|[ivx]{{2,4}})[.)])\s+\S")
SENTENCE_ENDS = (".", "!", "?", ":", "\u3002", "\uff01", "\uff1f", "\uff1a")
_WORD = re.compile(r"\w+(?:-\w+)*")
_LAST_WORD = re.compile(r"[\w-]*\w$")
_FIRST_WORD = re.compile(r"\w[\w-]*")
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
        ratio = size / self._body_size if self._body_size else 0.0
        if ratio < _HEADING_RATIOS[-1][0] or not any(letter.isalpha() for letter in text):
            return 0
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
    words = _words(lines)
    draft: _Draft | None = None
    for line in lines:
        level = headings.level(line.text, line.size)
        if draft is not None and _continues(draft, line, level, pitch):
            draft.lines.append(line)
            continue
        if draft is not None:
            yield _finished(page, draft, headings, words)
        kind = BlockKind.LIST_ITEM if _ITEM.match(line.text) else BlockKind.PARAGRAPH
        draft = _Draft(BlockKind.HEADING if level else kind, level, [line])
    if draft is not None:
        yield _finished(page, draft, headings, words)


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
    if not last.text.endswith(SENTENCE_ENDS):
        return True
    ends_early = last.right < max(line.right, *(each.right for each in draft.lines)) - 4 * last.size
    return not ends_early


def _finished(page: int, draft: _Draft, headings: HeadingFinder, words: frozenset[str]) -> Block:
    text = ""
    lines: list[PlacedLine] = []
    for line, after in zip_longest(draft.lines, draft.lines[1:]):
        lines.append(PlacedLine(len(text), _box(page, line)))
        text += line.text
        if line.hyphened:
            text += "-" if after is None or _keeps_hyphen(line.text, after.text, words) else ""
        elif after is not None:
            text += " "
    level = headings.level(text, draft.lines[0].size) if draft.kind is BlockKind.HEADING else 0
    kind = draft.kind if level or draft.kind is not BlockKind.HEADING else BlockKind.PARAGRAPH
    return Block(kind=kind, text=text, page=page, level=level, lines=tuple(lines))


def _words(lines: Sequence[Line]) -> frozenset[str]:
    """The words of a page that has hyphens at line ends, in lower case."""
    if not any(line.hyphened for line in lines):
        return frozenset()
    return frozenset(word.lower() for line in lines for word in _WORD.findall(line.text))


def _keeps_hyphen(before: str, after: str, words: frozenset[str]) -> bool:
    """Whether the hyphen between two lines is the word's own, and not there to break it."""
    head, tail = _LAST_WORD.search(before), _FIRST_WORD.match(after)
    if head is None or tail is None or f"{head[0]}-{tail[0]}".lower() in words:
        return True
    if f"{head[0]}{tail[0]}".lower() in words:
        return False
    starts_anew = tail[0][0].isupper() or not (head[0][-1] + tail[0][0]).isalpha()
    return starts_anew or head[0].isupper() or "-" in head[0]


def _box(page: int, line: Line) -> Box:
    return Box(
        page=page,
        left=int(line.left),
        right=int(line.right + 0.999),
        top=int(line.top),
        bottom=int(line.bottom + 0.999),
    )
