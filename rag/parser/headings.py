"""Headings of a page: known by the outline's titles, by the size of their type against the body's, or by standing
alone in bold or with a number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import inf

from rag.parser.layout import Line
from rag.parser.line_joins import is_unspaced

SENTENCE_ENDS = (".", "!", "?", ":", "\u3002", "\uff01", "\uff1f", "\uff1a")
_SECTION = re.compile(r"(?:\d+(?:\.\d+)*|[A-Z](?:\.\d+)*|[IVXL]+)\.?")
_NUMBERED = re.compile(r"(?:\d+(?:\.\d+)*|[A-Z]|[IVXL]+)\.?\s+(?=[^\W\d_])")
# Type this much larger than the body's makes a line a heading; the larger, the higher its level.
_HEADING_RATIOS = ((1.7, 1), (1.35, 2), (1.12, 3))
_TITLE_RATIO = 1.35
_MAX_HEADING_CHARS = 200
# As many letters of a script without spaces are as long.
_MAX_UNSPACED_CHARS = 60
# A line of the body's size that is bold is a heading below those; if it has a number, it may be smaller.
_BOLD_LEVEL = 4
_MIN_BOLD_RATIO = 0.95
_MIN_NUMBERED_RATIO = 0.75
_MAX_BOLD_WORDS = 12
_MIN_CAPITALS = 4
# From the text above to a title in capitals, in sizes of its type.
_MIN_STEP = 1.5
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
        self._title_size = inf

    def level(self, text: str, size: float, *, bold: bool = False) -> int:
        """1 for the highest; 0 for a line that is no heading."""
        if (not bold and size < self._least_size and not self._titles) or _is_too_long(text):
            return 0
        if self._titles and len(text) <= self._longest_title and (level := self._titles.get(normalised(text), 0)):
            return level
        ratio = size / self._body_size if self._body_size else 0.0
        if ratio < _HEADING_RATIOS[-1][0]:
            least = _MIN_NUMBERED_RATIO if bold and _NUMBERED.match(text) else _MIN_BOLD_RATIO
            return self._base_level + _BOLD_LEVEL if bold and ratio > least and _may_be_title(text) else 0
        if not any(letter.isalpha() for letter in text):
            return 0
        if size >= self._title_size:
            return 1
        return next((self._base_level + level for least, level in _HEADING_RATIOS if ratio >= least), 0)

    def find_title(self, lines: Sequence[Line]) -> None:
        """Of the first page: what is larger there than all of the outline's titles names the document, and stands
        above them."""
        if not self._base_level or not self._body_size:
            return
        known = [line.size for line in lines if self._titles.get(normalised(line.text))] if self._titles else []
        largest = max([line.size for line in lines if any(map(str.isalpha, line.text))], default=0.0)
        if largest >= _TITLE_RATIO * self._body_size and largest > 1.05 * max(known, default=0.0):
            self._title_size = 0.98 * largest


def _is_too_long(text: str) -> bool:
    return len(text) > _MAX_UNSPACED_CHARS and (len(text) > _MAX_HEADING_CHARS or is_unspaced(text))


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


def standing_titles(lines: Sequence[Line]) -> frozenset[int]:
    """The ids of the lines that stand by themselves and may be titles: bold ones, not beside other text and above
    text that is not bold, and numbered ones in capitals."""
    count = len([line for line in lines if line.bold])
    # On a page that is bold throughout, this says nothing.
    has_bold = 0 < 2 * count <= len(lines)
    may_be = [
        at
        for at, line in enumerate(lines)
        if (has_bold and line.bold) or (line.text.isupper() and _is_in_capitals(line.text))
    ]
    return frozenset([id(lines[at]) for at in may_be if _stands_alone(lines, at)])


def _is_in_capitals(text: str) -> bool:
    """Whether capitals are a title behind a number with a dot: without, they may be the header of a page."""
    if len(text.split()) > _MAX_BOLD_WORDS:
        return False
    number = _NUMBERED.match(text)
    return number is not None and "." in number[0] and sum(map(str.isupper, text[number.end() :])) >= _MIN_CAPITALS


def _stands_alone(lines: Sequence[Line], at: int) -> bool:
    line = lines[at]
    before, after = (lines[at - 1] if at else None), (lines[at + 1] if at + 1 < len(lines) else None)
    if after is None or (line.spans and not _is_numbered(line)):
        return False
    if any(other is not None and abs(other.base - line.base) < 0.5 * line.size for other in (before, after)):
        return False
    if before is None:
        return True
    step = line.base - before.base
    if not line.bold:
        return not 0 < step < _MIN_STEP * line.size and not after.text.isupper()
    goes_on = not before.bold and not before.text.endswith(SENTENCE_ENDS)
    return not (goes_on and 0 < step < 1.35 * line.size and before.right > line.right)


def _is_numbered(line: Line) -> bool:
    """Whether the gap in a line is the one between the number of a section and its title."""
    return len(line.spans) == 2 and _SECTION.fullmatch(line.text[: line.spans[1].start].strip()) is not None
