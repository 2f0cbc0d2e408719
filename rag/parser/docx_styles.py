"""What the styles of a Word document make of its paragraphs: headings, lists, captions, code."""

from __future__ import annotations

import re
from typing import NamedTuple

from lxml import etree

from rag.parser.blocks import BlockKind
from rag.parser.docx_package import number, q, value

_MAX_BASES = 20
_BODY_LEVEL = 9
# Built-in styles keep their English names in the file, whatever language the program speaks.
_HEADING = re.compile(r"heading ?([1-9])$")
_LIST = re.compile(r"list (?:bullet|number) ?([2-9])?$")
_CODE = re.compile(r"(?:^|\b)(?:source ?code|code(?:[ _-]?block)?|html preformatted|preformatted(?: text)?|verbatim)\b")


class Listed(NamedTuple):
    """A place in a list: the numbering it uses, and its depth from 0."""

    numbering: str
    depth: int


class Role(NamedTuple):
    """What a paragraph is. `level` counts from 1 for headings and list items."""

    kind: BlockKind = BlockKind.PARAGRAPH
    level: int = 0
    listed: Listed | None = None


class _Style(NamedTuple):
    name: str
    based_on: str
    outline: int | None
    numbering: str | None
    depth: int | None


class Styles:
    """The paragraph styles by identifier."""

    def __init__(self, root: etree._Element | None) -> None:
        self._styles: dict[str, _Style] = {}
        self._default = ""
        self._roles: dict[str, Role] = {}
        for style in root.iter(q("w:style")) if root is not None else ():
            if style.get(q("w:type"), "paragraph") != "paragraph":
                continue
            identifier = style.get(q("w:styleId"), "")
            self._styles[identifier] = _read_style(style)
            if style.get(q("w:default")) in ("1", "true", "on"):
                self._default = identifier

    def role(self, paragraph: etree._Element) -> Role:
        """What this paragraph is, by its own properties first and its style's then."""
        properties = paragraph.find(q("w:pPr"))
        role = self._style_role(value(properties, "w:pStyle") or self._default)
        if properties is None:
            return role
        outline = number(value(properties, "w:outlineLvl"), 0, _BODY_LEVEL)
        if (listing := properties.find(q("w:numPr"))) is None and outline is None:
            return role
        listed = _own_list(listing, role.listed)
        if outline is not None and outline < _BODY_LEVEL:
            return Role(BlockKind.HEADING, outline + 1, listed)
        if outline is not None and role.kind is BlockKind.HEADING:
            role = Role()
        if role.kind not in (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM):
            return role._replace(listed=listed)
        if listed is None:
            return role if role.listed is None else Role()
        return Role(BlockKind.LIST_ITEM, listed.depth + 1, listed)

    def _style_role(self, identifier: str) -> Role:
        if identifier not in self._roles:
            self._roles[identifier] = self._find_role(identifier)
        return self._roles[identifier]

    def _find_role(self, identifier: str) -> Role:
        chain = self._chain(identifier)
        kind, level = _kind(chain, identifier)
        listed = _style_list(chain)
        if listed is not None and kind is BlockKind.LIST_ITEM:
            level = max(level, listed.depth + 1)
        if listed is not None and kind is BlockKind.PARAGRAPH:
            kind, level = BlockKind.LIST_ITEM, listed.depth + 1
        return Role(kind, level, listed)

    def _chain(self, identifier: str) -> list[_Style]:
        """The style and those it is based on, nearest first."""
        chain: list[_Style] = []
        while identifier in self._styles and len(chain) < _MAX_BASES:
            chain.append(self._styles[identifier])
            identifier = chain[-1].based_on
        return chain


def _read_style(style: etree._Element) -> _Style:
    properties = style.find(q("w:pPr"))
    listing = properties.find(q("w:numPr")) if properties is not None else None
    return _Style(
        name=(value(style, "w:name") or "").strip().lower(),
        based_on=value(style, "w:basedOn") or "",
        outline=number(value(properties, "w:outlineLvl"), 0, _BODY_LEVEL),
        numbering=value(listing, "w:numId"),
        depth=number(value(listing, "w:ilvl"), 0, 8),
    )


def _kind(chain: list[_Style], identifier: str) -> tuple[BlockKind, int]:
    """By the nearest style that says something. A style that the file lacks is known by its identifier."""
    for name, outline in [(style.name, style.outline) for style in chain] or [(_spaced(identifier), None)]:
        if outline is not None:
            return (BlockKind.HEADING, outline + 1) if outline < _BODY_LEVEL else (BlockKind.PARAGRAPH, 0)
        if heading := _HEADING.match(name):
            return BlockKind.HEADING, int(heading[1])
        if name == "title":
            return BlockKind.HEADING, 1
        if name == "caption":
            return BlockKind.CAPTION, 0
        if _CODE.search(name):
            return BlockKind.CODE, 0
        if listing := _LIST.match(name):
            return BlockKind.LIST_ITEM, int(listing[1] or 1)
    return BlockKind.PARAGRAPH, 0


def _spaced(identifier: str) -> str:
    """`Heading1` and `ListBullet` as their names are written."""
    return re.sub(r"(?<=[a-z])(?=[A-Z0-9])", " ", identifier).lower()


def _style_list(chain: list[_Style]) -> Listed | None:
    numbering = next((style.numbering for style in chain if style.numbering is not None), None)
    depth = next((style.depth for style in chain if style.depth is not None), 0)
    return None if numbering is None or numbering in ("", "0") else Listed(numbering, depth)


def _own_list(listing: etree._Element | None, inherited: Listed | None) -> Listed | None:
    """The list that the paragraph itself names; numbering 0 takes it out of its style's."""
    if listing is None:
        return inherited
    numbering = value(listing, "w:numId") or (inherited.numbering if inherited else "")
    depth = number(value(listing, "w:ilvl"), 0, 8)
    if numbering in ("", "0"):
        return None
    return Listed(numbering, depth if depth is not None else (inherited.depth if inherited else 0))
