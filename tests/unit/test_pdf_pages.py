"""What a PDF page may hold besides plain prose: columns, other scripts, notes, captions, figures and scans."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from fpdf import FPDF
from PIL import Image

from rag.parser import ocr, registry
from rag.parser.blocks import Block, BlockKind, Box, ReadOptions
from rag.parser.layout import Line
from tests import pdfs
from tests.conftest import missing

_FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
_needs_font = pytest.mark.usefixtures("dejavu")


@pytest.fixture
def dejavu() -> None:
    if not Path(_FONT).exists():
        missing("DejaVu (fonts-dejavu-core)")


def _read(path: Path, options: ReadOptions = ReadOptions()) -> list[Block]:  # noqa: B008
    profile = registry.profile(path, path.name, options)
    return list(registry.read(path, profile, 0, profile.units, options))


def _prose(page: int, count: int) -> str:
    return " ".join(pdfs.sentence(page, number) for number in range(1, count + 1))


def _paragraph(pdf: FPDF, text: str, size: float = 11) -> None:
    pdf.set_font_size(size)
    pdf.multi_cell(0, size / 2, text, new_x="LMARGIN", new_y="NEXT")
    pdf.set_font_size(11)


def _new() -> FPDF:
    pdf = FPDF()
    pdf.set_auto_page_break(auto=False)
    pdf.set_font("Helvetica", size=11)
    pdf.add_page()
    return pdf


def test_three_columns_with_a_line_across(tmp_path: Path) -> None:
    pdf = _new()
    pdf.cell(0, 8, "A headline that goes across all three of the columns of this page, from edge to edge", align="C")
    texts = [_prose(number, 8) for number in (1, 2, 3)]
    for number, text in enumerate(texts):
        pdf.set_xy(10 + 64 * number, 30)
        pdf.multi_cell(58, 5, text)
    pdf.output(str(tmp_path / "a.pdf"))
    blocks = _read(tmp_path / "a.pdf")
    assert [block.text for block in blocks[1:]] == texts


def test_a_turned_page_is_read_as_it_is_shown(tmp_path: Path) -> None:
    content = b"BT /F1 12 Tf 0 1 -1 0 100 100 Tm (First line of it) Tj 0 -20 Td (second line.) Tj ET"
    (block,) = _read(pdfs.write_raw(tmp_path / "a.pdf", [content], page=b"/Rotate 90"))
    assert block.text == "First line of it second line."
    assert block.boxes[0].top < 120 and block.boxes[0].right - block.boxes[0].left > 50


@_needs_font
def test_hebrew_and_arabic_come_in_the_order_of_reading(tmp_path: Path) -> None:
    pdf = _new()
    pdf.add_font("deja", fname=_FONT)
    pdf.set_font("deja", size=12)
    hebrew, arabic = (
        "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd",
        "\u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645",
    )
    for text in (hebrew, arabic):  # as a page shows them: the first letter is the rightmost
        pdf.cell(0, 20, text[::-1], new_x="LMARGIN", new_y="NEXT", align="R")
    pdf.output(str(tmp_path / "a.pdf"))
    assert [block.text for block in _read(tmp_path / "a.pdf")] == [hebrew, arabic]


@_needs_font
def test_letters_drawn_one_by_one_from_right_to_left(tmp_path: Path) -> None:
    pdf = _new()
    pdf.add_font("deja", fname=_FONT)
    pdf.set_font("deja", size=12)
    x = 150.0
    for letter in "\u05e9\u05dc\u05d5\u05dd":
        x -= pdf.get_string_width(letter)
        pdf.text(x, 40, letter)
    pdf.output(str(tmp_path / "a.pdf"))
    assert [block.text for block in _read(tmp_path / "a.pdf")] == ["\u05e9\u05dc\u05d5\u05dd"]


@_needs_font
def test_ligatures_are_letters(tmp_path: Path) -> None:
    pdf = _new()
    pdf.add_font("deja", fname=_FONT)
    pdf.set_font("deja", size=12)
    pdf.cell(0, 8, "The o\ufb03ce of the \ufb01rst \ufb02oor")
    pdf.output(str(tmp_path / "a.pdf"))
    assert [block.text for block in _read(tmp_path / "a.pdf")] == ["The office of the first floor"]


def test_chinese_lines_are_joined_without_spaces(tmp_path: Path) -> None:
    font = (
        b"4 0 obj\n<< /Type /Font /Subtype /Type0 /BaseFont /STSong-Light /Encoding /UniGB-UCS2-H"
        b" /DescendantFonts [5 0 R] >>\nendobj\n"
        b"5 0 obj\n<< /Type /Font /Subtype /CIDFontType0 /BaseFont /STSong-Light"
        b" /CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 2 >> /DW 1000"
        b" /FontDescriptor 6 0 R >>\nendobj\n"
        b"6 0 obj\n<< /Type /FontDescriptor /FontName /STSong-Light /Flags 6 /FontBBox [-25 -254 1000 880]"
        b" /ItalicAngle 0 /Ascent 880 /Descent -120 /CapHeight 880 /StemV 93 >>\nendobj\n"
    )
    lines = (
        "\u8fd9\u4e2a\u5de5\u5382\u751f\u4ea7\u5f88\u591a\u7eb8\u5f20",
        "\u6bcf\u5929\u90fd\u5728\u6cb3\u8fb9\u5de5\u4f5c\u3002",
    )
    content = b"BT /F2 12 Tf 72 700 Td <%s> Tj 0 -16 Td <%s> Tj ET" % tuple(
        line.encode("utf-16-be").hex().encode() for line in lines
    )
    path = pdfs.write_raw(tmp_path / "a.pdf", [content], resources=b"/Font << /F1 3 0 R /F2 4 0 R >>", more=font)
    assert [block.text for block in _read(path)] == ["".join(lines)]


def test_bold_lines_are_headings(tmp_path: Path) -> None:
    pdf = _new()
    for number, title in enumerate(("The river", "The wheel"), start=1):
        pdf.set_font("Helvetica", "B", 11)
        pdf.cell(0, 6, title, new_x="LMARGIN", new_y="NEXT")
        pdf.set_font("Helvetica", size=11)
        _paragraph(pdf, _prose(number, 4))
        pdf.ln(3)
    pdf.output(str(tmp_path / "a.pdf"))
    found = [(block.kind, block.text) for block in _read(tmp_path / "a.pdf")]
    assert found == [
        (BlockKind.HEADING, "The river"),
        (BlockKind.PARAGRAPH, _prose(1, 4)),
        (BlockKind.HEADING, "The wheel"),
        (BlockKind.PARAGRAPH, _prose(2, 4)),
    ]


def test_footnotes_come_last(tmp_path: Path) -> None:
    pdf = _new()
    _paragraph(pdf, _prose(1, 8))
    pdf.set_y(255)
    pdf.line(10, 253, 60, 253)
    _paragraph(pdf, "1 See the second volume, which tells of the felts.", 8)
    _paragraph(pdf, "2 The wheel was made\nin 1811 by the brothers.", 8)
    pdf.output(str(tmp_path / "a.pdf"))
    found = [(block.kind, block.text) for block in _read(tmp_path / "a.pdf")]
    assert found == [
        (BlockKind.PARAGRAPH, _prose(1, 8)),
        (BlockKind.FOOTNOTE, "1 See the second volume, which tells of the felts."),
        (BlockKind.FOOTNOTE, "2 The wheel was made in 1811 by the brothers."),
    ]


def test_figures_and_their_captions(tmp_path: Path) -> None:
    pdf = _new()
    _paragraph(pdf, _prose(1, 3))
    pdf.image(Image.new("RGB", (40, 30), "navy"), x=30, y=60, w=80, h=60)
    pdf.set_y(123)
    _paragraph(pdf, "Figure 3: The mill from the river")
    pdf.set_y(140)
    _paragraph(pdf, "Figure 3 shows the mill.")
    pdf.output(str(tmp_path / "a.pdf"))
    blocks = _read(tmp_path / "a.pdf")
    assert [block.kind for block in blocks] == [
        BlockKind.PARAGRAPH,
        BlockKind.FIGURE,
        BlockKind.CAPTION,
        BlockKind.PARAGRAPH,
    ]
    assert blocks[1].picture is not None and blocks[1].text == ""
    assert blocks[1].picture.box == Box(page=1, left=85, right=312, top=170, bottom=341)


def test_tiles_of_a_picture_are_one_figure_and_icons_are_none(tmp_path: Path) -> None:
    pdf = _new()
    _paragraph(pdf, _prose(1, 3))
    for row in range(10):
        pdf.image(Image.new("RGB", (40, 4), (row * 20, 0, 0)), x=30, y=100 + 6 * row, w=80, h=6)
    pdf.image(Image.new("RGB", (8, 8), "red"), x=150, y=250, w=8, h=8)
    pdf.output(str(tmp_path / "a.pdf"))
    figures = [block for block in _read(tmp_path / "a.pdf") if block.kind is BlockKind.FIGURE]
    assert [figure.picture.box for figure in figures if figure.picture] == [Box(1, 85, 312, 283, 454)]


def _scan(path: Path, hidden: bytes = b"") -> Path:
    pixels = zlib.compress(bytes(100 * 130))
    image = (
        b"4 0 obj\n<< /Type /XObject /Subtype /Image /Width 100 /Height 130 /ColorSpace /DeviceGray"
        b" /BitsPerComponent 8 /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream\nendobj\n"
        % (len(pixels), pixels)
    )
    content = b"q 612 0 0 792 0 0 cm /X1 Do Q " + hidden
    return pdfs.write_raw(path, [content], resources=b"/XObject << /X1 4 0 R >>", more=image)


@pytest.fixture
def recogniser(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """In the place of the recogniser: the sizes of the pictures it was given."""
    seen: list[tuple[int, int]] = []

    def read_lines(picture: Image.Image, width: float, height: float) -> list[Line]:
        seen.append(picture.size)
        return [Line("Words of the scan.", 72, 300, 60, 72, 70, 11)]

    monkeypatch.setattr(ocr, "read_lines", read_lines)
    return seen


def test_a_scan_is_recognised_once_and_at_150_dpi(tmp_path: Path, recogniser: list[tuple[int, int]]) -> None:
    (block,) = _read(_scan(tmp_path / "a.pdf"))
    assert (block.kind, block.text) == (BlockKind.PARAGRAPH, "Words of the scan.")
    assert recogniser in ([(1275, 1650)], [(1275, 1651)])


def test_a_scan_is_a_figure_where_it_is_not_to_be_recognised(tmp_path: Path, recogniser: list[tuple[int, int]]) -> None:
    (block,) = _read(_scan(tmp_path / "a.pdf"), ReadOptions(ocr=False))
    assert block.kind is BlockKind.FIGURE and block.picture is not None
    assert block.picture.box == Box(1, 0, 612, 0, 792) and recogniser == []


def test_words_that_a_scanner_has_put_under_its_picture(tmp_path: Path, recogniser: list[tuple[int, int]]) -> None:
    (block,) = _read(_scan(tmp_path / "a.pdf", b"BT 3 Tr /F1 12 Tf 72 700 Td (Hidden words of it.) Tj ET"))
    assert (block.kind, block.text) == (BlockKind.PARAGRAPH, "Hidden words of it.") and recogniser == []
    assert block.boxes[0].left in (72, 73) and 75 < block.boxes[0].top < 95


def test_a_page_200_metres_wide_is_drawn_within_limits(tmp_path: Path, recogniser: list[tuple[int, int]]) -> None:
    path = _scan(tmp_path / "a.pdf")
    data = (
        path.read_bytes()
        .replace(b"/MediaBox [0 0 612 792]", b"/MediaBox [0 0 567000 792]")
        .replace(b"q 612 ", b"q 567000 ")
    )
    path.write_bytes(data)
    _read(path)
    assert all(width * height <= 17_000_000 for width, height in recogniser)


def test_glyphs_that_stand_for_nothing_are_recognised(tmp_path: Path, recogniser: list[tuple[int, int]]) -> None:
    mapping = b"/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <FF> endcodespacerange"
    mapping += b" 1 beginbfrange <20> <7E> <E000> endbfrange endcmap end"
    font = b"4 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 5 0 R >>\nendobj\n"
    font += b"5 0 obj\n<< /Length %d >>\nstream\n%s\nendstream\nendobj\n" % (len(mapping), mapping)
    content = b"BT /F2 12 Tf 72 700 Td (Some words of it) Tj ET"
    path = pdfs.write_raw(tmp_path / "a.pdf", [content], resources=b"/Font << /F1 3 0 R /F2 4 0 R >>", more=font)
    assert [block.text for block in _read(path)] == ["Words of the scan."] and len(recogniser) == 1
