"""A Word document as a package: which part is which, what its references mean, and its names of elements.

What the parts say is left to the other docx modules."""

from __future__ import annotations

from functools import cache

from lxml import etree

from common.errors import WrongKind
from rag.parser.text import clean
from rag.parser.zip_parts import MAX_XML_BYTES, ZipParts, parse_xml, resolve

_SCHEMAS = "http://schemas.openxmlformats.org/"
_NAMESPACES = {
    "w": _SCHEMAS + "wordprocessingml/2006/main",
    "r": _SCHEMAS + "officeDocument/2006/relationships",
    "a": _SCHEMAS + "drawingml/2006/main",
    "wp": _SCHEMAS + "drawingml/2006/wordprocessingDrawing",
    "m": _SCHEMAS + "officeDocument/2006/math",
    "mc": _SCHEMAS + "markup-compatibility/2006",
    "rel": _SCHEMAS + "package/2006/relationships",
    "cp": _SCHEMAS + "package/2006/metadata/core-properties",
    "dgm": _SCHEMAS + "drawingml/2006/diagram",
    "v": "urn:schemas-microsoft-com:vml",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
}
# The "strict" variant of the format says the same in other namespaces.
_STRICT = b"http://purl.oclc.org/ooxml/"
_STRICT_NAMES = (
    (b"officeDocument/relationships", b"officeDocument/2006/relationships"),
    (b"officeDocument/math", b"officeDocument/2006/math"),
    (b"wordprocessingml/main", b"wordprocessingml/2006/main"),
    (b"drawingml/main", b"drawingml/2006/main"),
    (b"drawingml/wordprocessingDrawing", b"drawingml/2006/wordprocessingDrawing"),
    (b"drawingml/diagram", b"drawingml/2006/diagram"),
)
_MAX_PROPERTY = 200


@cache
def q(name: str) -> str:
    """The full name of an element or attribute that is written with a prefix, as in `w:p`."""
    prefix, _, local = name.partition(":")
    return f"{{{_NAMESPACES[prefix]}}}{local}"


_VAL = q("w:val")


def value(parent: etree._Element | None, child: str) -> str | None:
    """The value of a property element such as `<w:child w:val="..."/>`; "" for one without a value."""
    found = parent.find(q(child)) if parent is not None else None
    return None if found is None else str(found.get(_VAL, ""))


def is_on(parent: etree._Element | None, child: str) -> bool:
    """Whether an on/off property is there and not switched off."""
    return value(parent, child) not in (None, "0", "false", "off")


def number(text: str | None, lowest: int, highest: int) -> int | None:
    """A whole number out of an attribute, held within bounds; None if it is no number."""
    digits = (text or "").strip()
    if not digits.isascii() or not digits.removeprefix("-").isdigit() or len(digits) > 12:
        return None
    return max(lowest, min(highest, int(digits)))


class Package:
    """The parts of a Word document, found by their relations."""

    def __init__(self, parts: ZipParts, name: str) -> None:
        self.parts = parts
        self.main = self._find_main(name)
        self._relations = self._read_relations(self.main)

    def related(self, identifier: str | None) -> str:
        """The part that a reference in the main part means; "" if it is none of this file's."""
        _, part = self._relations.get(identifier or "", ("", ""))
        return part

    def xml(self, part: str) -> etree._Element:
        data = self.parts.read(part, MAX_XML_BYTES)
        if _STRICT in data:
            for strict, common in _STRICT_NAMES:
                data = data.replace(_STRICT + strict, _SCHEMAS.encode() + common)
        return parse_xml(data, f"{self.parts.name} is damaged: its part {part}")

    def side(self, kind: str) -> etree._Element | None:
        """A part beside the main one (`styles`, `numbering`, `footnotes`, `endnotes`); None if there is none."""
        part = next((part for each, part in self._relations.values() if each == kind and part), "")
        return self.xml(part) if part else None

    def properties(self) -> dict[str, str]:
        """Title, author, and the times of creation and change, as far as the file has them."""
        found = self._read_relations("")
        part = next((part for kind, part in found.values() if kind == "core-properties"), "docProps/core.xml")
        if not self.parts.has(part):
            return {}
        root = self.xml(part)
        names = {"title": "dc:title", "author": "dc:creator", "created": "dcterms:created"}
        names["modified"] = "dcterms:modified"
        texts = {key: root.findtext(q(name)) or "" for key, name in names.items()}
        return {key: " ".join(clean(text).split())[:_MAX_PROPERTY] for key, text in texts.items()}

    def _find_main(self, name: str) -> str:
        for kind, part in self._read_relations("").values():
            if kind == "officeDocument" and part:
                return part
        if self.parts.has("word/document.xml"):
            return "word/document.xml"
        raise WrongKind(f"{name} is not a Word document")

    def _read_relations(self, part: str) -> dict[str, tuple[str, str]]:
        """By identifier: the kind of each relation of `part`, and the part it leads to, "" for outside ones."""
        folder, _, last = part.rpartition("/")
        source = f"{folder}/_rels/{last}.rels".lstrip("/")
        if not self.parts.has(source):
            return {}
        found: dict[str, tuple[str, str]] = {}
        for relation in self.xml(source).iter(q("rel:Relationship")):
            target = resolve(part, relation.get("Target", ""))
            is_inside = relation.get("TargetMode") != "External" and self.parts.has(target)
            kind = relation.get("Type", "").rpartition("/")[2]
            found[relation.get("Id", "")] = (kind, target if is_inside else "")
        return found
