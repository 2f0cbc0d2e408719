"""Captions: whether a text names a figure or a table."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag.parser.blocks import BlockKind
from rag.parser.layout import Line

_CAPTION = re.compile(
    r"(?:fig(?:ure|ura|\.)?|table|tab\.|tabelle|tableau|tabla|tabella|abb(?:ildung|\.)|chart|plate|scheme|exhibit"
    r"|\u56fe|\u5716|\u56f3|\u8868)"
    r"\s*(?:\d+(?:[.-]\d+)*|[A-Z]\.?\d*|[IVXL]+)\s*(?P<mark>[.:|\u2013\u2014\uff1a\u3000-]|\s|$)",
    re.IGNORECASE,
)
_STARTS = frozenset("fFtTaAcCpPsSeE\u56fe\u5716\u56f3\u8868")
# In lines of its own type: how far a caption stands from its table or figure.
_REACH = 3.0


def is_caption(text: str, lines: Sequence[Line], items: Sequence[Line]) -> bool:
    """Whether it names a figure or table: by a mark after its number, or by standing next to one of `items`."""
    label = _label(text)
    if label is None:
        return False
    if label["mark"].strip():
        return True
    first, last = lines[0], lines[-1]
    reach = _REACH * max(first.size, 1.0)
    rest = text[label.end() :].lstrip()
    return not rest[:1].islower() and any(
        first.left < item.right
        and last.right > item.left
        and (abs(first.top - item.bottom) <= reach or abs(item.top - last.bottom) <= reach)
        for item in items
        if item.block is not None and item.block.kind is not BlockKind.CODE
    )


def names_item(text: str) -> bool:
    """Whether a line starts as a caption does."""
    return _label(text) is not None


def _label(text: str) -> re.Match[str] | None:
    return _CAPTION.match(text) if text[:1] in _STARTS else None
