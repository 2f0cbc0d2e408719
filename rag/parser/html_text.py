"""The text of an HTML element while it is open: what it is, how a list counts, and where white space means nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rag.parser.blocks import BlockKind
from rag.parser.html_tags import number

_BLANK_LINE = re.compile(r"\n\s*\n")


class Context(NamedTuple):
    """What the text inside of an open element is."""

    tag: str
    kind: BlockKind
    level: int = 0


class OpenList:
    """An open list, and the number of its next item."""

    def __init__(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.tag = tag
        self._next = number(attributes.get("start", ""), 1)

    def mark(self, attributes: Mapping[str, str]) -> str:
        if self.tag != "ol":
            return ""
        current = number(attributes.get("value", ""), self._next)
        self._next = current + 1
        return f"{current}. "


def texts_of(joined: str, kind: BlockKind) -> Iterator[str]:
    """The texts that are in what was collected of an element: one, or one for each part between blank lines."""
    if kind is BlockKind.CODE:
        code = "\n".join(line.rstrip() for line in joined.replace("\r\n", "\n").split("\n")).strip("\n")
        if code.strip():
            yield code
        return
    if "\n" not in joined:
        if text := " ".join(joined.split()):
            yield text
        return
    for part in _BLANK_LINE.split(joined) if kind in (BlockKind.PARAGRAPH, BlockKind.FOOTNOTE) else (joined,):
        written = (" ".join(line.split()) for line in part.split("\n"))
        text = (" " if kind is BlockKind.HEADING else "\n").join(line for line in written if line)
        if text:
            yield text
