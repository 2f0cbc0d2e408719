"""PowerPoint: slides as blocks in reading order with their places, and how bad files end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.presentation import Presentation as Deck
from pptx.slide import Slide
from pptx.util import Pt

from common.errors import EmptyFile, EncryptedFile, NoPages, UnreadableFile, WrongKind
from rag.parser import pptx as parser
from rag.parser import pptx_package, pptx_shapes
from rag.parser.blocks import Block, BlockKind, Box, Cell, FileKind, Picture, PlacedLine, Unit
from tests.zips import parts_of, write_zip

_TITLE_AND_BODY, _TITLE_ONLY, _BLANK = 1, 5, 6
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def _deck(*layouts: int) -> Deck:
    deck = Presentation()
    for layout in layouts:
        deck.slides.add_slide(deck.slide_layouts[layout])
    return deck


def _save(deck: Deck, path: Path) -> Path:
    deck.save(str(path))
    return path


def _read(path: Path, first: int = 0, end: int = 999) -> list[Block]:
    return list(parser.read(path, parser.profile(path, path.name), first, end))


def _blocks(deck: Deck, folder: Path) -> list[Block]:
    return _read(_save(deck, folder / "a.pptx"))


def _shown(blocks: list[Block]) -> list[tuple[str, int, str]]:
    return [(block.kind.value, block.level, block.text) for block in blocks]


def _add_text(slide: Slide, text: str, left: float, top: float) -> None:
    slide.shapes.add_textbox(Pt(left), Pt(top), Pt(200), Pt(40)).text_frame.text = text


def _edit(path: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """The same archive with its parts passed through `change`; None drops a part."""
    changed = {name: change(name, data) for name, data in parts_of(path.read_bytes()).items()}
    return write_zip(path, {name: data for name, data in changed.items() if data is not None})


def test_profile(tmp_path: Path) -> None:
    deck = _deck(_BLANK, _BLANK)
    deck.core_properties.title, deck.core_properties.author = " Harbour  plans", "A. Writer"
    deck.core_properties.created = deck.core_properties.modified = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    profile = parser.profile(_save(deck, tmp_path / "a.pptx"), "a.pptx")
    assert (profile.kind, profile.unit, profile.units) == (FileKind.PPTX, Unit.SLIDE, 2)
    assert (profile.title, profile.author) == ("Harbour plans", "A. Writer")
    assert profile.created == profile.modified == "2024-05-06T07:08:09Z"
    deck = _deck(_BLANK)
    deck.core_properties.title = "PowerPoint Presentation"
    assert parser.profile(_save(deck, tmp_path / "b.pptx"), "b.pptx").title == ""


def test_title_bullets_and_text(tmp_path: Path) -> None:
    deck = _deck(_TITLE_AND_BODY)
    slide = deck.slides[0]
    slide.shapes.title.text = "Quay\vEast"
    frame = slide.placeholders[1].text_frame
    frame.text = "Ships"
    inner = frame.add_paragraph()
    inner.text, inner.level = "Ferries", 1
    frame.add_paragraph().text = " "
    plain = frame.add_paragraph()
    plain.text = "No bullet"
    plain._p.get_or_add_pPr().insert_element_before(plain._p.makeelement(parser.q("a:buNone"), {}))
    _add_text(slide, "A loose\vremark", 50, 450)
    assert _shown(_blocks(deck, tmp_path)) == [
        ("heading", 1, "Quay East"),
        ("list_item", 1, "Ships"),
        ("list_item", 2, "Ferries"),
        ("paragraph", 0, "No bullet"),
        ("paragraph", 0, "A loose\nremark"),
    ]


def test_a_subtitle_has_no_bullet(tmp_path: Path) -> None:
    deck = _deck(0)
    deck.slides[0].shapes.title.text, deck.slides[0].placeholders[1].text = "Title", "By us"
    assert _shown(_blocks(deck, tmp_path)) == [("heading", 1, "Title"), ("paragraph", 0, "By us")]


def test_places_are_points_of_the_slide(tmp_path: Path) -> None:
    deck = _deck(_TITLE_ONLY)
    slide = deck.slides[0]
    slide.shapes.title.text = "From the layout"
    _add_text(slide, "Here", 100, 200)
    _add_text(slide, "Half outside", 600, 300)
    _add_text(slide, "Beyond", 2000, 400)
    title, here, half, beyond = _blocks(deck, tmp_path)
    assert here.lines == (PlacedLine(0, Box(page=1, left=100, right=300, top=200, bottom=240)),)
    assert half.boxes[0].right == 720 and beyond.lines == ()
    assert title.boxes == (Box(page=1, left=36, right=684, top=21, bottom=112),)


def test_reading_order_is_by_place(tmp_path: Path) -> None:
    deck = _deck(_BLANK)
    slide = deck.slides[0]
    for text, left, top in (("d", 10, 300), ("c", 400, 105), ("a", 10, 20), ("b", 10, 100)):
        _add_text(slide, text, left, top)
    assert "".join(block.text for block in _blocks(deck, tmp_path)) == "abcd"


def test_a_group_is_entered_and_kept_together(tmp_path: Path) -> None:
    deck = _deck(_BLANK)
    slide = deck.slides[0]
    group = slide.shapes.add_group_shape()
    for text, top in (("inner 2", 160), ("inner 1", 100)):
        group.shapes.add_textbox(Pt(10), Pt(top), Pt(50), Pt(20)).text_frame.text = text
    group.left, group.top, group.width, group.height = Pt(110), Pt(200), Pt(100), Pt(160)
    _add_text(slide, "beside", 400, 201)
    blocks = _blocks(deck, tmp_path)
    assert [block.text for block in blocks] == ["inner 1", "inner 2", "beside"]
    assert blocks[0].boxes == (Box(page=1, left=110, right=210, top=200, bottom=240),)
    assert blocks[1].boxes == (Box(page=1, left=110, right=210, top=320, bottom=360),)


def test_tables_with_spans(tmp_path: Path) -> None:
    deck = _deck(_BLANK)
    table = deck.slides[0].shapes.add_table(3, 3, Pt(10), Pt(20), Pt(300), Pt(90)).table
    for row in range(3):
        for column in range(3):
            table.cell(row, column).text = f"{row}{column}"
    table.cell(0, 1).text = "wide\tone"
    table.cell(0, 2).text = table.cell(2, 0).text = ""
    table.cell(0, 1).merge(table.cell(0, 2))
    table.cell(1, 0).merge(table.cell(2, 0))
    (block,) = _blocks(deck, tmp_path)
    assert block.kind is BlockKind.TABLE and block.text == "00\twide one\n10\t11\t12\n21\t22"
    assert block.table is not None and block.table.header_rows == 1
    assert block.table.rows == (
        (Cell("00"), Cell("wide one", columns=2)),
        (Cell("10", rows=2), Cell("11"), Cell("12")),
        (Cell("21"), Cell("22")),
    )
    assert [(box.top, box.bottom) for box in block.table.places] == [(20, 50), (50, 80), (80, 110)]
    assert [line.start for line in block.lines] == [0, 12, 21]


def test_notes_follow_their_slide(tmp_path: Path) -> None:
    deck = _deck(_TITLE_ONLY, _TITLE_ONLY)
    for number, slide in enumerate(deck.slides, start=1):
        slide.shapes.title.text = f"Title {number}"
    deck.slides[0].notes_slide.notes_text_frame.text = "Say hello\nand wait"
    assert [(block.kind.value, block.text, block.page) for block in _blocks(deck, tmp_path)] == [
        ("heading", "Title 1", 1),
        ("footnote", "Say hello\nand wait", 1),
        ("heading", "Title 2", 2),
    ]


def test_pictures_are_figures_with_their_description(tmp_path: Path) -> None:
    deck = _deck(_BLANK)
    for shade, top in ((0, 10), (200, 300)):
        data = BytesIO()
        Image.new("L", (20, 10), shade).save(data, "PNG")
        data.seek(0)
        picture = deck.slides[0].shapes.add_picture(data, Pt(30), Pt(top), Pt(200), Pt(100))
        picture._element.nvPicPr.cNvPr.set("descr", "photo 1.png" if top == 10 else "IMG_1.png")
    first, second = _blocks(deck, tmp_path)
    box = Box(page=1, left=30, right=230, top=10, bottom=110)
    assert (first.kind, first.text) == (BlockKind.FIGURE, "photo 1.png")
    assert first.picture == Picture(part="ppt/media/image1.png", box=box)
    assert second.text == "" and second.picture is not None and second.picture.part == "ppt/media/image2.png"


def test_charts_are_tables_of_their_numbers(tmp_path: Path) -> None:
    deck = _deck(_BLANK)
    data = CategoryChartData()
    data.categories = ["North", "South"]
    data.add_series("2023", (1.5, None))
    data.add_series("2024", (3, 4))
    frame = deck.slides[0].shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Pt(1), Pt(2), Pt(99), Pt(88), data)
    frame.chart.has_title = True
    frame.chart.chart_title.text_frame.text = "Ships"
    title, table = _blocks(deck, tmp_path)
    assert (title.kind, title.text) == (BlockKind.CAPTION, "Ships")
    assert table.text == "\t2023\t2024\nNorth\t1.5\t3\nSouth\t\t4"
    assert table.table is not None and table.table.header_rows == 1 and len(table.table.places) == 3


_DIAGRAM = """<dgm:dataModel xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram"
 xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><dgm:ptLst><dgm:pt modelId="0" type="doc"/>
 <dgm:pt modelId="2">{second}</dgm:pt><dgm:pt modelId="1">{first}</dgm:pt><dgm:pt modelId="3">{inner}</dgm:pt>
 <dgm:pt modelId="9" type="pres">{second}</dgm:pt></dgm:ptLst><dgm:cxnLst>
 <dgm:cxn srcId="0" destId="2" srcOrd="1"/><dgm:cxn srcId="0" destId="1" srcOrd="0"/>
 <dgm:cxn srcId="1" destId="3" srcOrd="0"/><dgm:cxn srcId="3" destId="1" srcOrd="0"/>
 <dgm:cxn srcId="1" destId="9" srcOrd="0" type="presOf"/></dgm:cxnLst></dgm:dataModel>"""


def test_diagrams_are_nested_points(tmp_path: Path) -> None:
    texts = {name: f"<dgm:t><a:p><a:r><a:t>{name}</a:t></a:r></a:p></dgm:t>" for name in ("first", "second", "inner")}
    frame = (
        '<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="9" name="d"/><p:cNvGraphicFramePr/><p:nvPr/>'
        '</p:nvGraphicFramePr><p:xfrm><a:off x="127000" y="127000"/><a:ext cx="1270000" cy="1270000"/></p:xfrm>'
        '<a:graphic><a:graphicData uri="d"><dgm:relIds r:dm="rId77" xmlns:r="http://schemas.openxmlformats.org/'
        'officeDocument/2006/relationships" xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram"/>'
        "</a:graphicData></a:graphic></p:graphicFrame></p:spTree>"
    )
    relation = b'<Relationship Id="rId77" Type="x/diagramData" Target="../diagrams/data1.xml"/></Relationships>'

    def change(name: str, data: bytes) -> bytes:
        if name == "ppt/slides/slide1.xml":
            return data.replace(b"</p:spTree>", frame.encode())
        return data.replace(b"</Relationships>", relation) if name.endswith("slide1.xml.rels") else data

    path = _edit(_save(_deck(_BLANK), tmp_path / "a.pptx"), change)
    write_zip(path, {**parts_of(path.read_bytes()), "ppt/diagrams/data1.xml": _DIAGRAM.format(**texts)})
    blocks = _read(path)
    assert _shown(blocks) == [("list_item", 1, "first"), ("list_item", 2, "inner"), ("list_item", 1, "second")]
    assert blocks[0].boxes == (Box(page=1, left=10, right=110, top=10, bottom=110),)


def test_only_the_slides_of_the_range_are_read(tmp_path: Path) -> None:
    deck = _deck(*[_TITLE_ONLY] * 5)
    for number, slide in enumerate(deck.slides, start=1):
        slide.shapes.title.text = f"Slide {number}"
    deck.slides[2]._element.set("show", "0")
    path = _save(deck, tmp_path / "a.pptx")
    _edit(path, lambda name, data: b"<broken" if name == "ppt/slides/slide1.xml" else data)
    assert [(block.page, block.text) for block in _read(path, 1, 4)] == [
        (2, "Slide 2"),
        (3, "Slide 3"),
        (4, "Slide 4"),
    ]
    with pytest.raises(UnreadableFile, match=r"Slide 1 can't be read: a\.pptx .*slide1\.xml is not valid XML"):
        _read(path)


def test_slides_come_in_the_order_they_are_shown(tmp_path: Path) -> None:
    deck = _deck(_TITLE_ONLY, _TITLE_ONLY)
    deck.slides[0].shapes.title.text, deck.slides[1].shapes.title.text = "was first", "was second"
    slides = deck.slides._sldIdLst
    slides.append(slides[0])
    assert [(block.text, block.page) for block in _blocks(deck, tmp_path)] == [("was second", 1), ("was first", 2)]


def test_footers_and_slide_numbers_are_left_out(tmp_path: Path) -> None:
    deck = _deck(_TITLE_AND_BODY)
    slide = deck.slides[0]
    slide.shapes.title.text = "Kept"
    slide.placeholders[1].text_frame.text = "12"
    slide.placeholders[1]._element.nvSpPr.nvPr.ph.set("type", "sldNum")
    assert _shown(_blocks(deck, tmp_path)) == [("heading", 1, "Kept")]


def test_formulas_are_read_once(tmp_path: Path) -> None:
    run = (
        b'<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        b'<mc:Choice Requires="a14"><m:oMath xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math">'
        b"<m:r><m:t>x=1</m:t></m:r></m:oMath></mc:Choice><mc:Fallback><a:r><a:t>[formula]</a:t></a:r></mc:Fallback>"
        b"</mc:AlternateContent></a:p>"
    )
    deck = _deck(_BLANK)
    _add_text(deck.slides[0], "so ", 10, 10)
    path = _save(deck, tmp_path / "a.pptx")
    _edit(path, lambda name, data: data.replace(b"</a:p>", run) if name.endswith("slide1.xml") else data)
    assert [block.text for block in _read(path)] == ["so x=1"]


def test_the_strict_variant(tmp_path: Path) -> None:
    deck = _deck(_TITLE_AND_BODY)
    deck.slides[0].shapes.title.text = "Strict"
    deck.slides[0].placeholders[1].text_frame.text = "Point"
    old = (b"presentationml/2006", b"drawingml/2006", b"officeDocument/2006")

    def change(name: str, data: bytes) -> bytes:
        for each in old:
            strict = b"http://purl.oclc.org/ooxml/" + each.removesuffix(b"/2006")
            data = data.replace(b"http://schemas.openxmlformats.org/" + each, strict)
        return data

    path = _edit(_save(deck, tmp_path / "a.pptx"), change)
    assert _shown(_read(path)) == [("heading", 1, "Strict"), ("list_item", 1, "Point")]


def test_long_texts_come_in_parts(tmp_path: Path) -> None:
    deck = _deck(_BLANK)
    _add_text(deck.slides[0], "word " * 8000, 10, 10)
    deck.slides[0].notes_slide.notes_text_frame.text = "\n".join(["note " * 1000] * 8)
    blocks = _blocks(deck, tmp_path)
    assert all(len(block.text) <= 16_384 for block in blocks) and len(blocks) == 6
    assert "".join(block.text for block in blocks).count("word") == 8000


def test_files_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "a.pptx"
    for data, error in (
        (b"", EmptyFile),
        (b"PK\x03\x04 cut short", UnreadableFile),
        (_OLE + b"\0" * 600 + "EncryptedPackage".encode("utf-16-le") + b"\0" * 600, EncryptedFile),
        (_save(_deck(_BLANK), path).read_bytes()[:9000], UnreadableFile),
    ):
        path.write_bytes(data)
        with pytest.raises(error, match=r"a\.pptx"):
            parser.profile(path, "a.pptx")
    write_zip(path, {"word/document.xml": "<a/>"})
    with pytest.raises(WrongKind, match="not a PowerPoint presentation"):
        parser.profile(path, "a.pptx")
    with pytest.raises(NoPages, match="has no slides"):
        parser.profile(_save(_deck(), path), "a.pptx")


def test_parts_that_are_missing(tmp_path: Path) -> None:
    deck = _deck(_TITLE_ONLY, _TITLE_ONLY)
    for slide in deck.slides:
        slide.shapes.title.text = "Here"
    path = _save(deck, tmp_path / "a.pptx")
    _edit(path, lambda name, data: None if name.endswith("slide2.xml") else data)
    with pytest.raises(UnreadableFile, match="Slide 2 can't be read: its part is missing"):
        _read(path)
    _edit(path, lambda name, data: None if "slideLayout" in name else data)
    assert _shown(_read(path, 0, 1)) == [("heading", 1, "Here")]


def test_hostile_xml_is_refused(tmp_path: Path) -> None:
    entities = b'<!DOCTYPE p:sld [<!ENTITY a "boom"><!ENTITY f SYSTEM "file:///etc/passwd">]><p:sld'

    def change(name: str, data: bytes) -> bytes:
        return data.replace(b"<p:sld", entities, 1) if name == "ppt/slides/slide1.xml" else data

    path = _edit(_save(_deck(_BLANK), tmp_path / "a.pptx"), change)
    with pytest.raises(UnreadableFile, match="Slide 1 can't be read"):
        _read(path)


def test_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _save(_deck(_BLANK), tmp_path / "a.pptx")
    _edit(path, lambda name, data: data + b" " * (20 << 20) if name == "ppt/slides/slide1.xml" else data)
    with pytest.raises(UnreadableFile, match=r"Slide 1 can't be read: a\.pptx is too large once unpacked"):
        _read(path)
    monkeypatch.setattr(pptx_package, "MAX_SLIDES", 2)
    with pytest.raises(UnreadableFile, match="too many slides: 3"):
        parser.profile(_save(_deck(_BLANK, _BLANK, _BLANK), path), "a.pptx")


def test_shapes_are_counted_and_groups_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deck = _deck(_BLANK)
    shapes = deck.slides[0].shapes
    for _ in range(60):
        shapes = shapes.add_group_shape().shapes
    shapes.add_textbox(0, 0, Pt(9), Pt(9)).text_frame.text = "too deep"
    assert _blocks(deck, tmp_path) == []
    monkeypatch.setattr(pptx_shapes, "MAX_SHAPES", 2)
    deck = _deck(_BLANK)
    for top in (0, 100, 200):
        _add_text(deck.slides[0], "x", 0, top)
    with pytest.raises(UnreadableFile, match="Slide 1 can't be read: it has more than 2 shapes"):
        _blocks(deck, tmp_path)
