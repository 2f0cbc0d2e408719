"""The shapes of a slide: where each stands, in which order they are read, and which placeholder each fills."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lxml import etree

from common.errors import UnreadableFile
from rag.parser.blocks import Box
from rag.parser.pptx_models import TITLES, Models, placeholder
from rag.parser.pptx_package import Package, number, q

MAX_SHAPES = 20_000
MAX_DEPTH = 40

EMU = 12_700
# Shapes whose tops differ by less than this part of the slide's height stand side by side.
_ROW = 0.04
_FAR = 1 << 40
# What stands on every slide alike.
_RUNNING = ("dt", "ftr", "sldNum", "hdr")
_GROUP, _ALTERNATIVE = q("p:grpSp"), q("mc:AlternateContent")
_SHAPES = tuple(q(f"p:{name}") for name in ("sp", "pic", "graphicFrame", "cxnSp"))


class Place(NamedTuple):
    """A rectangle in EMU from the top left of the slide."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True)
class Shape:
    """A shape as it is read. `heirs` are the placeholders that it takes after, nearest first; `style` the master's
    own rules for text of its kind."""

    element: etree._Element
    place: Place | None
    placeholder: str = ""
    heirs: tuple[etree._Element, ...] = ()
    style: etree._Element | None = None

    @property
    def is_title(self) -> bool:
        return self.placeholder in TITLES


@dataclass
class _Item:
    """A shape, or a group of them, that is put in order as one."""

    place: Place | None
    shapes: list[Shape] = field(default_factory=list)


class Slide:
    """One slide of a package: its shapes in reading order, the title first."""

    def __init__(self, package: Package, part: str, root: etree._Element, models: Models) -> None:
        self._root = root
        self._models = models.of(package, part)
        self.width, self.height = package.size()
        self._left = MAX_SHAPES

    def shapes(self) -> list[Shape]:
        tree = self._root.find(f"{q('p:cSld')}/{q('p:spTree')}")
        if tree is None:
            return []
        found = self._in_order(self._items(tree, _Frame(), 0))
        return sorted(found, key=lambda shape: not shape.is_title)

    def box(self, place: Place | None, page: int) -> Box | None:
        """In points within the slide; None for what stands outside of it."""
        if place is None:
            return None
        left, right = max(0.0, place.left), min(float(self.width), place.left + place.width)
        top, bottom = max(0.0, place.top), min(float(self.height), place.top + place.height)
        if left > right or top > bottom:
            return None
        return Box(
            page=page,
            left=int(left / EMU),
            right=int(right / EMU + 0.999),
            top=int(top / EMU),
            bottom=int(bottom / EMU + 0.999),
        )

    def _items(self, parent: etree._Element, frame: _Frame, depth: int) -> Iterator[_Item]:
        if depth > MAX_DEPTH:
            return
        for element in parent:
            if element.tag == _GROUP:
                inner = self._in_order(self._items(element, frame.of_group(element), depth + 1))
                places = [shape.place for shape in inner if shape.place is not None]
                yield _Item(_around(places), inner)
            elif element.tag == _ALTERNATIVE:
                yield from self._items(_chosen(element), frame, depth + 1)
            elif element.tag in _SHAPES:
                self._left -= 1
                if self._left < 0:
                    raise UnreadableFile(f"it has more than {MAX_SHAPES} shapes")
                shape = self._shape(element, frame)
                if shape.placeholder not in _RUNNING:
                    yield _Item(shape.place, [shape])

    def _shape(self, element: etree._Element, frame: _Frame) -> Shape:
        mark = placeholder(element)
        if mark is None:
            return Shape(element, frame.place(element), style=self._models.style(""))
        kind = mark.get("type", "obj")
        heirs = self._models.heirs(mark)
        place = frame.place(element)
        for heir in heirs:
            place = place or _Frame().place(heir)
        return Shape(element, place, kind, heirs, self._models.style(kind))

    def _in_order(self, items: Iterator[_Item]) -> list[Shape]:
        """Top to bottom, and left to right in a row; what has no place comes last."""
        rows: list[list[_Item]] = []
        for item in sorted(items, key=_top):
            if rows and _top(item) - _top(rows[-1][0]) < _ROW * self.height:
                rows[-1].append(item)
            else:
                rows.append([item])
        return [shape for row in rows for item in sorted(row, key=_left) for shape in item.shapes]


def _top(item: _Item) -> float:
    return item.place.top if item.place is not None else _FAR


def _left(item: _Item) -> float:
    return item.place.left if item.place is not None else _FAR


def _around(places: Sequence[Place]) -> Place | None:
    if not places:
        return None
    left, top = min(place.left for place in places), min(place.top for place in places)
    right = max(place.left + place.width for place in places)
    return Place(left, top, right - left, max(place.top + place.height for place in places) - top)


def _chosen(alternative: etree._Element) -> etree._Element:
    """The first choice that has shapes in it, or else what stands in for it."""
    known = {_GROUP, _ALTERNATIVE, *_SHAPES}
    return next((each for each in alternative if any(child.tag in known for child in each)), alternative)


class _Frame:
    """From the coordinates of a group's inside to those of the slide."""

    def __init__(self, scale: tuple[float, float] = (1.0, 1.0), shift: tuple[float, float] = (0.0, 0.0)) -> None:
        self._scale = scale
        self._shift = shift

    def of_group(self, group: etree._Element) -> _Frame:
        transform = group.find(f"{q('p:grpSpPr')}/{q('a:xfrm')}")
        outer, inner = _rectangle(transform, "a:off", "a:ext"), _rectangle(transform, "a:chOff", "a:chExt")
        if outer is None or inner is None:
            return self
        across = outer.width / inner.width if inner.width else 1.0
        down = outer.height / inner.height if inner.height else 1.0
        return _Frame(
            (self._scale[0] * across, self._scale[1] * down),
            (
                self._shift[0] + self._scale[0] * (outer.left - inner.left * across),
                self._shift[1] + self._scale[1] * (outer.top - inner.top * down),
            ),
        )

    def place(self, element: etree._Element) -> Place | None:
        transform = element.find(q("p:xfrm"))
        if transform is None:
            transform = element.find(f"{q('p:spPr')}/{q('a:xfrm')}")
        found = _rectangle(transform, "a:off", "a:ext")
        if found is None or transform is None:
            return None
        left, top, width, height = found
        turned = (number(transform.get("rot"), -(10**9), 10**9) or 0) / 60_000 % 180
        if 45 <= turned < 135:  # a shape is turned around its middle
            left, top, width, height = left + (width - height) / 2, top + (height - width) / 2, height, width
        across, down = self._scale
        return Place(self._shift[0] + across * left, self._shift[1] + down * top, across * width, down * height)


def _rectangle(transform: etree._Element | None, corner: str, size: str) -> Place | None:
    if transform is None:
        return None
    offset, extent = transform.find(q(corner)), transform.find(q(size))
    if offset is None or extent is None:
        return None
    values = [number(each, -_FAR, _FAR) for each in (offset.get("x"), offset.get("y"))]
    values += [number(each, 0, _FAR) for each in (extent.get("cx"), extent.get("cy"))]
    left, top, width, height = values
    if left is None or top is None or width is None or height is None:
        return None
    return Place(left, top, width, height)
