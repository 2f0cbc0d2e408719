"""What slides are made from: layouts and masters, which give placeholders their place and their bullets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lxml import etree

from rag.parser.pptx_package import Package, q

TITLES = ("title", "ctrTitle")


def placeholder(element: etree._Element) -> etree._Element | None:
    """The mark of a shape that fills a place of its layout; None if it stands by itself."""
    for properties in element:
        found = properties.find(f"{q('p:nvPr')}/{q('p:ph')}")
        if found is not None:
            return found
    return None


class Model:
    """The layout and the master of a slide: their placeholders, and the master's rules for text."""

    def __init__(self, layout: etree._Element | None, master: etree._Element | None) -> None:
        self._layers = [list(_placeholders(root)) for root in (layout, master) if root is not None]
        self._styles = master.find(q("p:txStyles")) if master is not None else None

    def heirs(self, mark: etree._Element) -> tuple[etree._Element, ...]:
        found: list[etree._Element] = []
        kind, index = mark.get("type", "obj"), mark.get("idx", "")
        for layer in self._layers:
            match = _best(layer, kind, index)
            if match is not None:
                kind = match[0].get("type", kind)
                index = ""  # a master is matched by kind alone
                found.append(match[1])
        return tuple(found)

    def style(self, kind: str) -> etree._Element | None:
        if self._styles is None:
            return None
        name = "titleStyle" if kind in TITLES else "bodyStyle" if kind else "otherStyle"
        return self._styles.find(q(f"p:{name}"))


def _placeholders(root: etree._Element) -> Iterator[tuple[etree._Element, etree._Element]]:
    for element in root.iterfind(f"{q('p:cSld')}/{q('p:spTree')}/*"):
        mark = placeholder(element)
        if mark is not None:
            yield mark, element


def _best(
    layer: Sequence[tuple[etree._Element, etree._Element]], kind: str, index: str
) -> tuple[etree._Element, etree._Element] | None:
    if index:
        for each in layer:
            if each[0].get("idx", "") == index:
                return each
    wanted = TITLES if kind in TITLES else (kind,)
    for each in layer:
        if each[0].get("type", "obj") in wanted:
            return each
    if kind in ("obj", "subTitle"):  # their model in the master is the body
        return next((each for each in layer if each[0].get("type") == "body"), None)
    return None


class Models:
    """The layouts of a presentation, each read once."""

    def __init__(self) -> None:
        self._known: dict[str, Model] = {}

    def of(self, package: Package, slide: str) -> Model:
        layout = package.beside(slide, "slideLayout")
        if layout not in self._known:
            master = package.beside(layout, "slideMaster") if layout else ""
            self._known[layout] = Model(
                package.xml(layout) if layout else None, package.xml(master) if master else None
            )
        return self._known[layout]
