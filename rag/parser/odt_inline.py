"""The inside of a paragraph of an OpenDocument text: its text as a reader sees it, and what hangs on it (notes,
pictures, text boxes). Removed text is kept elsewhere in the file, so what stands here is what is shown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from lxml import etree

from rag.parser.odt_package import count, q
from rag.parser.text import clean

_MAX_SPACES = 1000
_WHITE = re.compile(r"[ \t\r\n]+")
_SKIPPED = frozenset(
    (
        *(q("office:annotation"), q("text:ruby-text"), q("text:hidden-text"), q("text:tracked-changes")),
        *(q("svg:title"), q("svg:desc"), q("office:event-listeners"), q("text:note-citation")),
    )
)
_FRAMES = (q("draw:frame"), q("draw:custom-shape"), q("draw:rect"), q("draw:ellipse"), q("draw:g"))


class Drawn(NamedTuple):
    """A picture by its part, "" for none, and the words that stand for it."""

    part: str
    alt: str


@dataclass
class Inline:
    """`notes` and `boxes` hold paragraphs of their own."""

    text: str = ""
    notes: list[etree._Element] = field(default_factory=list)
    drawn: list[Drawn] = field(default_factory=list)
    boxes: list[etree._Element] = field(default_factory=list)


def read_inline(paragraph: etree._Element) -> Inline:
    reader = _Reader()
    reader.walk(paragraph)
    reader.found.text = clean("".join(reader.parts))
    return reader.found


def read_frame(frame: etree._Element) -> Inline:
    """What a frame that stands outside of any paragraph holds."""
    reader = _Reader()
    reader.draw(frame)
    return reader.found


class _Reader:
    def __init__(self) -> None:
        self.found = Inline()
        self.parts: list[str] = []
        # White space in the file counts once, and not at the start.
        self._after_space = True

    def walk(self, element: etree._Element) -> None:
        self._write(element.text)
        for child in element:
            self._take(child)
            self._write(child.tail)

    def draw(self, frame: etree._Element) -> None:
        alt = clean(frame.findtext(q("svg:desc")) or frame.findtext(q("svg:title")) or "").strip()
        images = [image for image in frame.findall(q("draw:image")) if image.get(q("xlink:href"))]
        for image in images[:1]:  # the others are the same in other formats
            self.found.drawn.append(Drawn(image.get(q("xlink:href"), ""), alt))
        if frame.find(q("text:p")) is not None or frame.find(q("text:list")) is not None:
            self.found.boxes.append(frame)
        elif alt and not images and frame.find(q("draw:text-box")) is None:
            self.found.drawn.append(Drawn("", alt))
        self.found.boxes += frame.findall(q("draw:text-box"))
        for inner in frame:
            if inner.tag in _FRAMES:
                self.draw(inner)

    def _take(self, child: etree._Element) -> None:
        tag = child.tag
        if tag == q("text:s"):
            self._write_as_is(" " * count(child, "text:c", 1, _MAX_SPACES, 1))
        elif tag == q("text:tab"):
            self._write_as_is("\t")
        elif tag == q("text:line-break"):
            self._write_as_is("\n")
        elif tag == q("text:note"):
            self.found.notes += child.findall(q("text:note-body"))
        elif tag in _FRAMES:
            self.draw(child)
        elif isinstance(tag, str) and tag not in _SKIPPED:
            self.walk(child)

    def _write(self, text: str | None) -> None:
        if not text:
            return
        text = _WHITE.sub(" ", text)
        if self._after_space and text[0] == " ":
            text = text[1:]
        if text:
            self.parts.append(text)
            self._after_space = text[-1] == " "

    def _write_as_is(self, text: str) -> None:
        self.parts.append(text)
        self._after_space = text == "\n"
