"""The body of an OpenDocument text as blocks in reading order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lxml import etree

from rag.parser.blocks import Block, BlockKind, Picture
from rag.parser.odt_inline import Drawn, Inline, read_frame, read_inline
from rag.parser.odt_lists import Item, Lists
from rag.parser.odt_package import OdtPackage, OdtStyles, count, q
from rag.parser.odt_table import read_table
from rag.parser.prose import MAX_NOTE, joined_code, pieces
from rag.parser.text import MAX_CHARS
from rag.parser.zip_parts import resolve

_PARAGRAPH = q("text:p")
_HEADING = q("text:h")
_LIST = q("text:list")
_TABLE = q("table:table")
_FRAMES = (q("draw:frame"), q("draw:custom-shape"), q("draw:rect"), q("draw:g"))
_SECTION = q("text:section")
# What a table of contents or an index shows stands in its body; what it is made from does not count.
_AROUND = (q("text:index-body"), q("text:index-title"), q("text:numbered-paragraph"), q("draw:a"))
_INDEXES = tuple(
    q(f"text:{name}")
    for name in ("table-of-content", "illustration-index", "table-index", "alphabetical-index", "bibliography")
)
_MAX_LEVEL = 10


class OdtBody:
    def __init__(self, package: OdtPackage) -> None:
        self._package = package
        self._styles = OdtStyles(package.style_roots())
        self._lists = Lists(self._styles.lists)

    def blocks(self) -> Iterator[Block]:
        yield from joined_code(self._read(self._package.body))

    def _read(self, container: etree._Element) -> Iterator[Block]:
        for element in container:
            tag = element.tag
            if tag in (_PARAGRAPH, _HEADING):
                yield from self._paragraph(element, None)
            elif tag == _LIST:
                for item in self._lists.items(element):
                    yield from self._item(item)
            elif tag == _TABLE:
                yield from self._table(element)
            elif tag in _FRAMES:
                yield from self._attached([read_frame(element)])
            elif tag in _AROUND or tag in _INDEXES or (tag == _SECTION and _is_shown(element)):
                yield from self._read(element)

    def _item(self, item: Item) -> Iterator[Block]:
        if item.element.tag in (_PARAGRAPH, _HEADING):
            yield from self._paragraph(item.element, item)
        elif item.element.tag == _TABLE:
            yield from self._table(item.element)

    def _paragraph(self, element: etree._Element, item: Item | None) -> Iterator[Block]:
        inline = read_inline(element)
        kind, level = self._role(element)
        if item is not None and kind is BlockKind.PARAGRAPH:
            kind, level = BlockKind.LIST_ITEM, item.level
        text = inline.text if kind is BlockKind.CODE else inline.text.strip()
        if text.strip():
            if item is not None:
                text = f"{item.label} {text}".lstrip()
            if kind is BlockKind.HEADING:
                text = " ".join(text.split())
            yield from (Block(kind=kind, text=part, page=1, level=level) for part in pieces(text))
        yield from self._attached([inline])

    def _role(self, element: etree._Element) -> tuple[BlockKind, int]:
        if element.tag == _HEADING:
            return BlockKind.HEADING, count(element, "text:outline-level", 1, _MAX_LEVEL, 1)
        return self._styles.role(element.get(q("text:style-name"), ""))

    def _table(self, element: etree._Element) -> Iterator[Block]:
        found = read_table(element, self._written)
        if found.only_cell is not None:
            yield from self._read(found.only_cell)
            return
        if found.block is not None:
            yield found.block
        yield from self._attached(found.inlines)

    def _written(self, container: etree._Element, inlines: list[Inline]) -> str:
        """All text of a cell or note, in lines. What hangs on it is added to `inlines`."""
        parts: list[str] = []
        for element in container:
            if element.tag in (_PARAGRAPH, _HEADING):
                inlines.append(read_inline(element))
                parts.append(inlines[-1].text.strip())
            elif element.tag == _LIST:
                for item in self._lists.items(element):
                    if item.element.tag in (_PARAGRAPH, _HEADING):
                        inlines.append(read_inline(item.element))
                        parts.append(f"{item.label} {inlines[-1].text}".strip())
            elif isinstance(element.tag, str):
                parts.append(self._written(element, inlines))
        return "\n".join(part for part in parts if part)

    def _attached(self, inlines: Sequence[Inline]) -> Iterator[Block]:
        for inline in inlines:
            yield from (block for drawn in inline.drawn for block in self._figure(drawn))
            for box in inline.boxes:
                yield from self._read(box)
        for note in (note for inline in inlines for note in inline.notes):
            if text := self._written(note, [])[:MAX_NOTE]:
                yield Block(kind=BlockKind.FOOTNOTE, text=text, page=1)

    def _figure(self, drawn: Drawn) -> Iterator[Block]:
        part = resolve("content.xml", drawn.part) if drawn.part else ""
        picture = Picture(part=part) if part and self._package.parts.has(part) else None
        if picture or drawn.alt:
            yield Block(kind=BlockKind.FIGURE, text=drawn.alt[:MAX_CHARS], page=1, picture=picture)


def _is_shown(section: etree._Element) -> bool:
    return str(section.get(q("text:display"))) != "none"
