"""Word documents: order, headings, lists, tables, notes, pictures, changes, and files that are no documents."""

from __future__ import annotations

import io
from pathlib import Path

import docx as python_docx
import pytest
from PIL import Image

from common.errors import EmptyFile, EncryptedFile, UnreadableFile, WrongKind
from rag.parser import docx
from rag.parser.blocks import Block, BlockKind, Cell, FileKind, Picture, Unit
from rag.parser.text import MAX_CHARS
from tests.zips import write_zip

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_SPACES = (
    f'xmlns:w="{_W}" xmlns:r="{_R}" xmlns:v="urn:schemas-microsoft-com:vml"'
    ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    ' xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    ' xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram"'
    ' xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
    ' xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"'
)
_PACKAGE_RELS = "http://schemas.openxmlformats.org/package/2006/relationships"
_HEADING, _PARAGRAPH, _ITEM = BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.LIST_ITEM

Short = tuple[BlockKind, int, str]


def _p(text: str = "", properties: str = "", inside: str = "") -> str:
    run = f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>' if text else ""
    return f"<w:p><w:pPr>{properties}</w:pPr>{run}{inside}</w:p>"


def _styled(text: str, style: str) -> str:
    return _p(text, f'<w:pStyle w:val="{style}"/>')


def _style(identifier: str, name: str, more: str = "") -> str:
    return f'<w:style w:type="paragraph" w:styleId="{identifier}"><w:name w:val="{name}"/>{more}</w:style>'


def _relations(*relations: tuple[str, str, str]) -> str:
    items = "".join(
        f'<Relationship Id="{identifier}" Type="{_R}/{kind}" Target="{target}"/>'
        for identifier, kind, target in relations
    )
    return f'<Relationships xmlns="{_PACKAGE_RELS}">{items}</Relationships>'


def _make(tmp_path: Path, body: str, sides: dict[str, str] | None = None, media: tuple[str, ...] = ()) -> Path:
    """A document with this body; `sides` are the inner XML of styles, numbering, footnotes, endnotes."""
    relations = [("img", "image", "media/image1.png"), ("out", "image", "http://127.0.0.1:9/x.png")]
    parts: dict[str, bytes | str] = dict.fromkeys(media, b"picture")
    for kind, xml in (sides or {}).items():
        relations.append((kind, kind, f"{kind}.xml"))
        parts[f"word/{kind}.xml"] = f"<w:{kind} {_SPACES}>{xml}</w:{kind}>"
    parts["_rels/.rels"] = _relations(("r1", "officeDocument", "word/document.xml"))
    parts["word/_rels/document.xml.rels"] = _relations(*relations)
    parts["word/document.xml"] = f"<w:document {_SPACES}><w:body>{body}</w:body></w:document>"
    return write_zip(tmp_path / "a.docx", parts)


def _blocks(path: Path) -> list[Block]:
    return list(docx.read(path, docx.profile(path, path.name), 0, 1))


def _short(path: Path) -> list[Short]:
    return [(block.kind, block.level, block.text) for block in _blocks(path)]


def test_a_document_of_python_docx(tmp_path: Path) -> None:
    document = python_docx.Document()
    document.core_properties.title = "The report"
    document.core_properties.author = "Ada"
    document.add_heading("Title", 0)
    document.add_heading("Part", 2)
    document.add_paragraph("Words.")
    table = document.add_table(3, 3)
    for row in range(3):
        for column in range(3):
            table.cell(row, column).text = f"{row}{column}"
    table.cell(0, 0).merge(table.cell(0, 1))
    table.cell(1, 2).merge(table.cell(2, 2))
    document.add_paragraph("one", style="List Number")
    document.add_paragraph("two", style="List Number")
    document.add_paragraph("deep", style="List Bullet 2")
    image = io.BytesIO()
    Image.new("RGB", (8, 8)).save(image, "PNG")
    document.add_picture(image)
    document.add_paragraph("Figure 1: a square", style="Caption")
    path = tmp_path / "a.docx"
    document.save(str(path))

    profile = docx.profile(path, "a.docx")
    assert (profile.kind, profile.unit, profile.units) == (FileKind.DOCX, Unit.WHOLE, 1)
    assert (profile.title, profile.author) == ("The report", "Ada")
    assert profile.created.startswith("20") and profile.modified.startswith("20")
    blocks = list(docx.read(path, profile, 0, 1))
    assert [(block.kind, block.level, block.text) for block in blocks] == [
        (_HEADING, 1, "Title"),
        (_HEADING, 2, "Part"),
        (_PARAGRAPH, 0, "Words."),
        (BlockKind.TABLE, 0, "00 01\t02\n10\t11\t12 22\n20\t21"),
        (_ITEM, 1, "1. one"),
        (_ITEM, 1, "2. two"),
        (_ITEM, 2, "deep"),
        (BlockKind.FIGURE, 0, ""),
        (BlockKind.CAPTION, 0, "Figure 1: a square"),
    ]
    assert blocks[3].table is not None
    assert blocks[3].table.rows == (
        (Cell("00 01", columns=2), Cell("02")),
        (Cell("10"), Cell("11"), Cell("12 22", rows=2)),
        (Cell("20"), Cell("21")),
    )
    assert blocks[3].table.header_rows == 1
    assert blocks[7].picture == Picture(part="word/media/image1.png")


def test_headings_by_localized_derived_and_direct_levels(tmp_path: Path) -> None:
    styles = (
        _style("berschrift2", "heading 2")
        + _style("Eigen", "Mein Stil", '<w:basedOn w:val="berschrift2"/>')
        + _style("Kapitel", "Kapitel", '<w:pPr><w:outlineLvl w:val="2"/></w:pPr>')
        + _style("Body", "Body", '<w:basedOn w:val="Kapitel"/><w:pPr><w:outlineLvl w:val="9"/></w:pPr>')
        + _style("Loop", "Loop", '<w:basedOn w:val="Loop"/>')
        + _style("T", "Title")
    )
    body = (
        _styled("Top", "T")
        + _styled("Two", "berschrift2")
        + _styled("Derived", "Eigen")
        + _styled("Three", "Kapitel")
        + _styled("text", "Body")
        + _styled("loop", "Loop")
        + _styled("missing style", "Heading4")
        + _p("direct", '<w:outlineLvl w:val="0"/>')
        + _p("no more", '<w:pStyle w:val="Kapitel"/><w:outlineLvl w:val="9"/>')
        + _p("odd", '<w:outlineLvl w:val="x"/>')
    )
    assert _short(_make(tmp_path, body, {"styles": styles})) == [
        (_HEADING, 1, "Top"),
        (_HEADING, 2, "Two"),
        (_HEADING, 2, "Derived"),
        (_HEADING, 3, "Three"),
        (_PARAGRAPH, 0, "text"),
        (_PARAGRAPH, 0, "loop"),
        (_HEADING, 4, "missing style"),
        (_HEADING, 1, "direct"),
        (_PARAGRAPH, 0, "no more"),
        (_PARAGRAPH, 0, "odd"),
    ]


def _level(depth: int, form: str, pattern: str) -> str:
    return f'<w:lvl w:ilvl="{depth}"><w:numFmt w:val="{form}"/><w:lvlText w:val="{pattern}"/></w:lvl>'


def _listed(text: str, numbering: int, depth: int) -> str:
    return _p(text, f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{numbering}"/></w:numPr>')


def test_lists_have_numbers_and_depth(tmp_path: Path) -> None:
    numbering = (
        '<w:abstractNum w:abstractNumId="0">'
        + _level(0, "decimal", "%1.")
        + _level(1, "lowerLetter", "%2)")
        + _level(2, "upperRoman", "%1.%3")
        + '</w:abstractNum><w:abstractNum w:abstractNumId="1">'
        + _level(0, "bullet", "\uf0b7")
        + '</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
        + '<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>'
        + '<w:num w:numId="3"><w:abstractNumId w:val="0"/>'
        + '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride></w:num>'
    )
    body = (
        _listed("one", 1, 0)
        + _listed("a", 1, 1)
        + _listed("b", 1, 1)
        + _listed("deep", 1, 2)
        + _listed("two", 1, 0)
        + _listed("a again", 1, 1)
        + _listed("dot", 2, 0)
        + _listed("seven", 3, 0)
        + _listed("unknown", 99, 0)
        + _p("out", '<w:numPr><w:numId w:val="0"/></w:numPr>')
        + _p("Numbered heading", '<w:outlineLvl w:val="0"/><w:numPr><w:numId w:val="1"/></w:numPr>')
    )
    assert _short(_make(tmp_path, body, {"numbering": numbering})) == [
        (_ITEM, 1, "1. one"),
        (_ITEM, 2, "a) a"),
        (_ITEM, 2, "b) b"),
        (_ITEM, 3, "1.I deep"),
        (_ITEM, 1, "2. two"),
        (_ITEM, 2, "a) a again"),
        (_ITEM, 1, "dot"),
        (_ITEM, 1, "7. seven"),
        (_ITEM, 1, "unknown"),
        (_PARAGRAPH, 0, "out"),
        (_HEADING, 1, "8. Numbered heading"),
    ]


def test_text_as_a_reader_sees_it(tmp_path: Path) -> None:
    def run(inside: str, properties: str = "") -> str:
        return f"<w:r><w:rPr>{properties}</w:rPr>{inside}</w:r>"

    def field(*parts: str) -> str:
        marks = ("begin", "separate", "end")
        return "".join(run(f'<w:fldChar w:fldCharType="{each}"/>') if each in marks else each for each in parts)

    page = field("begin", run("<w:instrText>PAGE</w:instrText>"), "separate", run("<w:t>7</w:t>"), "end")
    body = (
        _p(inside=run("<w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t>"))
        + _p("see ", inside=f'<w:hyperlink r:id="out">{run("<w:t>the link</w:t>")}</w:hyperlink>')
        + _p(
            "kept ",
            inside=f"<w:ins>{run('<w:t>added</w:t>')}</w:ins><w:del>{run('<w:delText>gone</w:delText>')}</w:del>"
            f"<w:moveFrom>{run('<w:t>moved</w:t>')}</w:moveFrom><w:moveTo>{run('<w:t> here</w:t>')}</w:moveTo>",
        )
        + _p("page ", inside=page)
        + _p(
            inside=field(
                *("begin", run("<w:instrText>IF</w:instrText>"), "begin", run("<w:instrText>X</w:instrText>")),
                *("separate", run("<w:t>inner</w:t>"), "end", "separate", run("<w:t>outer</w:t>"), "end"),
            )
        )
        + _p(inside=f'<w:fldSimple w:instr="DATE">{run("<w:t>today</w:t>")}</w:fldSimple>')
        + _p("shown", inside=run("<w:t>hidden</w:t>", "<w:vanish/>") + run("<w:t>!</w:t>", '<w:vanish w:val="0"/>'))
        + f"<w:sdt><w:sdtContent>{_p('controlled')}</w:sdtContent></w:sdt>"
        + _p("x = ", inside="<m:oMath><m:f><m:num><m:r><m:t>a</m:t></m:r></m:num><m:den><m:r><m:t>b</m:t></m:r></m:den>"
             "</m:f></m:oMath>")
        + _p("ctrl\ufffe", inside=run('<w:sym w:font="Wingdings" w:char="F0E0"/>'))
        + _p("   ")
    )  # fmt: skip
    assert [text for _, _, text in _short(_make(tmp_path, body.replace("\ufffe", "")))] == [
        "a\tb\nc\u2011d",
        "see the link",
        "kept added here",
        "page 7",
        "outer",
        "today",
        "shown!",
        "controlled",
        "x = a/b",
        "ctrl",
    ]


def _box(text: str) -> str:
    return f"<w:txbxContent>{text}</w:txbxContent>"


def test_text_boxes_come_once_and_after_their_paragraph(tmp_path: Path) -> None:
    alternatives = (
        f'<mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:inline><wps:txbx>{_box(_p("boxed"))}</wps:txbx>'
        f"</wp:inline></w:drawing></mc:Choice><mc:Fallback><w:pict><v:textbox>{_box(_p('boxed'))}</v:textbox></w:pict>"
        "</mc:Fallback></mc:AlternateContent>"
    )
    body = _p("before", inside=f"<w:r>{alternatives}</w:r>") + _p("after")
    assert [text for _, _, text in _short(_make(tmp_path, body))] == ["before", "boxed", "after"]


def test_pictures_and_what_they_are_called(tmp_path: Path) -> None:
    def drawing(relation: str, alt: str) -> str:
        return (
            f'<w:r><w:drawing><wp:inline><wp:docPr id="1" name="Picture 1" descr="{alt}"/><a:graphic>'
            f'<a:blip {relation}/></a:graphic></wp:inline></w:drawing></w:r>'
        )  # fmt: skip

    body = (
        _p("text", inside=drawing('r:embed="img"', "A cat"))
        + _p(inside=drawing('r:embed="out"', "Elsewhere"))
        + _p(inside=drawing('r:link="out"', ""))
        + _p(inside='<w:r><w:pict><v:shape alt="Old"><v:imagedata r:id="img"/></v:shape></w:pict></w:r>')
        + _p(inside='<w:r><w:drawing><wp:inline><wp:docPr id="1" descr="A chart"/></wp:inline></w:drawing></w:r>')
    )
    blocks = _blocks(_make(tmp_path, body, media=("word/media/image1.png",)))
    here = Picture(part="word/media/image1.png")
    assert [(block.text, block.picture) for block in blocks] == [
        ("text", None),
        ("A cat", here),
        ("Elsewhere", None),
        ("Old", here),
        ("A chart", None),
    ]


def test_notes_follow_the_paragraph_that_refers_to_them(tmp_path: Path) -> None:
    def refer(kind: str, identifier: int) -> str:
        return f'<w:r><w:{kind}Reference w:id="{identifier}"/></w:r>'

    notes = (
        f'<w:footnote w:id="2">{_p("first")}{_p("more")}</w:footnote><w:footnote w:id="3">{_p("third")}</w:footnote>'
    )
    ends = f'<w:endnote w:id="2">{_p("the end")}</w:endnote>'
    rows = f"<w:tr><w:tc>{_p('cell', inside=refer('footnote', 3))}</w:tc><w:tc>{_p('b')}</w:tc></w:tr>"
    body = (
        _p("One", inside=refer("footnote", 2) + refer("endnote", 2))
        + _p("Two", inside=refer("footnote", 2) + refer("footnote", 99))
        + f"<w:tbl>{rows}</w:tbl>"
    )
    assert _short(_make(tmp_path, body, {"footnotes": notes, "endnotes": ends})) == [
        (_PARAGRAPH, 0, "One"),
        (BlockKind.FOOTNOTE, 0, "first\nmore"),
        (BlockKind.FOOTNOTE, 0, "the end"),
        (_PARAGRAPH, 0, "Two"),
        (BlockKind.TABLE, 0, "cell\tb"),
        (BlockKind.FOOTNOTE, 0, "third"),
    ]


def _tc(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{_p(text)}</w:tc>"


def test_tables_with_merged_cells_header_rows_and_tables_inside(tmp_path: Path) -> None:
    header = "<w:trPr><w:tblHeader/></w:trPr>"
    wide = '<w:gridSpan w:val="2"/>'
    merge, merged = '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
    inner = f"<w:tc><w:tbl><w:tr>{_tc('x')}{_tc('y')}</w:tr></w:tbl>{_p('z')}</w:tc>"
    gone = f"<w:tr><w:trPr><w:del/></w:trPr>{_tc('deleted')}{_tc('row')}</w:tr>"
    body = (
        f"<w:tbl><w:tr>{header}{_tc('Name', merge)}{_tc('Both', wide)}</w:tr>"
        f"<w:tr>{header}{_tc('', merged)}{_tc('L')}{_tc('R')}</w:tr>"
        f"<w:tr>{_tc('n')}{inner}{_tc('a&#9;b')}</w:tr>{gone}"
        f'<w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr>{_tc("late")}{_tc("lost", merged)}</w:tr></w:tbl>'
    )
    (block,) = _blocks(_make(tmp_path, body))
    assert block.text == "Name\tBoth\nL\tR\nn\tx y z\ta b lost\n\tlate"
    assert block.table is not None
    assert block.table.header_rows == 2
    assert block.table.rows == (
        (Cell("Name", rows=2), Cell("Both", columns=2)),
        (Cell("L"), Cell("R")),
        (Cell("n"), Cell("x y z"), Cell("a b lost", rows=2)),
        (Cell(""), Cell("late")),
    )


def test_a_table_of_one_cell_is_a_frame(tmp_path: Path) -> None:
    inside = _p("Note", '<w:outlineLvl w:val="1"/>') + _p("Mind the gap.")
    body = f"<w:tbl><w:tr><w:tc>{inside}</w:tc></w:tr></w:tbl>"
    assert _short(_make(tmp_path, body)) == [(_HEADING, 2, "Note"), (_PARAGRAPH, 0, "Mind the gap.")]


def test_code_is_one_block(tmp_path: Path) -> None:
    styles = _style("SourceCode", "Source Code")
    body = _styled("def f():", "SourceCode") + _styled("    return 1", "SourceCode") + _p("Text")
    assert _short(_make(tmp_path, body, {"styles": styles})) == [
        (BlockKind.CODE, 0, "def f():\n    return 1"),
        (_PARAGRAPH, 0, "Text"),
    ]


def test_a_long_paragraph_comes_in_pieces_and_loses_nothing(tmp_path: Path) -> None:
    text = "word " * 10_000
    blocks = _blocks(_make(tmp_path, _p(text)))
    assert len(blocks) == 4
    assert max(len(block.text) for block in blocks) <= MAX_CHARS
    assert "".join(block.text for block in blocks) == text.strip()


def test_the_strict_variant(tmp_path: Path) -> None:
    strict = "http://purl.oclc.org/ooxml/"
    text = _styled("Top", "Heading1")
    body = f'<w:document xmlns:w="{strict}wordprocessingml/main"><w:body>{text}</w:body></w:document>'
    relations = _relations(("r1", "officeDocument", "doc/main.xml"))
    relations = relations.replace(_R, f"{strict}officeDocument/relationships")
    path = write_zip(tmp_path / "a.docx", {"_rels/.rels": relations, "doc/main.xml": body})
    assert _short(path) == [(_HEADING, 1, "Top")]
    assert docx.profile(path, "a.docx").title == "Top"


def test_deep_nesting_is_read_or_refused(tmp_path: Path) -> None:
    deep = "<w:ins>" * 200 + "<w:r><w:t>deep</w:t></w:r>" + "</w:ins>" * 200
    assert [text for _, _, text in _short(_make(tmp_path, _p(inside=deep)))] == ["deep"]
    box = _p("in")
    for _ in range(40):
        box = _p(inside=f"<w:r><w:pict>{_box(box)}</w:pict></w:r>")
    assert [text for _, _, text in _short(_make(tmp_path, box))] == ["in"]
    with pytest.raises(UnreadableFile):
        docx.profile(_make(tmp_path, _p(inside=deep.replace("<w:r>", "<w:ins>" * 200, 1))), "a.docx")


def test_an_empty_document(tmp_path: Path) -> None:
    with pytest.raises(EmptyFile, match=r"a\.docx has no text in it"):
        docx.profile(_make(tmp_path, _p() + _p("  ")), "a.docx")


def test_files_that_are_no_documents(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512) + "EncryptedPackage".encode("utf-16-le"))
    with pytest.raises(EncryptedFile, match=r"a\.docx is encrypted"):
        docx.profile(path, "a.docx")
    path.write_bytes(b"plain text")
    with pytest.raises(UnreadableFile, match=r"a\.docx is damaged"):
        docx.profile(path, "a.docx")
    with pytest.raises(WrongKind, match="is not a Word document"):
        docx.profile(write_zip(path, {"x": "y"}), "a.docx")
    with pytest.raises(UnreadableFile, match="not valid XML"):
        docx.profile(write_zip(path, {"word/document.xml": "<w:document"}), "a.docx")
    entity = f'<!DOCTYPE x [<!ENTITY e "boo">]><w:document {_SPACES}><w:body>{_p("&e;")}</w:body></w:document>'
    with pytest.raises(UnreadableFile, match="declares entities"):
        docx.profile(write_zip(path, {"word/document.xml": entity}), "a.docx")


def test_every_truncation_is_an_error_of_ours(tmp_path: Path) -> None:
    whole = _make(tmp_path, _p("text") * 50).read_bytes()
    path = tmp_path / "cut.docx"
    for size in range(0, len(whole), 31):
        path.write_bytes(whole[:size])
        with pytest.raises(UnreadableFile):
            docx.profile(path, "cut.docx")
