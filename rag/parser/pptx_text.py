"""The text of a shape, paragraph by paragraph, and whether each is a bullet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lxml import etree

from rag.parser.pptx_package import number, q
from rag.parser.pptx_shapes import Shape
from rag.parser.text import clean

_PARAGRAPH, _TEXT, _BREAK, _MATH = q("a:p"), q("a:t"), q("a:br"), q("m:t")
_FALLBACK = q("mc:Fallback")
_BULLETS = tuple(q(f"a:{name}") for name in ("buChar", "buAutoNum", "buBlip"))
_NO_BULLET = q("a:buNone")
_MAX_LEVEL = 8


class Paragraph(NamedTuple):
    """`level` is 0 for running text, 1 for a bullet, more for one further in."""

    text: str
    level: int


def paragraphs(shape: Shape) -> Iterator[Paragraph]:
    """Those of a shape's text that are not empty."""
    body = shape.element.find(q("p:txBody"))
    if body is None:
        return
    rules = list(_rules(shape, body))
    for paragraph in body.iterfind(_PARAGRAPH):
        text = written(paragraph)
        if text:
            yield Paragraph(text, _level(paragraph, rules))


def text_of(parent: etree._Element | None) -> str:
    """All paragraphs anywhere in an element, on a line each."""
    if parent is None:
        return ""
    return "\n".join(text for paragraph in parent.iter(_PARAGRAPH) if (text := written(paragraph)))


def written(paragraph: etree._Element) -> str:
    """Runs, fields and formulas; a line break within becomes a line end."""
    lines = "".join(_runs(paragraph)).split("\n")
    return "\n".join(kept for line in lines if (kept := " ".join(clean(line).split())))


def _runs(element: etree._Element) -> Iterator[str]:
    for child in element:
        if child.tag in (_TEXT, _MATH):
            yield (child.text or "").replace("\v", "\n")
        elif child.tag == _BREAK:
            yield "\n"
        elif child.tag != _FALLBACK:  # says once more what stands before it
            yield from _runs(child)


def _rules(shape: Shape, body: etree._Element) -> Iterator[etree._Element]:
    """What says how paragraphs look, nearest first."""
    for each in (body, *(heir.find(q("p:txBody")) for heir in shape.heirs)):
        styles = each.find(q("a:lstStyle")) if each is not None else None
        if styles is not None:
            yield styles
    if shape.style is not None:
        yield shape.style


def _level(paragraph: etree._Element, rules: Sequence[etree._Element]) -> int:
    properties = paragraph.find(q("a:pPr"))
    depth = number(properties.get("lvl"), 0, _MAX_LEVEL) or 0 if properties is not None else 0
    for each in (properties, *(rule.find(q(f"a:lvl{depth + 1}pPr")) for rule in rules)):
        if each is None:
            continue
        if each.find(_NO_BULLET) is not None:
            return 0
        if any(each.find(bullet) is not None for bullet in _BULLETS):
            return depth + 1
    return 0
