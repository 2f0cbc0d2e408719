"""OpenDocument texts: order, headings, lists, tables, notes, pictures, and files that are no texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.errors import EmptyFile, EncryptedFile, UnreadableFile, WrongKind
from rag.parser import odt
from rag.parser.blocks import Block, BlockKind, Cell, FileKind, Picture, Unit
from tests.zips import write_zip

_OASIS = "urn:oasis:names:tc:opendocument:xmlns:"
_SPACES = " ".join(
    [
        *(f'xmlns:{name}="{_OASIS}{name}:1.0"' for name in ("office", "text", "table", "style", "meta", "manifest")),
        f'xmlns:draw="{_OASIS}drawing:1.0" xmlns:svg="{_OASIS}svg-compatible:1.0"',
        'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:dc="http://purl.org/dc/elements/1.1/"',
    ]
)
_HEADING, _PARAGRAPH, _ITEM = BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.LIST_ITEM


def _make(tmp_path: Path, body: str, automatic: str = "", **parts: str) -> Path:
    content = (
        f"<office:document-content {_SPACES}><office:automatic-styles>{automatic}</office:automatic-styles>"
        f"<office:body><office:text>{body}</office:text></office:body></office:document-content>"
    )
    return write_zip(
        tmp_path / "a.odt", {"content.xml": content, **{f"{name}.xml": xml for name, xml in parts.items()}}
    )


def _blocks(path: Path) -> list[Block]:
    return list(odt.read(path, odt.profile(path, path.name), 0, 1))


def _short(path: Path) -> list[tuple[BlockKind, int, str]]:
    return [(block.kind, block.level, block.text) for block in _blocks(path)]


def _p(text: str, style: str = "Standard") -> str:
    return f'<text:p text:style-name="{style}">{text}</text:p>'


def test_headings_paragraphs_and_styles(tmp_path: Path) -> None:
    styles = (
        '<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Title"/>'
        '<style:style style:name="P2" style:family="paragraph" style:parent-style-name="Illustration"/>'
        '<style:style style:name="P3" style:family="paragraph" style:parent-style-name="P3"/>'
    )
    base = (
        f"<office:document-styles {_SPACES}><office:styles>"
        '<style:style style:name="Illustration" style:family="paragraph" style:parent-style-name="Caption"/>'
        '<style:style style:name="Abc" style:display-name="Source Code" style:family="paragraph"/>'
        "</office:styles></office:document-styles>"
    )
    body = (
        "<text:tracked-changes><text:changed-region><text:deletion><text:p>deleted</text:p></text:deletion>"
        "</text:changed-region></text:tracked-changes>"
        + _p("The title", "P1")
        + '<text:h text:outline-level="2">Part\n  two</text:h>'
        + _p("  many \n\t spaces<text:s text:c='3'/>kept<text:tab/>tab<text:line-break/>line <text:span> x</text:span>")
        + _p("Figure 1", "P2")
        + _p("def f():", "Abc")
        + _p("<text:s text:c='4'/>return 1", "Abc")
        + _p("loop", "P3")
        + _p("Chapter", "Heading_20_3")
        + f"<text:section>{_p('in a section')}</text:section>"
        + f'<text:section text:display="none">{_p("hidden")}</text:section>'
        + _p("said<office:annotation><text:p>a comment</text:p></office:annotation>.")
        + _p(" ")
    )
    assert _short(_make(tmp_path, body, styles, styles=base)) == [
        (_HEADING, 1, "The title"),
        (_HEADING, 2, "Part two"),
        (_PARAGRAPH, 0, "many spaces   kept\ttab\nline x"),
        (BlockKind.CAPTION, 0, "Figure 1"),
        (BlockKind.CODE, 0, "def f():\n    return 1"),
        (_PARAGRAPH, 0, "loop"),
        (_HEADING, 3, "Chapter"),
        (_PARAGRAPH, 0, "in a section"),
        (_PARAGRAPH, 0, "said."),
    ]


def test_the_profile(tmp_path: Path) -> None:
    meta = (
        f"<office:document-meta {_SPACES}><office:meta><dc:title>The  report</dc:title><dc:creator>Bob</dc:creator>"
        "<meta:initial-creator>Ada</meta:initial-creator><meta:creation-date>2024-01-02T03:04:05</meta:creation-date>"
        "<dc:date>2024-02-03T04:05:06</dc:date></office:meta></office:document-meta>"
    )
    profile = odt.profile(_make(tmp_path, _p("x"), meta=meta), "a.odt")
    assert (profile.kind, profile.unit, profile.units) == (FileKind.ODT, Unit.WHOLE, 1)
    assert (profile.title, profile.author) == ("The report", "Ada")
    assert (profile.created, profile.modified) == ("2024-01-02T03:04:05", "2024-02-03T04:05:06")
    assert odt.profile(_make(tmp_path, "<text:h>Top</text:h>"), "a.odt").title == "Top"


def test_lists(tmp_path: Path) -> None:
    styles = (
        '<text:list-style style:name="L1">'
        '<text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/>'
        '<text:list-level-style-number text:level="2" text:display-levels="2" style:num-format="a"'
        ' style:num-suffix=")"/>'
        '<text:list-level-style-bullet text:level="3"/></text:list-style>'
    )

    def item(*inside: str) -> str:
        return f"<text:list-item>{''.join(inside)}</text:list-item>"

    body = (
        '<text:list text:style-name="L1">'
        + item(_p("one"), _p("still one"), "<text:list>" + item(_p("sub")) + item(_p("sub")) + "</text:list>")
        + item(_p("two"), "<text:list>" + item("<text:list>" + item(_p("deep")) + "</text:list>") + "</text:list>")
        + '</text:list><text:list text:style-name="L1" text:continue-numbering="true">'
        + item(_p("three"))
        + "</text:list><text:list>"
        + item(_p("plain"))
        + "</text:list>"
    )
    assert _short(_make(tmp_path, body, styles)) == [
        (_ITEM, 1, "1. one"),
        (_ITEM, 1, "still one"),
        (_ITEM, 2, "1.a) sub"),
        (_ITEM, 2, "1.b) sub"),
        (_ITEM, 1, "2. two"),
        (_ITEM, 3, "deep"),
        (_ITEM, 1, "3. three"),
        (_ITEM, 1, "plain"),
    ]


def _cell(text: str, more: str = "") -> str:
    return f"<table:table-cell {more}>{_p(text)}</table:table-cell>"


def test_tables(tmp_path: Path) -> None:
    covered = "<table:covered-table-cell/>"
    inner = f"<table:table><table:table-row>{_cell('x')}{_cell('y')}</table:table-row></table:table>"
    note = '<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body>'
    note += f"{_p('the note')}</text:note-body></text:note>"
    body = (
        "<table:table><table:table-column table:number-columns-repeated='3'/><table:table-header-rows>"
        + "<table:table-row>"
        + _cell("Wide", 'table:number-columns-spanned="2"')
        + covered
        + _cell("C")
        + "</table:table-row></table:table-header-rows><table:table-row>"
        + _cell("tall", 'table:number-rows-spanned="2"')
        + _cell(f"b{note}")
        + f"<table:table-cell>{inner}{_p('z')}</table:table-cell></table:table-row>"
        + f"<table:table-row>{covered}{_cell('d')}{_cell('e')}</table:table-row></table:table>"
        + f"<table:table><table:table-row>{_cell('framed')}</table:table-row></table:table>"
    )
    table, footnote, framed = _blocks(_make(tmp_path, body))
    assert table.kind is BlockKind.TABLE
    assert table.text == "Wide\tC\ntall\tb\tx y z\nd\te"
    assert table.table is not None
    assert table.table.header_rows == 1
    assert table.table.rows == (
        (Cell("Wide", columns=2), Cell("C")),
        (Cell("tall", rows=2), Cell("b"), Cell("x y z")),
        (Cell("d"), Cell("e")),
    )
    assert (footnote.kind, footnote.text) == (BlockKind.FOOTNOTE, "the note")
    assert (framed.kind, framed.text) == (_PARAGRAPH, "framed")


def test_notes_pictures_and_boxes_follow_their_paragraph(tmp_path: Path) -> None:
    note = f'<text:note text:note-class="endnote"><text:note-body>{_p("noted")}</text:note-body></text:note>'
    image = '<draw:image xlink:href="{}"/>'
    body = (
        _p(f"one{note} more")
        + _p(f"<draw:frame>{image.format('Pictures/a.xml')}<svg:desc>A cat</svg:desc></draw:frame>")
        + _p(f"<draw:frame>{image.format('http://127.0.0.1:9/x.png')}</draw:frame>")
        + _p(f"<draw:frame>{image.format('../../etc/passwd')}<svg:title>Out</svg:title></draw:frame>")
        + _p(f"before<draw:frame><draw:text-box>{_p('boxed')}</draw:text-box></draw:frame>")
        + f"<draw:custom-shape>{_p('in a shape')}</draw:custom-shape>"
    )
    blocks = _blocks(_make(tmp_path, body, **{"Pictures/a": "<x/>"}))
    assert [(block.kind, block.text, block.picture) for block in blocks] == [
        (_PARAGRAPH, "one more", None),
        (BlockKind.FOOTNOTE, "noted", None),
        (BlockKind.FIGURE, "A cat", Picture(part="Pictures/a.xml")),
        (BlockKind.FIGURE, "Out", None),
        (_PARAGRAPH, "before", None),
        (_PARAGRAPH, "boxed", None),
        (_PARAGRAPH, "in a shape", None),
    ]


def test_files_that_are_no_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.odt"
    with pytest.raises(EmptyFile, match=r"a\.odt has no text in it"):
        odt.profile(_make(tmp_path, _p(" ")), "a.odt")
    with pytest.raises(WrongKind, match="is not an OpenDocument text"):
        odt.profile(write_zip(path, {"x": "y"}), "a.odt")
    sheet = f"<office:document {_SPACES}><office:body><office:spreadsheet/></office:body></office:document>"
    with pytest.raises(WrongKind, match="sheet or a presentation"):
        odt.profile(write_zip(path, {"content.xml": sheet}), "a.odt")
    entry = "<manifest:file-entry><manifest:encryption-data/></manifest:file-entry>"
    manifest = f"<manifest:manifest {_SPACES}>{entry}</manifest:manifest>"
    with pytest.raises(EncryptedFile, match=r"a\.odt is encrypted"):
        odt.profile(write_zip(path, {"content.xml": "\0\1", "META-INF/manifest.xml": manifest}), "a.odt")
    with pytest.raises(UnreadableFile, match="not valid XML"):
        odt.profile(write_zip(path, {"content.xml": "<a"}), "a.odt")
    path.write_bytes(b"")
    with pytest.raises(UnreadableFile):
        odt.profile(path, "a.odt")


def test_counts_are_bounded(tmp_path: Path) -> None:
    body = (
        _p("a<text:s text:c='999999999'/>b")
        + '<text:h text:outline-level="999999">h</text:h>'
        + "<table:table><table:table-row>"
        + _cell("x", 'table:number-columns-repeated="99999999" table:number-columns-spanned="99999999"')
        + _cell("y", 'table:number-rows-spanned="-4"')
        + "</table:table-row></table:table>"
    )
    paragraph, heading, table = _blocks(_make(tmp_path, body))
    assert len(paragraph.text) == 1002
    assert heading.level == 10
    assert table.table is not None
    assert table.table.rows == ((Cell("x", columns=1000), Cell("y")),)
