"""The inside of a paragraph of a Word document: its text as a reader sees it, and what hangs on it (notes,
pictures, text boxes). Tracked changes count as accepted; hidden text and the codes of fields are left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from lxml import etree

from rag.parser.docx_package import is_on, q
from rag.parser.text import clean


class Drawn(NamedTuple):
    """A picture by the identifier of its relation, "" for none, and the words that stand for it."""

    relation: str
    alt: str


@dataclass
class Inline:
    """`notes` are names of elements and identifiers, as in ("footnote", "2"); `boxes` hold paragraphs."""

    text: str = ""
    notes: list[tuple[str, str]] = field(default_factory=list)
    drawn: list[Drawn] = field(default_factory=list)
    boxes: list[etree._Element] = field(default_factory=list)
    diagrams: list[str] = field(default_factory=list)


_WRITTEN = {q("w:tab"): "\t", q("w:ptab"): "\t", q("w:br"): "\n", q("w:cr"): "\n", q("w:noBreakHyphen"): "\u2011"}
_TEXT = q("w:t")
_RUN = q("w:r")
_ALTERNATIVES = q("mc:AlternateContent")
_NOTES = {q("w:footnoteReference"): "footnote", q("w:endnoteReference"): "endnote"}
_GRAPHICS = (q("w:drawing"), q("w:pict"), q("w:object"))
_MATH = (q("m:oMath"), q("m:oMathPara"))
_BOX = q("w:txbxContent")
# Not seen by a reader: removed text, the reading aid over a word, and properties of what is around them.
_SKIPPED = {q(f"w:{name}") for name in ("del", "moveFrom", "rt", "rubyPr", "pPr", "rPr", "sdtPr", "sdtEndPr")} | {
    q(f"w:{name}") for name in ("instrText", "delText", "delInstrText", "fldData", "ffData")
}
_JOINS = {q("m:f"): "/", q("m:sSup"): "^", q("m:sSub"): "_"}


def read_inline(paragraph: etree._Element) -> Inline:
    reader = _Reader()
    reader.walk(paragraph)
    reader.found.text = clean("".join(reader.parts))
    return reader.found


def chosen(element: etree._Element) -> etree._Element | None:
    """The one of several alternatives to read: the first, or else the one for old programs."""
    children = [child for child in element if len(child)]
    return children[0] if children else None


class _Reader:
    def __init__(self) -> None:
        self.found = Inline()
        self.parts: list[str] = []
        # For every field that is open: whether its result has begun.
        self._fields: list[bool] = []

    def walk(self, element: etree._Element) -> None:
        for child in element:
            tag = child.tag
            if tag == _TEXT:
                self._write(child.text or "")
            elif tag in _WRITTEN:
                self._write(_WRITTEN[tag])
            elif tag == _RUN:
                if not is_on(child.find(q("w:rPr")), "w:vanish"):
                    self.walk(child)
            elif tag == q("w:fldChar"):
                self._field(child.get(q("w:fldCharType"), ""))
            elif tag in _NOTES:
                self.found.notes.append((_NOTES[tag], child.get(q("w:id"), "")))
            elif tag == q("w:sym"):
                self._write(_symbol(child.get(q("w:char"), "")))
            elif tag in _MATH:
                self._write(_math(child))
            elif tag in _GRAPHICS:
                self._draw(child)
            elif tag == _ALTERNATIVES:
                if (choice := chosen(child)) is not None:
                    self.walk(choice)
            elif isinstance(tag, str) and tag not in _SKIPPED:
                self.walk(child)

    def _write(self, text: str) -> None:
        if all(self._fields[:-1]):  # else inside the code of a field around this one
            self.parts.append(text)

    def _field(self, mark: str) -> None:
        if mark == "begin":
            self._fields.append(False)
        elif self._fields and mark == "separate":
            self._fields[-1] = True
        elif self._fields and mark == "end":
            self._fields.pop()

    def _draw(self, graphic: etree._Element) -> None:
        alt = ""
        has_picture = has_more = False
        for element in _shown(graphic):
            tag = element.tag
            if tag == q("wp:docPr"):
                alt = element.get("descr") or element.get("title") or alt
            elif tag == q("v:shape"):
                alt = element.get("alt") or alt
            elif tag in (q("a:blip"), q("v:imagedata")):
                relation = element.get(q("r:embed")) or element.get(q("r:id")) or ""
                has_picture = True
                self.found.drawn.append(Drawn(relation, clean(alt).strip()))
            elif tag == _BOX:
                has_more = True
                self.found.boxes.append(element)
            elif tag == q("dgm:relIds"):
                has_more = True
                self.found.diagrams.append(element.get(q("r:dm"), ""))
        if alt.strip() and not has_picture and not has_more:
            self.found.drawn.append(Drawn("", clean(alt).strip()))


def _shown(element: etree._Element) -> Iterator[etree._Element]:
    """The elements inside, with one of each set of alternatives, and text boxes as a whole."""
    for child in element:
        if child.tag == _ALTERNATIVES:
            if (choice := chosen(child)) is not None:
                yield from _shown(choice)
            continue
        yield child
        if child.tag != _BOX:
            yield from _shown(child)


def _symbol(code: str) -> str:
    """A character of a symbol font, where it is one that others know too."""
    try:
        point = int(code, 16)
    except ValueError:
        return ""
    # Symbol fonts are mapped to a private area, where nobody else would know them.
    return chr(point) if 0x20 <= point < 0xD800 else ""


def _math(element: etree._Element) -> str:
    """A formula on one line: `a/b`, `x^2`."""
    if element.tag == q("m:t"):
        return element.text or ""
    parts = [text for child in element if (text := _math(child))]
    return _JOINS.get(element.tag, "").join(parts)
