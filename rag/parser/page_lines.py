"""The lines of a page with their places, as every reader of pages gives them, whatever library it asks."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import NamedTuple, TypeVar

import msgspec

from rag.parser.blocks import Block

# Points; beyond any page that the format allows.
MAX_PAGE = 20_000.0


def clamp(value: float, most: float) -> float:
    """Within the page: a damaged file has its text anywhere, or at no number at all."""
    return min(max(0.0, value), most)


class Span(NamedTuple):
    """A stretch of a line between two wide gaps, and where in the line's text it starts."""

    left: float
    right: float
    start: int


class Line(msgspec.Struct, frozen=True, gc=False):
    """A line of text. Points from the top left of the page as it is shown; `base` is where its letters stand.

    `spans` is empty for a line without wide gaps. `first` and `count` are its characters in the page's text, if it
    has any there. A `block` stands in the place of a table or a figure, and has no text. `mono` lines are set in type
    whose letters are all as wide."""

    text: str
    left: float
    right: float
    top: float
    bottom: float
    base: float
    size: float
    hyphened: bool = False
    spans: tuple[Span, ...] = ()
    bold: bool = False
    first: int = 0
    count: int = 0
    block: Block | None = None
    mono: bool = False


class Page(msgspec.Struct, frozen=True):
    """The lines of a page in the order of the file, and the tables and figures that stand among them.

    `rules` are its horizontal lines: left, right and how far down. A page is not whole if its picture was to be
    recognised, and was not."""

    number: int
    width: float
    height: float
    lines: tuple[Line, ...]
    items: tuple[Line, ...] = ()
    rules: tuple[tuple[float, float, float], ...] = ()
    is_whole: bool = True


_Answer = TypeVar("_Answer")


def remembered(find: Callable[[tuple[Line, ...]], _Answer]) -> Callable[[tuple[Line, ...]], _Answer]:
    """Keeps the answer for the last page: its tables and its order are told from the same lines. No more than that,
    since new lines are made faster where old ones have just been."""
    known: list[tuple[tuple[Line, ...], _Answer]] = []

    @wraps(find)
    def find_once(lines: tuple[Line, ...]) -> _Answer:
        if known and known[0][0] is lines:
            return known[0][1]
        answer = find(lines)
        known[:] = [(lines, answer)]
        return answer

    return find_once
