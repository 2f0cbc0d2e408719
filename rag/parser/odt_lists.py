"""Lists of an OpenDocument text: their items with depth and number, which the file only describes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from lxml import etree

from rag.parser.odt_package import count, q
from rag.parser.ordinals import letters, roman

_MAX_NUMBER = 100_000
_LIST = q("text:list")
_ITEM = q("text:list-item")
_HEADER = q("text:list-header")
_Levels = dict[int, etree._Element]
_FORMS: dict[str, Callable[[int], str]] = {
    "1": str,
    "a": lambda number: letters(number).lower(),
    "A": letters,
    "i": lambda number: roman(number).lower(),
    "I": roman,
}


class Item(NamedTuple):
    """A paragraph or table in a list. `level` counts from 1; only the first of an item's paragraphs has a label."""

    element: etree._Element
    level: int
    label: str


class Lists:
    """Counts the items of all lists in the order in which they are asked for."""

    def __init__(self, styles: Mapping[str, etree._Element]) -> None:
        self._styles = styles
        # By style: how far the last list of it came, for the ones that go on from there.
        self._counts: dict[str, dict[int, int]] = {}

    def items(self, listing: etree._Element) -> Iterator[Item]:
        """The content of a list in order, through all its depths."""
        style = listing.get(q("text:style-name"), "")
        is_continued = listing.get(q("text:continue-numbering")) == "true" or listing.get(q("text:continue-list"))
        counts = self._counts.get(style, {}) if is_continued else {}
        self._counts[style] = counts
        yield from self._walk(listing, {}, counts, 1)

    def _walk(self, listing: etree._Element, outer: _Levels, counts: dict[int, int], level: int) -> Iterator[Item]:
        levels = self._levels(listing) or outer
        for item in listing:
            if item.tag not in (_ITEM, _HEADER):
                continue
            label = ""
            if item.tag == _ITEM and any(child.tag != _LIST for child in item):
                _advance(item, levels.get(level), counts, level)
                label = _label(levels, counts, level)
            for child in item:
                if child.tag == _LIST:
                    yield from self._walk(child, levels, counts, level + 1)
                elif isinstance(child.tag, str):
                    yield Item(child, level, label)
                    label = ""

    def _levels(self, listing: etree._Element) -> _Levels:
        style = self._styles.get(listing.get(q("text:style-name"), ""))
        return {count(each, "text:level", 1, 10, 1): each for each in style} if style is not None else {}


def _advance(item: etree._Element, style: etree._Element | None, counts: dict[int, int], level: int) -> None:
    start = count(style, "text:start-value", 0, _MAX_NUMBER, 1) if style is not None else 1
    following = min(counts.get(level, start - 1) + 1, _MAX_NUMBER)
    counts[level] = count(item, "text:start-value", 0, _MAX_NUMBER, following)
    for deeper in [each for each in counts if each > level]:
        del counts[deeper]


def _label(levels: _Levels, counts: dict[int, int], level: int) -> str:
    style = levels.get(level)
    if style is None or style.tag != q("text:list-level-style-number") or not style.get(q("style:num-format")):
        return ""
    shown = count(style, "text:display-levels", 1, level, 1)
    parts: list[str] = []
    for each in range(level - shown + 1, level + 1):
        form = levels[each].get(q("style:num-format"), "1") if each in levels else "1"
        parts.append(_FORMS.get(form, str)(counts.get(each, 1)))
    text = f"{style.get(q('style:num-prefix'), '')}{'.'.join(parts)}{style.get(q('style:num-suffix'), '')}"
    return text[:40].strip()
