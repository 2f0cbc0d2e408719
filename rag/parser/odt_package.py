"""An OpenDocument text as a package: its names of elements, its properties and its paragraph styles."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from lxml import etree

from common.errors import EncryptedFile, WrongKind
from rag.parser.blocks import BlockKind
from rag.parser.text import clean
from rag.parser.zip_parts import ZipParts

_OASIS = "urn:oasis:names:tc:opendocument:xmlns:"
_NAMESPACES = {
    **{name: f"{_OASIS}{name}:1.0" for name in ("office", "text", "table", "style", "meta", "manifest")},
    "draw": _OASIS + "drawing:1.0",
    "svg": _OASIS + "svg-compatible:1.0",
    "xlink": "http://www.w3.org/1999/xlink",
    "dc": "http://purl.org/dc/elements/1.1/",
}
_MAX_PROPERTY = 200
_MAX_BASES = 20
_HEADING = re.compile(r"heading (\d{1,2})$")
_CODE = re.compile(r"(?:^|\b)(?:source ?code|code(?:[ _-]?block)?|preformatted(?: text)?|verbatim)\b")
_CONTENT = "content.xml"


@cache
def q(name: str) -> str:
    """The full name of an element or attribute that is written with a prefix, as in `text:p`."""
    prefix, _, local = name.partition(":")
    return f"{{{_NAMESPACES[prefix]}}}{local}"


def count(element: etree._Element, attribute: str, lowest: int, highest: int, default: int) -> int:
    """A whole number out of an attribute, held within bounds."""
    text = str(element.get(q(attribute), "")).strip()
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        return default
    return max(lowest, min(highest, int(text)))


class OdtPackage:
    """The parts of the document that are read. Raises EncryptedFile and WrongKind."""

    def __init__(self, parts: ZipParts, name: str) -> None:
        self.parts = parts
        if _is_encrypted(parts):
            raise EncryptedFile(f"{name} is encrypted and needs a password")
        if not parts.has(_CONTENT):
            raise WrongKind(f"{name} is not an OpenDocument text")
        self._content = parts.xml(_CONTENT)
        body = self._content.find(f"{q('office:body')}/{q('office:text')}")
        if body is None:
            raise WrongKind(f"{name} is not an OpenDocument text: it may be a sheet or a presentation")
        self.body: etree._Element = body

    def properties(self) -> dict[str, str]:
        """Title, author, and the times of creation and change, as far as the file has them."""
        if not self.parts.has("meta.xml"):
            return {}
        meta = self.parts.xml("meta.xml").find(q("office:meta"))
        if meta is None:
            return {}
        names = {
            "title": ("dc:title",),
            "author": ("meta:initial-creator", "dc:creator"),
            "created": ("meta:creation-date",),
            "modified": ("dc:date",),
        }
        return {key: _property(meta, found) for key, found in names.items()}

    def style_roots(self) -> list[etree._Element]:
        """Where styles are defined, in the order in which a later one wins."""
        return [*([self.parts.xml("styles.xml")] if self.parts.has("styles.xml") else []), self._content]


class _Style(NamedTuple):
    name: str
    parent: str


class OdtStyles:
    """What the styles make of paragraphs, and how lists are numbered."""

    def __init__(self, roots: list[etree._Element]) -> None:
        self._styles: dict[str, _Style] = {}
        self.lists: dict[str, etree._Element] = {}
        for root in roots:
            for style in root.iter(q("style:style")):
                if style.get(q("style:family")) == "paragraph":
                    self._styles[style.get(q("style:name"), "")] = _read_style(style)
            for listing in root.iter(q("text:list-style")):
                self.lists[listing.get(q("style:name"), "")] = listing

    def role(self, identifier: str) -> tuple[BlockKind, int]:
        """The kind, and the level of a heading, that a paragraph of this style has."""
        for _ in range(_MAX_BASES):
            style = self._styles.get(identifier, _Style(_shown(identifier), ""))
            if heading := _HEADING.match(style.name):
                return BlockKind.HEADING, max(1, int(heading[1]))
            if style.name == "title":
                return BlockKind.HEADING, 1
            if style.name == "caption":
                return BlockKind.CAPTION, 0
            if _CODE.search(style.name):
                return BlockKind.CODE, 0
            if not style.parent:
                break
            identifier = style.parent
        return BlockKind.PARAGRAPH, 0


def _read_style(style: etree._Element) -> _Style:
    name = style.get(q("style:display-name")) or _shown(style.get(q("style:name"), ""))
    return _Style(name.lower(), style.get(q("style:parent-style-name"), ""))


def _shown(identifier: str) -> str:
    """`Heading_20_1` as it is shown."""
    return re.sub(r"_([0-9a-f]{2})_", lambda found: chr(int(found[1], 16)), identifier).lower()


def _property(meta: etree._Element, names: tuple[str, ...]) -> str:
    """The first of these elements that has a text."""
    text = next(filter(None, (meta.findtext(q(name)) for name in names)), "")
    return " ".join(clean(text).split())[:_MAX_PROPERTY]


def _is_encrypted(parts: ZipParts) -> bool:
    if not parts.has("META-INF/manifest.xml"):
        return False
    manifest = parts.xml("META-INF/manifest.xml")
    return next(manifest.iter(q("manifest:encryption-data")), None) is not None
