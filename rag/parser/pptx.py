"""Presentations of PowerPoint: titles, text, tables, charts, pictures and notes, slide by slide.

Reads only the slides asked for, hidden ones too. Macros, links and embedded files are never opened."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lxml import etree
from msgspec.structs import replace

from common.errors import EmptyFile, NoPages, UnreadableFile
from rag.parser.blocks import PLAIN, Block, BlockKind, Box, FileKind, Picture, PlacedLine, Profile, ReadOptions, Unit
from rag.parser.pptx_models import Models
from rag.parser.pptx_objects import read_chart, read_diagram, read_table
from rag.parser.pptx_package import Package, q
from rag.parser.pptx_shapes import Shape, Slide
from rag.parser.pptx_text import paragraphs
from rag.parser.prose import pieces
from rag.parser.text import MAX_CHARS, clean
from rag.parser.zip_parts import ZipParts

_FRAME, _PICTURE = q("p:graphicFrame"), q("p:pic")
_DATA = f"{q('a:graphic')}/{q('a:graphicData')}"
# A description that is only the name of a file says nothing.
_FILE_NAME = re.compile(r"\S{1,80}\.(?:png|jpe?g|gif|bmp|tiff?|svg|webp|emf|wmf)", re.IGNORECASE)
_MAX_DESCRIPTION = 4_000


def profile(path: Path, name: str, options: ReadOptions = PLAIN) -> Profile:
    """Raises EmptyFile, EncryptedFile, WrongKind, NoPages, or UnreadableFile for what can't be opened."""
    if path.stat().st_size == 0:
        raise EmptyFile(f"{name} is empty")
    with ZipParts(path, name) as parts:
        package = Package(parts)
        slides = len(package.slides())
        if not slides:
            raise NoPages(f"{name} has no slides")
        known = package.properties()
    return Profile(
        kind=FileKind.PPTX,
        unit=Unit.SLIDE,
        units=slides,
        title=known.get("title", ""),
        author=known.get("author", ""),
        created=known.get("created", ""),
        modified=known.get("modified", ""),
    )


def read(path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
    """The blocks of these slides, first slide 0. Raises UnreadableFile that names a slide that can't be read."""
    with ZipParts(path, path.name) as parts:
        package, models = Package(parts), Models()
        slides = package.slides()
        for number in range(from_unit + 1, min(to_unit, len(slides)) + 1):
            try:
                blocks = list(_SlideReader(package, slides[number - 1], number, models).blocks())
            except UnreadableFile as exc:
                raise UnreadableFile(f"Slide {number} can't be read: {exc.public_message}") from exc
            yield from blocks


class _SlideReader:
    def __init__(self, package: Package, part: str, number: int, models: Models) -> None:
        if not part:
            raise UnreadableFile("its part is missing")
        self._package = package
        self._part = part
        self._number = number
        self._slide = Slide(package, part, package.xml(part), models)

    def blocks(self) -> Iterator[Block]:
        for shape in self._slide.shapes():
            box = self._slide.box(shape.place, self._number)
            for block in self._of_shape(shape, box):
                yield _placed(block, box)
        yield from self._notes()

    def _of_shape(self, shape: Shape, box: Box | None) -> Iterator[Block]:
        if shape.element.tag == _PICTURE:
            yield from self._figure(shape.element, box)
        elif shape.element.tag == _FRAME:
            yield from self._of_frame(shape, box)
        else:
            yield from self._text(shape)

    def _text(self, shape: Shape) -> Iterator[Block]:
        found = list(paragraphs(shape))
        if shape.is_title and found:
            title = " ".join(" ".join(each.text for each in found).split())
            for part in pieces(title):
                yield Block(kind=BlockKind.HEADING, text=part, page=self._number, level=1)
            return
        for each in found:
            kind = BlockKind.LIST_ITEM if each.level else BlockKind.PARAGRAPH
            for part in pieces(each.text):
                yield Block(kind=kind, text=part, page=self._number, level=each.level)

    def _of_frame(self, shape: Shape, box: Box | None) -> Iterator[Block]:
        """A frame holds a table, a chart, a diagram, or the picture of an object of another program."""
        for content in shape.element.iterfind(f"{_DATA}/*"):
            if content.tag == q("a:tbl"):
                table = read_table(content, self._slide, shape.place, self._number)
                if table is not None:
                    yield table
            elif content.tag == q("c:chart"):
                if chart := self._package.related(self._part, content.get(q("r:id"))):
                    yield from read_chart(self._package.xml(chart), self._number)
            elif content.tag == q("dgm:relIds"):
                if diagram := self._package.related(self._part, content.get(q("r:dm"))):
                    yield from read_diagram(self._package.xml(diagram), self._number)
            else:
                picture = next(content.iter(_PICTURE), None)
                if picture is not None:
                    yield from self._figure(picture, box)

    def _figure(self, picture: etree._Element, box: Box | None) -> Iterator[Block]:
        blip = picture.find(f"{q('p:blipFill')}/{q('a:blip')}")
        part = self._package.related(self._part, blip.get(q("r:embed"))) if blip is not None else ""
        text = _description(picture)
        if part or text:
            yield Block(kind=BlockKind.FIGURE, text=text, page=self._number, picture=Picture(part=part, box=box))

    def _notes(self) -> Iterator[Block]:
        """What the speaker notes under the slide, as many paragraphs to a block as it holds."""
        part = self._package.beside(self._part, "notesSlide")
        if not part:
            return
        held: list[str] = []
        for text in self._note_texts(self._package.xml(part)):
            if held and sum(map(len, held)) + len(held) + len(text) > MAX_CHARS:
                yield Block(kind=BlockKind.FOOTNOTE, text="\n".join(held), page=self._number)
                held = []
            held.append(text)
        if held:
            yield Block(kind=BlockKind.FOOTNOTE, text="\n".join(held), page=self._number)

    def _note_texts(self, root: etree._Element) -> Iterator[str]:
        for element in root.iterfind(f"{q('p:cSld')}/{q('p:spTree')}/{q('p:sp')}"):
            mark = element.find(f"{q('p:nvSpPr')}/{q('p:nvPr')}/{q('p:ph')}")
            if mark is not None and mark.get("type", "body") == "body":
                for paragraph in paragraphs(Shape(element, None)):
                    yield from pieces(paragraph.text)


def _description(picture: etree._Element) -> str:
    about = picture.find(f"{q('p:nvPicPr')}/{q('p:cNvPr')}")
    if about is None:
        return ""
    text = " ".join(clean(about.get("descr") or about.get("title") or "").split())
    return "" if _FILE_NAME.fullmatch(text) else text[:_MAX_DESCRIPTION]


def _placed(block: Block, box: Box | None) -> Block:
    """With the place of its shape, where it has none of its own."""
    if box is None or not block.text or block.lines:
        return block
    table = block.table and replace(block.table, places=(box,) * len(block.table.rows))
    return replace(block, lines=(PlacedLine(0, box),), table=table)
