"""RTF: encodings, headings, lists, tables, notes, and damaged files."""

# ruff: noqa: RUF001 - texts in many languages

from __future__ import annotations

import time
from pathlib import Path

import pytest

from common.errors import EmptyFile, UnreadableFile, WrongKind
from rag.parser import rtf
from rag.parser.blocks import Block, BlockKind, Cell, FileKind, Unit

_HEADING, _PARAGRAPH, _ITEM = BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.LIST_ITEM


def _make(tmp_path: Path, body: bytes, head: bytes = b"\\ansi\\ansicpg1252\\deff0") -> Path:
    path = tmp_path / "a.rtf"
    path.write_bytes(b"{\\rtf1" + head + b" " + body + b"}")
    return path


def _blocks(path: Path) -> list[Block]:
    return list(rtf.read(path, rtf.profile(path, path.name), 0, 1))


def _short(path: Path) -> list[tuple[BlockKind, int, str]]:
    return [(block.kind, block.level, block.text) for block in _blocks(path)]


def _texts(path: Path) -> list[str]:
    return [block.text for block in _blocks(path)]


def _hexed(text: str, encoding: str) -> bytes:
    return b"".join(b"\\'%02x" % byte for byte in text.encode(encoding))


def test_paragraphs_headings_and_styles(tmp_path: Path) -> None:
    body = rb"""{\stylesheet{\s0 Normal;}{\s1\outlinelevel0\b heading 1;}{\s2 heading 2;}{\s3 caption;}{\s4 Title;}}
{\info{\title The \'e9t\'e9}{\author Ada}{\creatim\yr2024\mo5\dy31\hr12\min3}{\revtim\yr2024\mo6\dy1}{\doccomm no}}
{\header\pard header\par}{\footer\pard page {\field{\fldinst PAGE}{\fldrslt 1}}\par}
\pard\plain\s1\outlinelevel0 One\par\pard\s2 Two\line words\par\pard\outlinelevel2 Three\par
\pard\s3 Figure 1\par\pard Text {\b bold}{\i0  plain}
goes on.\par \pard\par\pard Last {\v hidden}{\deleted gone}without end"""
    path = _make(tmp_path, body)
    assert _short(path) == [
        (_HEADING, 1, "One"),
        (_HEADING, 2, "Two words"),
        (_HEADING, 3, "Three"),
        (BlockKind.CAPTION, 0, "Figure 1"),
        (_PARAGRAPH, 0, "Text bold plaingoes on."),
        (_PARAGRAPH, 0, "Last without end"),
    ]
    profile = rtf.profile(path, "a.rtf")
    assert (profile.kind, profile.unit, profile.units) == (FileKind.RTF, Unit.WHOLE, 1)
    assert (profile.title, profile.author) == ("The été", "Ada")
    assert (profile.created, profile.modified) == ("2024-05-31T12:03:00", "2024-06-01T00:00:00")


@pytest.mark.parametrize(
    ("codepage", "encoding", "text"),
    [
        (1252, "cp1252", "“Été” – 5 €"),
        (1251, "cp1251", "Привет, мир"),
        (1250, "cp1250", "Příliš žluťoučký"),
        (932, "cp932", "日本語のテキスト"),
        (936, "gbk", "简体中文"),
        (949, "cp949", "한국어"),
        (65001, "utf-8", "all ✓"),
        (99999, "cp1252", "é"),
    ],
)
def test_code_pages(tmp_path: Path, codepage: int, encoding: str, text: str) -> None:
    head = b"\\ansi\\ansicpg%d" % codepage
    assert _texts(_make(tmp_path, _hexed(text, encoding), head)) == [text]


def test_fonts_have_code_pages_of_their_own(tmp_path: Path) -> None:
    fonts = b"{\\fonttbl{\\f0\\fcharset0 Arial;}{\\f1\\fcharset204 Arial Cyr;}{\\f2\\fnil\\fcharset128 Mincho;}}"
    cyrillic = b"{\\f1 " + _hexed("Привет", "cp1251") + b"}"
    # The second byte of a character may be written as itself, or escaped.
    japanese = b"{\\f2 " + _hexed("日", "cp932") + b"\\'83A\\'95\\\\}"
    assert _texts(_make(tmp_path, fonts + b"\\'e9 " + cyrillic + b" " + japanese + b" \\'e9")) == ["é Привет 日ア表 é"]


def test_unicode_with_its_fallbacks(tmp_path: Path) -> None:
    body = rb"\u8364?5 \u8364\'805 {\uc2\u945??}{\uc0\u946} \u-10179?\u-8704?\u9999999999? "
    body += rb"\{\}\\ x\emdash\rquote\~y\_z\-w"
    assert _texts(_make(tmp_path, body)) == ["€5 €5 αβ 😀 {}\\ x—’\u00a0y\u2011zw"]


def test_lists(tmp_path: Path) -> None:
    body = rb"""\pard{\listtext 1.\tab}\ls1\ilvl0 one\par{\listtext a)\tab}\ls1\ilvl1 sub\par
\pard{\pntext\f1\'b7\tab}dot\par\pard plain\par"""
    assert _short(_make(tmp_path, body)) == [
        (_ITEM, 1, "1. one"),
        (_ITEM, 2, "a) sub"),
        (_ITEM, 1, "dot"),
        (_PARAGRAPH, 0, "plain"),
    ]


def test_tables(tmp_path: Path) -> None:
    body = rb"""Before\par
\trowd\trhdr\cellx1000\cellx2000\cellx3000\pard\intbl A\cell B\par more\cell C\cell\row
\trowd\cellx2010\clvmgf\cellx3000\pard\intbl wide\cell tall\cell\row
\trowd\cellx1000\cellx2000\clvmrg\cellx3000\pard\intbl x\cell y{\footnote\pard noted\par}\cell\cell\row
\pard\par\trowd\cellx1000\clmrg\cellx2000\intbl k\cell v\cell\row\pard After{\footnote it}\par"""
    blocks = _blocks(_make(tmp_path, body))
    assert [(block.kind, block.text) for block in blocks] == [
        (_PARAGRAPH, "Before"),
        (BlockKind.TABLE, "A\tB more\tC\nwide\ttall\nx\ty"),
        (BlockKind.FOOTNOTE, "noted"),
        (BlockKind.TABLE, "k v"),
        (_PARAGRAPH, "After"),
        (BlockKind.FOOTNOTE, "it"),
    ]
    assert blocks[1].table is not None
    assert blocks[1].table.header_rows == 1
    assert blocks[1].table.rows == (
        (Cell("A"), Cell("B more"), Cell("C")),
        (Cell("wide", columns=2), Cell("tall", rows=2)),
        (Cell("x"), Cell("y")),
    )


def test_what_is_not_text_is_left_out(tmp_path: Path) -> None:
    body = (
        b"a{\\*\\unknown secret}{\\pict\\pngblip 89504e470d0a}{\\pict\\bin5 }}}{\\}"
        b"{\\object{\\*\\objdata 00ff}{\\result shown}}{\\*\\bkmkstart x}{\\annotation said}"
        b'{\\field{\\*\\fldinst HYPERLINK "http://127.0.0.1:9"}{\\fldrslt  link}}\\par'
        b"{\\shp{\\*\\shpinst\\shpleft1{\\sp{\\sn a}{\\sv b}}{\\shptxt\\pard boxed\\par}}{\\shprslt old}}after"
    )
    assert _texts(_make(tmp_path, body)) == ["ashown link", "after", "boxed"]


def test_what_comes_after_the_end_is_ignored(tmp_path: Path) -> None:
    path = _make(tmp_path, b"text")
    path.write_bytes(path.read_bytes() + b"junk}}} more")
    assert _texts(path) == ["text"]


def test_files_that_are_no_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.rtf"
    path.write_bytes(b"")
    with pytest.raises(EmptyFile, match=r"a\.rtf is empty"):
        rtf.profile(path, "a.rtf")
    path.write_bytes(b"plain")
    with pytest.raises(WrongKind, match=r"a\.rtf is not an RTF document"):
        rtf.profile(path, "a.rtf")
    with pytest.raises(EmptyFile, match="has no text in it"):
        rtf.profile(_make(tmp_path, b"\\par\\pard "), "a.rtf")
    with pytest.raises(UnreadableFile, match="nested too deeply"):
        rtf.profile(_make(tmp_path, b"{" * 100_000 + b"x"), "a.rtf")


def test_a_large_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rtf, "MAX_BYTES", 10)
    with pytest.raises(UnreadableFile, match=r"a\.rtf is too large"):
        rtf.profile(_make(tmp_path, b"text and more"), "a.rtf")


def test_every_truncation_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    body = b"{\\fonttbl{\\f0 A;}}First\\par {\\b Second \\u8364? \\'e9}\\par\\trowd\\cellx9\\intbl c\\cell d\\cell\\row"
    whole = _make(tmp_path, body).read_bytes()
    path = tmp_path / "cut.rtf"
    for size in range(7, len(whole)):
        path.write_bytes(whole[:size])
        try:
            texts = _texts(path)
        except EmptyFile:
            continue
        assert "First".startswith(texts[0])


def test_hostile_numbers_and_long_texts_cost_little(tmp_path: Path) -> None:
    body = b"ok\\par\\uc9999999999\\u-9999999999 x\\ls-1\\ilvl999\\outlinelevel-5 123456789 123456789\\bin9999999999"
    assert _short(_make(tmp_path, body)) == [(_PARAGRAPH, 0, "ok"), (_ITEM, 9, "123456789 123456789")]
    began = time.monotonic()
    blocks = _blocks(_make(tmp_path, b"word word word\n" * 200_000))
    assert sum(len(block.text) for block in blocks) == 14 * 200_000
    edges = b"".join(b"\\cellx%d" % (edge * 100) for edge in range(5_000))
    _blocks(_make(tmp_path, b"\\trowd" + edges + b"\\intbl" + b" x\\cell" * 5_000 + b"\\row"))
    assert time.monotonic() - began < 10
