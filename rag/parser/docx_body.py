"""The body of a Word document as blocks in reading order: paragraphs and tables where they stand, each
followed by its pictures, text boxes and notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lxml import etree

from rag.parser.blocks import Block, BlockKind, Picture
from rag.parser.docx_inline import Drawn, Inline, chosen, read_inline
from rag.parser.docx_numbering import Numbering
from rag.parser.docx_package import Package, q
from rag.parser.docx_styles import Role, Styles
from rag.parser.docx_table import cells_by_row, read_table
from rag.parser.prose import MAX_NOTE, joined_code, pieces
from rag.parser.text import MAX_CHARS, clean

_PARAGRAPH = q("w:p")
_TABLE = q("w:tbl")
_ALTERNATIVES = q("mc:AlternateContent")
_AROUND = tuple(q(f"w:{name}") for name in ("sdt", "sdtContent", "customXml", "ins", "moveTo", "smartTag"))
_NOTE_PARTS = {"footnote": "footnotes", "endnote": "endnotes"}


class Body:
    """Reads a document once, from the top: numbers and notes depend on what came before."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._styles = Styles(package.side("styles"))
        self._numbering = Numbering(package.side("numbering"))
        self._notes: dict[str, dict[str, etree._Element]] = {}
        self._noted: set[tuple[str, str]] = set()

    def blocks(self) -> Iterator[Block]:
        body = self._package.xml(self._package.main).find(q("w:body"))
        if body is not None:
            yield from joined_code(self._read(body))

    def _read(self, container: etree._Element) -> Iterator[Block]:
        for element in elements(container):
            if element.tag == _PARAGRAPH:
                yield from self._paragraph(element)
            else:
                yield from self._table(element)

    def _paragraph(self, element: etree._Element) -> Iterator[Block]:
        inline = read_inline(element)
        yield from self._own_text(inline.text, self._styles.role(element))
        yield from self._attached([inline])

    def _own_text(self, text: str, role: Role) -> Iterator[Block]:
        if not text.strip():
            return
        if role.kind is BlockKind.CODE:
            yield from (Block(kind=role.kind, text=part, page=1) for part in pieces(text))
            return
        text = text.strip()
        if role.listed is not None:
            text = f"{self._numbering.label(role.listed)} {text}".lstrip()
        if role.kind is BlockKind.HEADING:
            text = " ".join(text.split())
        yield from (Block(kind=role.kind, text=part, page=1, level=role.level) for part in pieces(text))

    def _table(self, element: etree._Element) -> Iterator[Block]:
        found = read_table(element, self._written)
        if found.only_cell is not None:
            yield from self._read(found.only_cell)
            return
        if found.block is not None:
            yield found.block
        yield from self._attached(found.inlines)

    def _written(self, container: etree._Element, inlines: list[Inline]) -> str:
        """All text of a cell or note, its nested tables too. What hangs on it is added to `inlines`."""
        parts: list[str] = []
        for element in elements(container):
            if element.tag == _PARAGRAPH:
                inline = read_inline(element)
                listed = self._styles.role(element).listed
                label = self._numbering.label(listed) if listed and inline.text.strip() else ""
                parts.append(f"{label} {inline.text}".strip())
                inlines.append(inline)
            else:
                parts += (self._written(cell, inlines) for row in cells_by_row(element) for cell in row)
        return "\n".join(part for part in parts if part)

    def _attached(self, inlines: Sequence[Inline]) -> Iterator[Block]:
        for inline in inlines:
            yield from (block for drawn in inline.drawn for block in self._figure(drawn))
            yield from (block for relation in inline.diagrams for block in self._diagram(relation))
            for box in inline.boxes:
                yield from self._read(box)
        for inline in inlines:
            for kind, identifier in inline.notes:
                yield from self._note(kind, identifier)

    def _figure(self, drawn: Drawn) -> Iterator[Block]:
        part = self._package.related(drawn.relation) if drawn.relation else ""
        if part or drawn.alt:
            picture = Picture(part=part) if part else None
            yield Block(kind=BlockKind.FIGURE, text=drawn.alt[:MAX_CHARS], page=1, picture=picture)

    def _diagram(self, relation: str) -> Iterator[Block]:
        """The words of a drawn diagram, a line for each of its shapes."""
        part = self._package.related(relation)
        if not part:
            return
        root = self._package.xml(part)
        shapes = ("".join(text.text or "" for text in shape.iter(q("a:t"))) for shape in root.iter(q("dgm:t")))
        if words := clean("\n".join(shape for shape in shapes if shape.strip())):
            yield Block(kind=BlockKind.FIGURE, text=words[:MAX_CHARS], page=1)

    def _note(self, kind: str, identifier: str) -> Iterator[Block]:
        if (kind, identifier) in self._noted:
            return
        self._noted.add((kind, identifier))
        if kind not in self._notes:
            root = self._package.side(_NOTE_PARTS[kind])
            found = root.findall(q(f"w:{kind}")) if root is not None else []
            self._notes[kind] = {note.get(q("w:id"), ""): note for note in found}
        note = self._notes[kind].get(identifier)
        if note is not None and (text := self._written(note, [])[:MAX_NOTE]):
            yield Block(kind=BlockKind.FOOTNOTE, text=text, page=1)


def elements(container: etree._Element) -> Iterator[etree._Element]:
    """The paragraphs and tables right inside, through what may be wrapped around them."""
    for child in container:
        if child.tag in (_PARAGRAPH, _TABLE):
            yield child
        elif child.tag in _AROUND:
            yield from elements(child)
        elif child.tag == _ALTERNATIVES and (choice := chosen(child)) is not None:
            yield from elements(choice)
