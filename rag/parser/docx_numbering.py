"""The numbers before headings and list items of a Word document, which the file only describes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from lxml import etree

from rag.parser.docx_package import is_on, number, q, value
from rag.parser.docx_styles import Listed
from rag.parser.ordinals import letters, roman

_MAX_NUMBER = 100_000
_PLACE = re.compile(r"%([1-9])")


class _Level(NamedTuple):
    format: str
    pattern: str
    start: int
    is_legal: bool


class Numbering:
    """Counts the items of all lists in the order in which they are asked for."""

    def __init__(self, root: etree._Element | None) -> None:
        self._lists: dict[str, dict[int, _Level]] = {}
        self._abstract: dict[str, str] = {}
        self._counts: dict[str, dict[int, int]] = {}
        self._begun: set[str] = set()
        self._starts: dict[str, dict[int, int]] = {}
        if root is not None:
            self._read(root)

    def label(self, listed: Listed) -> str:
        """What stands before the next item of this list, as in "2.1."; "" for bullets. Counts the item."""
        abstract = self._abstract.get(listed.numbering, "")
        levels = self._lists.get(abstract, {})
        level = levels.get(listed.depth)
        if level is None:
            return ""
        counts = self._counts.setdefault(abstract, {})
        self._restart(listed.numbering, counts)
        counts[listed.depth] = min(counts.get(listed.depth, level.start - 1) + 1, _MAX_NUMBER)
        for deeper in [depth for depth in counts if depth > listed.depth]:
            del counts[deeper]
        return "" if level.format in ("bullet", "none") else _label(level, levels, counts)

    def _restart(self, numbering: str, counts: dict[int, int]) -> None:
        """A list that says where it starts does so once, even if it shares its counting with others."""
        if numbering in self._begun:
            return
        self._begun.add(numbering)
        for depth, start in self._starts.get(numbering, {}).items():
            counts[depth] = start - 1

    def _read(self, root: etree._Element) -> None:
        for abstract in root.findall(q("w:abstractNum")):
            identifier = abstract.get(q("w:abstractNumId"), "")
            self._lists[identifier] = {_depth(level): _read_level(level) for level in abstract.findall(q("w:lvl"))}
        for numbering in root.findall(q("w:num")):
            identifier = numbering.get(q("w:numId"), "")
            self._abstract[identifier] = value(numbering, "w:abstractNumId") or ""
            for change in numbering.findall(q("w:lvlOverride")):
                start = number(value(change, "w:startOverride"), 0, _MAX_NUMBER)
                if start is not None:
                    self._starts.setdefault(identifier, {})[_depth(change)] = start


def _depth(level: etree._Element) -> int:
    return number(level.get(q("w:ilvl")), 0, 8) or 0


def _read_level(level: etree._Element) -> _Level:
    start = number(value(level, "w:start"), 0, _MAX_NUMBER)
    return _Level(
        format=value(level, "w:numFmt") or "decimal",
        pattern=(value(level, "w:lvlText") or "")[:40],
        start=1 if start is None else start,
        is_legal=is_on(level, "w:isLgl"),
    )


def _label(level: _Level, levels: dict[int, _Level], counts: dict[int, int]) -> str:
    def written(place: re.Match[str]) -> str:
        depth = int(place[1]) - 1
        other = levels.get(depth)
        if other is None:
            return ""
        form = "decimal" if level.is_legal else other.format
        return _FORMS.get(form, str)(counts.get(depth, other.start))

    return _PLACE.sub(written, level.pattern).strip()


_FORMS: dict[str, Callable[[int], str]] = {
    "lowerLetter": lambda count: letters(count).lower(),
    "upperLetter": letters,
    "lowerRoman": lambda count: roman(count).lower(),
    "upperRoman": roman,
    "decimalZero": "{:02d}".format,
    "bullet": lambda count: "",
    "none": lambda count: "",
}
