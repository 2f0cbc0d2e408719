"""A presentation as a package: its slides in order, what their references mean, and the names of elements.

What the slides say is left to the other pptx modules."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from lxml import etree

from common.errors import UnreadableFile, WrongKind
from rag.parser.text import clean
from rag.parser.zip_parts import MAX_XML_BYTES, ZipParts, parse_xml, resolve

MAX_SLIDES = 10_000

_SCHEMAS = "http://schemas.openxmlformats.org/"
_NAMESPACES = {
    "p": _SCHEMAS + "presentationml/2006/main",
    "a": _SCHEMAS + "drawingml/2006/main",
    "r": _SCHEMAS + "officeDocument/2006/relationships",
    "c": _SCHEMAS + "drawingml/2006/chart",
    "dgm": _SCHEMAS + "drawingml/2006/diagram",
    "m": _SCHEMAS + "officeDocument/2006/math",
    "mc": _SCHEMAS + "markup-compatibility/2006",
    "rel": _SCHEMAS + "package/2006/relationships",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
}
# The "strict" variant of the format says the same in other namespaces.
_STRICT = b"http://purl.oclc.org/ooxml/"
_STRICT_NAMES = (
    *(b"presentationml/main", b"drawingml/main", b"drawingml/chart", b"drawingml/diagram"),
    *(b"officeDocument/relationships", b"officeDocument/math"),
)
_MAX_PROPERTY = 200
# What programs write where nobody gave a title.
_NO_TITLES = ("powerpoint presentation", "powerpoint-pr\u00e4sentation", "pr\u00e9sentation powerpoint")
_DEFAULT_SIZE = (9_144_000, 6_858_000)
# EMU; the format allows no larger slide.
_SIDES = (914_400, 51_206_400)


@lru_cache(maxsize=256)
def q(name: str) -> str:
    """The full name of an element or attribute that is written with a prefix, as in `a:p`."""
    prefix, _, local = name.partition(":")
    return f"{{{_NAMESPACES[prefix]}}}{local}"


def number(text: str | None, lowest: int, highest: int) -> int | None:
    """A whole number out of an attribute, held within bounds; None if it is no number."""
    digits = (text or "").strip()
    if not digits.isascii() or not digits.removeprefix("-").isdigit() or len(digits) > 12:
        return None
    return max(lowest, min(highest, int(digits)))


class Relation(NamedTuple):
    """`part` is "" where it leads out of the file, or to nothing."""

    kind: str
    part: str


class Package:
    """The parts of a presentation, found by their relations."""

    def __init__(self, parts: ZipParts) -> None:
        self._parts = parts
        self._relations: dict[str, dict[str, Relation]] = {}
        self._main = self._find_main()
        self._root = self.xml(self._main)
        if self._root.tag != q("p:presentation"):
            raise WrongKind(f"{parts.name} is not a PowerPoint presentation")

    def slides(self) -> list[str]:
        """The parts of the slides in the order they are shown; "" for one that the file lacks."""
        found = [self.related(self._main, each.get(q("r:id"))) for each in self._root.iterfind(_SLIDE_PATH)]
        if len(found) > MAX_SLIDES:
            raise UnreadableFile(f"{self._parts.name} has too many slides: {len(found)}, and {MAX_SLIDES} are allowed")
        return found

    def size(self) -> tuple[int, int]:
        """Width and height of the slides in EMU, of which 12,700 make a point."""
        found = self._root.find(q("p:sldSz"))
        if found is None:
            return _DEFAULT_SIZE
        width, height = number(found.get("cx"), *_SIDES), number(found.get("cy"), *_SIDES)
        return width or _DEFAULT_SIZE[0], height or _DEFAULT_SIZE[1]

    def related(self, part: str, identifier: str | None) -> str:
        """The part that a reference in `part` means; "" if it is none of this file's."""
        return self.relations(part).get(identifier or "", Relation("", "")).part

    def beside(self, part: str, kind: str) -> str:
        """The part that `part` has a relation of this kind to, such as `notesSlide`; "" if there is none."""
        return next((each.part for each in self.relations(part).values() if each.kind == kind and each.part), "")

    def relations(self, part: str) -> dict[str, Relation]:
        """The relations of `part` by identifier."""
        if part not in self._relations:
            self._relations[part] = dict(self._read_relations(part))
        return self._relations[part]

    def xml(self, part: str) -> etree._Element:
        data = self._parts.read(part, MAX_XML_BYTES)
        if _STRICT in data:
            for name in _STRICT_NAMES:
                common = name.replace(b"/", b"/2006/")
                data = data.replace(_STRICT + name, _SCHEMAS.encode() + common)
        return parse_xml(data, f"{self._parts.name} is damaged: its part {part}")

    def properties(self) -> dict[str, str]:
        """Title, author, and the times of creation and change, as far as the file has them."""
        part = self.beside("", "core-properties") or "docProps/core.xml"
        if not self._parts.has(part):
            return {}
        root = self.xml(part)
        names = {"title": "dc:title", "author": "dc:creator", "created": "dcterms:created"}
        names["modified"] = "dcterms:modified"
        texts = {key: root.findtext(q(name)) or "" for key, name in names.items()}
        found = {key: " ".join(clean(text).split())[:_MAX_PROPERTY] for key, text in texts.items()}
        return {key: text for key, text in found.items() if text.casefold() not in _NO_TITLES}

    def _find_main(self) -> str:
        main = self.beside("", "officeDocument") or "ppt/presentation.xml"
        if not self._parts.has(main):
            raise WrongKind(f"{self._parts.name} is not a PowerPoint presentation")
        return main

    def _read_relations(self, part: str) -> Iterator[tuple[str, Relation]]:
        folder, _, last = part.rpartition("/")
        source = f"{folder}/_rels/{last}.rels".lstrip("/")
        if not self._parts.has(source):
            return
        for relation in self.xml(source).iter(q("rel:Relationship")):
            target = resolve(part, relation.get("Target", ""))
            is_inside = relation.get("TargetMode") != "External" and self._parts.has(target)
            kind = relation.get("Type", "").rpartition("/")[2]
            yield relation.get("Id", ""), Relation(kind, target if is_inside else "")


_SLIDE_PATH = f"{q('p:sldIdLst')}/{q('p:sldId')}"
