"""Lines in reading order become blocks: paragraphs, headings, list items and captions, each with its boxes.

Judges a page by itself and the profile alone, so that the blocks of a page are the same whatever range it is
read in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest
from statistics import median

from rag.parser.blocks import Block, BlockKind, Box, PlacedLine
from rag.parser.layout import Line

_BULLETS = "\u2022\u2023\u25e6\u25aa\u25cf\u25cb\u25a0\u25a1\u2013\u2014\u00b7*-"
_ITEM = re.compile(rf"(?:[{_BULLETS}]|\(?(?:\d{{1,3}}|[a-zA-Z]|[ivx]{{2,4}})[.)])\s+\S")
SENTENCE_ENDS = (".", "!", "?", ":", "\u3002", "\uff01", "\uff1f", "\uff1a")
_SENTENCE_ENDS = frozenset(SENTENCE_ENDS)
_WORD = re.compile(r"\w+(?:-\w+)*")
_LAST_WORD = re.compile(r"[\w-]*\w$")
_FIRST_WORD = re.compile(r"\w[\w-]*")
# Type this much larger than the body's makes a line a heading; the larger, the higher its level.
_HEADING_RATIOS = ((1.7, 1), (1.35, 2), (1.12, 3))
_MAX_HEADING_CHARS = 200
# A line of the body's size that is bold is a heading below those.
_BOLD_LEVEL = 4
_MAX_BOLD_WORDS = 12
# Levels of headings known by their type stand below those of an outline.
_BELOW_OUTLINE = 10
_CAPTION = re.compile(
    r"(?:fig(?:ure|ura|\.)?|table|tab\.|tabelle|tableau|tabla|tabella|abb(?:ildung|\.)|chart|plate|scheme|exhibit"
    r"|\u56fe|\u5716|\u56f3|\u8868)"
    r"\s*(?:\d+(?:[.-]\d+)*|[A-Z]\.?\d*|[IVXL]+)\s*(?P<mark>[.:|\u2013\u2014\uff1a\u3000-]|\s|$)",
    re.IGNORECASE,
)
_CAPTION_STARTS = frozenset("fFtTaAcCpPsSeE\u56fe\u5716\u56f3\u8868")
# In lines of its own type: how far a caption stands from its table or figure.
_CAPTION_REACH = 3.0
# Up to here all scripts have spaces between their words; those that have none are further on.
_LAST_SPACED = "\u0dff"
_UNSPACED = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u0e00-\u0eff\U00020000-\U0003ffff]")


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

    def add(self, line: Line) -> None:
        self.lines.append(line)
        if line.right > self.right:
            self.right = line.right


def to_blocks(page: int, lines: Sequence[Line], headings: HeadingFinder) -> Iterator[Block]:
    """Join lines in reading order into blocks, each with its boxes."""
    items = [line for line in lines if line.block is not None]
    texts = [line for line in lines if line.block is None] if items else lines
    pitch = _usual_pitch(texts)
    words = _words(texts)
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
        is_item = _ITEM.match(line.text) is not None
        if draft is not None:
            if not is_item and _continues(draft, line, level, pitch):
                draft.add(line)
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
        if not line.bold or line.spans:
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


def _usual_pitch(lines: Sequence[Line]) -> float:
    steps = [step for before, after in pairwise(lines) if (step := after.base - before.base) > 1]
    return median(steps) if steps else 0.0


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
    if step > 1.3 * min(pitch, 1.8 * size):
        return False
    if level:
        return True
    if line.left - last.left > 0.8 * size and not (draft.kind is BlockKind.LIST_ITEM and len(draft.lines) == 1):
        return False
    if last.text[-1:] not in _SENTENCE_ENDS:
        return True
    ends_early = last.right < max(line.right, draft.right) - 4 * size
    return not ends_early


def _finished(
    page: int, draft: _Draft, headings: HeadingFinder, words: frozenset[str], items: Sequence[Line] = ()
) -> Block:
    text = ""
    lines: list[PlacedLine] = []
    for line, after in zip_longest(draft.lines, draft.lines[1:]):
        lines.append(PlacedLine(len(text), box_of_line(page, line)))
        text += line.text
        if line.hyphened:
            text += "-" if after is None or _keeps_hyphen(line.text, after.text, words) else ""
        elif after is not None:
            text += " " if line.text[-1:] <= _LAST_SPACED else space_between(line.text, after.text)
    kind, level = draft.kind, 0
    if kind is BlockKind.HEADING:
        first = draft.lines[0]
        level = headings.level(text, first.size, bold=first.bold)
        kind = kind if level else BlockKind.PARAGRAPH
    if kind is not BlockKind.LIST_ITEM and text[:1] in _CAPTION_STARTS and _is_caption(text, draft.lines, items):
        kind, level = BlockKind.CAPTION, 0
    return Block(kind=kind, text=text, page=page, level=level, lines=tuple(lines))


def _is_caption(text: str, lines: Sequence[Line], items: Sequence[Line]) -> bool:
    """Whether it names a figure or table: by a mark after its number, or by standing next to one."""
    label = _CAPTION.match(text)
    if label is None:
        return False
    if label["mark"].strip():
        return True
    first, last = lines[0], lines[-1]
    reach = _CAPTION_REACH * max(first.size, 1.0)
    rest = text[label.end() :].lstrip()
    return not rest[:1].islower() and any(
        first.left < item.right
        and last.right > item.left
        and (abs(first.top - item.bottom) <= reach or abs(item.top - last.bottom) <= reach)
        for item in items
    )


def space_between(before: str, after: str) -> str:
    """What parts the texts of two lines: nothing in scripts that have no spaces."""
    if before[-1:] <= _LAST_SPACED or after[:1] <= _LAST_SPACED:
        return " "
    return "" if _UNSPACED.match(before[-1]) and _UNSPACED.match(after[0]) else " "


def _words(lines: Sequence[Line]) -> frozenset[str]:
    """The words of a page that has hyphens at line ends, in lower case."""
    if not [line for line in lines if line.hyphened]:
        return frozenset()
    return frozenset(_WORD.findall("\n".join([line.text for line in lines]).lower()))


def _keeps_hyphen(before: str, after: str, words: frozenset[str]) -> bool:
    """Whether the hyphen between two lines is the word's own, and not there to break it."""
    head, tail = _LAST_WORD.search(before), _FIRST_WORD.match(after)
    if head is None or tail is None or f"{head[0]}-{tail[0]}".lower() in words:
        return True
    if f"{head[0]}{tail[0]}".lower() in words:
        return False
    starts_anew = tail[0][0].isupper() or not (head[0][-1] + tail[0][0]).isalpha()
    return starts_anew or head[0].isupper() or "-" in head[0]


def box_of_line(page: int, line: Line) -> Box:
    return Box(page, int(line.left), int(line.right + 0.999), int(line.top), int(line.bottom + 0.999))
