"""The text of lines that are read one after the other: spaces and hyphens between them, and no dot leaders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate, zip_longest

from rag.parser.blocks import Box
from rag.parser.hyphens import keeps_hyphen, words_of
from rag.parser.layout import Line

# Up to here all scripts have spaces between their words; those that have none are further on.
_LAST_SPACED = "\u0dff"
_UNSPACED = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u0e00-\u0eff\U00020000-\U0003ffff]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")
# The dots from a title to its page number: more than any sentence ends with.
_MIN_DOTS = 5
_DOT = "[.\u00b7\u2024\u2026\u2027]"
_LEADERS = re.compile(rf"\s?{_DOT}(?:\s{{0,3}}{_DOT}){{{_MIN_DOTS - 1},}}\s?")
# Whether there are any: what starts with a dot is found in a tenth of the time.
_ANY_LEADERS = re.compile(rf"{_DOT}(?:\s{{0,3}}{_DOT}){{{_MIN_DOTS - 1}}}")
_PLAIN_LEADERS = re.compile(rf"\.(?:\s{{0,3}}\.){{{_MIN_DOTS - 1}}}")


def join_lines(lines: Sequence[Line], words: frozenset[str], *, leaders: bool) -> tuple[str, Iterable[int]]:
    """The text of lines, and where in it each of them starts. `words` are those of their page; `leaders`: whether any
    line of it has some."""
    texts = [line.text for line in lines]
    text = " ".join(texts)
    if leaders and has_leaders(text):
        texts = [without_leaders(each) for each in texts]
        text = " ".join(texts)
    if text.isascii() and not [line for line in lines if line.hyphened]:
        return text, accumulate([len(each) + 1 for each in texts], initial=0)
    text, starts = "", []
    for line, own, after in zip_longest(lines, texts, texts[1:]):
        starts.append(len(text))
        text += own
        if line.hyphened:
            text += "-" if after is None or keeps_hyphen(own, after, words) else ""
        elif after is not None:
            text += space_between(own, after)
    return text, starts


def words_around_hyphens(lines: Sequence[Line]) -> frozenset[str]:
    """The words of a page that has hyphens at line ends."""
    if not [line for line in lines if line.hyphened]:
        return frozenset()
    return words_of(line.text for line in lines)


def space_between(before: str, after: str) -> str:
    """What parts the texts of two lines: nothing in scripts that have no spaces."""
    if before[-1:] <= _LAST_SPACED or after[:1] <= _LAST_SPACED:
        return " "
    return "" if _UNSPACED.match(before[-1]) and _UNSPACED.match(after[0]) else " "


def is_unspaced(text: str) -> bool:
    """Whether most of it is in a script that has no spaces."""
    return not text.isascii() and 2 * len(_UNSPACED.findall(text)) > len(text)


def is_right_to_left(text: str) -> bool:
    """Whether more of its letters are read from right to left than not."""
    if text.isascii() or not (found := _RIGHT_TO_LEFT.findall(text)):
        return False
    return 2 * len(found) > len([letter for letter in text if letter.isalpha()])


def has_leaders(text: str) -> bool:
    """Whether dots lead from one part of the line to another."""
    if text.isascii():
        return text.count(".") >= _MIN_DOTS and _PLAIN_LEADERS.search(text) is not None
    return _ANY_LEADERS.search(text) is not None


def without_leaders(text: str) -> str:
    """A line that is nothing but dots stays."""
    if not has_leaders(text):
        return text
    return _LEADERS.sub(" ", text).strip() or text


def box_of_line(page: int, line: Line) -> Box:
    return Box(page, int(line.left), int(line.right + 0.999), int(line.top), int(line.bottom + 0.999))


def boxes_of_lines(page: int, lines: Iterable[Line]) -> list[Box]:
    return [
        Box(page, int(line.left), int(line.right + 0.999), int(line.top), int(line.bottom + 0.999)) for line in lines
    ]
