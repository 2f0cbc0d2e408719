"""What stands on a slide besides text: tables, charts as tables of their numbers, and diagrams as nested points."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate

from lxml import etree
from msgspec.structs import replace

from rag.parser.blocks import Block, BlockKind, Box, Cell, PlacedLine
from rag.parser.grid import MAX_SPAN, one_line, table_block
from rag.parser.pptx_package import number, q
from rag.parser.pptx_shapes import Place, Slide
from rag.parser.pptx_text import text_of
from rag.parser.prose import pieces
from rag.parser.text import clean

MAX_POINTS = 2_000
MAX_SERIES = 100
_MAX_LEVEL = 9
_ON = ("1", "true", "on")


def read_table(table: etree._Element, slide: Slide, place: Place | None, page: int) -> Block | None:
    """A table with the boxes of its rows; None for one without text."""
    rows, tall = [], []
    for row in table.iterfind(q("a:tr")):
        rows.append([_cell(cell) for cell in row.iterfind(q("a:tc")) if not _is_covered(cell)])
        tall.append(number(row.get("h"), 0, 10**9) or 0)
    properties = table.find(q("a:tblPr"))
    headers = 1 if properties is not None and properties.get("firstRow") in _ON else 0
    block = table_block(rows, headers, page)
    if block is None or block.table is None or place is None:
        return block
    places = tuple(_row_boxes(slide, place, tall, page))
    if len(places) != len(rows):  # some stand outside of the slide
        return block
    starts = accumulate((len(row) + 1 for row in block.text.split("\n")), initial=0)
    lines = tuple(PlacedLine(start, box) for start, box in zip(starts, places, strict=False))
    return replace(block, lines=lines, table=replace(block.table, places=places))


def _cell(cell: etree._Element) -> Cell:
    columns, rows = number(cell.get("gridSpan"), 1, MAX_SPAN), number(cell.get("rowSpan"), 1, MAX_SPAN)
    return Cell(one_line(text_of(cell)), columns or 1, rows or 1)


def _is_covered(cell: etree._Element) -> bool:
    return cell.get("hMerge") in _ON or cell.get("vMerge") in _ON


def _row_boxes(slide: Slide, place: Place, tall: list[int], page: int) -> Iterator[Box]:
    """Rows grow with their text: their heights are shares of the frame's."""
    scale = place.height / sum(tall) if sum(tall) > 0 else 0.0
    top = place.top
    for height in tall:
        box = slide.box(Place(place.left, top, place.width, height * scale), page)
        if box is not None:
            yield box
        top += height * scale


def read_chart(root: etree._Element, page: int) -> Iterator[Block]:
    """The title, and the numbers: a row for each category, a column for each series."""
    chart = root.find(q("c:chart"))
    if chart is None:
        return
    title = text_of(chart.find(q("c:title")))
    if title:
        yield Block(kind=BlockKind.CAPTION, text=one_line(title), page=page)
    series = list(chart.iter(q("c:ser")))[:MAX_SERIES]
    names = [_first(each.find(q("c:tx"))) for each in series]
    values = [_cached(each, "c:val", "c:yVal") for each in series]
    categories: dict[int, str] = {}
    for each in series:
        categories = categories or _cached(each, "c:cat", "c:xVal")
    indexes = sorted({index for column in (categories, *values) for index in column})[:MAX_POINTS]
    rows = [[Cell(""), *(Cell(name) for name in names)]]
    for index in indexes:
        rows.append([Cell(categories.get(index, "")), *(Cell(column.get(index, "")) for column in values)])
    block = table_block(rows, 1, page)
    if block is not None:
        yield block


def _cached(series: etree._Element, *names: str) -> dict[int, str]:
    """The values that the chart shows, by their position."""
    found: dict[int, str] = {}
    for name in names:
        source = series.find(q(name))
        for point in source.iter(q("c:pt")) if source is not None else ():
            index = number(point.get("idx"), 0, 10**6)
            text = one_line(clean(point.findtext(q("c:v")) or ""))
            if index is not None and len(found) < MAX_POINTS:
                # Of categories in levels the first, which stands nearest to the axis.
                found.setdefault(index, text)
    return found


def _first(source: etree._Element | None) -> str:
    return (
        one_line(clean(next((point.text or "" for point in source.iter(q("c:v"))), ""))) if source is not None else ""
    )


def read_diagram(root: etree._Element, page: int) -> Iterator[Block]:
    """The points of a diagram (SmartArt) from the top, each followed by those below it."""
    texts = {
        point.get("modelId", ""): text_of(point.find(q("dgm:t")))
        for point in root.iterfind(f"{q('dgm:ptLst')}/{q('dgm:pt')}")
        if point.get("type", "node") in ("node", "asst", "doc")
    }
    below: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for link in root.iterfind(f"{q('dgm:cxnLst')}/{q('dgm:cxn')}"):
        child = link.get("destId", "")
        if link.get("type", "parOf") == "parOf" and child in texts:
            below[link.get("srcId", "")].append((number(link.get("srcOrd"), 0, 10**6) or 0, child))
    children = {child for links in below.values() for _, child in links}
    waiting = [(identifier, 0) for identifier in reversed(texts) if identifier not in children]
    seen: set[str] = set()
    while waiting:
        identifier, depth = waiting.pop()
        if identifier in seen:
            continue
        seen.add(identifier)
        if texts[identifier]:
            for part in pieces(texts[identifier]):
                yield Block(kind=BlockKind.LIST_ITEM, text=part, page=page, level=min(max(1, depth), _MAX_LEVEL))
        waiting += [(child, depth + 1) for _, child in sorted(below[identifier], reverse=True)]
