"""HTML pages: blocks, tables, encodings, and pages made to hurt."""

from __future__ import annotations

import base64
import tracemalloc
from pathlib import Path

import pytest

from common.errors import EmptyFile
from rag.parser import html
from rag.parser.blocks import Block, BlockKind, Cell, Picture, Unit
from rag.parser.html_tables import MAX_CELLS
from rag.parser.text import MAX_CHARS

Seen = tuple[BlockKind, int, str]


def _file(tmp_path: Path, source: bytes | str) -> Path:
    path = tmp_path / "blob"
    path.write_bytes(source.encode() if isinstance(source, str) else source)
    return path


def _read(tmp_path: Path, source: bytes | str) -> list[Block]:
    path = _file(tmp_path, source)
    return list(html.read(path, html.profile(path, "a.html"), 0, 1))


def _seen(tmp_path: Path, source: bytes | str) -> list[Seen]:
    return [(block.kind, block.level, block.text) for block in _read(tmp_path, source)]


def _texts(tmp_path: Path, source: bytes | str) -> list[str]:
    return [block.text for block in _read(tmp_path, source)]


def test_the_profile(tmp_path: Path) -> None:
    path = _file(
        tmp_path,
        """<!doctype html><html><head><title> Tea &amp;
        more </title><meta name="Author" content="Ada L."><meta property="article:published_time" content="2024-02-03">
        <meta http-equiv="last-modified" content="2024-03-04"></head><body><h1>Other</h1>words</body></html>""",
    )
    profile = html.profile(path, "a.html")
    assert (profile.unit, profile.units, profile.encoding) == (Unit.WHOLE, 1, "utf-8")
    assert (profile.title, profile.author) == ("Tea & more", "Ada L.")
    assert (profile.created, profile.modified) == ("2024-02-03", "2024-03-04")


def test_a_page_without_a_title_has_its_first_heading(tmp_path: Path) -> None:
    assert html.profile(_file(tmp_path, "<p>words<h2>The <i>name</i></h2>"), "a.html").title == "The name"


def test_headings_paragraphs_and_breaks(tmp_path: Path) -> None:
    source = """<body>loose <h1>One<br>two</h1><p>First <b>bo</b>ld,
      <a href="x">link</a>.</p><div>outer<p>inner</p>rest</div>line<br>next line<br> <br/>new paragraph<h3>Low</h3>
      <blockquote>said</blockquote><footer>the end</footer>"""
    assert _seen(tmp_path, source) == [
        (BlockKind.PARAGRAPH, 0, "loose"),
        (BlockKind.HEADING, 1, "One two"),
        (BlockKind.PARAGRAPH, 0, "First bold, link."),
        (BlockKind.PARAGRAPH, 0, "outer"),
        (BlockKind.PARAGRAPH, 0, "inner"),
        (BlockKind.PARAGRAPH, 0, "rest"),
        (BlockKind.PARAGRAPH, 0, "line\nnext line"),
        (BlockKind.PARAGRAPH, 0, "new paragraph"),
        (BlockKind.HEADING, 3, "Low"),
        (BlockKind.PARAGRAPH, 0, "said"),
        (BlockKind.PARAGRAPH, 0, "the end"),
    ]


def test_a_heading_that_is_never_closed(tmp_path: Path) -> None:
    assert _seen(tmp_path, "<h1>Title<div>words</div><p>more") == [
        (BlockKind.HEADING, 1, "Title"),
        (BlockKind.PARAGRAPH, 0, "words"),
        (BlockKind.PARAGRAPH, 0, "more"),
    ]


def test_lists(tmp_path: Path) -> None:
    source = """<ul><li>a<li>b <ol start=3><li>c<li value=7><p>d</p><p>e</p></ol> after<li>f</ul>
      <dl><dt>Term<dd>one<dd>two<dt>Next<dd>three</dl>end"""
    assert _seen(tmp_path, source) == [
        (BlockKind.LIST_ITEM, 1, "a"),
        (BlockKind.LIST_ITEM, 1, "b"),
        (BlockKind.LIST_ITEM, 2, "3. c"),
        (BlockKind.LIST_ITEM, 2, "7. d\ne"),
        (BlockKind.LIST_ITEM, 1, "after"),
        (BlockKind.LIST_ITEM, 1, "f"),
        (BlockKind.LIST_ITEM, 1, "Term\none\ntwo"),
        (BlockKind.LIST_ITEM, 1, "Next\nthree"),
        (BlockKind.PARAGRAPH, 0, "end"),
    ]


def test_a_table_with_spans(tmp_path: Path) -> None:
    caption, block = _read(
        tmp_path,
        """<table><caption>Sales</caption><thead><tr><th rowspan=2>Year<th colspan="2">Sold<tr><th>tea<th>milk</thead>
        <tr><td>2023<td>1<br>0<td><p>2</p><p>3</p><tr><td colspan=9999>none<td rowspan=0>x</table>""",
    )
    assert (caption.kind, caption.text) == (BlockKind.CAPTION, "Sales")
    assert block.text == "Year\tSold\ntea\tmilk\n2023\t1 0\t2 3\nnone\tx"
    assert block.table is not None
    assert block.table.header_rows == 2
    assert block.table.rows == (
        (Cell("Year", rows=2), Cell("Sold", columns=2)),
        (Cell("tea"), Cell("milk")),
        (Cell("2023"), Cell("1 0"), Cell("2 3")),
        (Cell("none", columns=1000), Cell("x")),
    )


@pytest.mark.parametrize(
    ("rows", "header_rows"),
    [
        ("<tr><th>a<th>b<tr><td>1<td>2", 1),
        ("<tr><td><th>a<th>b<tr><th>x<td>1<td>2", 1),
        ("<tr><td>a<td>b<tr><td>1<td>2", 0),
        ("<tr><th>a<td>b<tr><th>1<td>2", 0),
    ],
)
def test_which_rows_name_the_columns(tmp_path: Path, rows: str, header_rows: int) -> None:
    (block,) = _read(tmp_path, f"<table>{rows}</table>")
    assert block.table is not None
    assert block.table.header_rows == header_rows


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("<table><tr><td><p>one</p><p>two</p></table>", ["one", "two"]),
        ("<table role=presentation><tr><td>left<td>right</table>", ["left", "right"]),
        (
            "<table><tr><td>menu<td><table><tr><th>a<th>b<tr><td>1<td>2</table>after</table>",
            ["menu", "a\tb\n1\t2", "after"],
        ),
        ("<table><tr><td>1 2<td><pre>x = 1\ny = 2</pre></table>", ["1 2", "x = 1\ny = 2"]),
    ],
)
def test_tables_that_are_only_layout(tmp_path: Path, source: str, texts: list[str]) -> None:
    assert _texts(tmp_path, source) == texts


def test_a_table_too_large_comes_in_parts_under_its_header(tmp_path: Path) -> None:
    rows = MAX_CELLS
    blocks = _read(tmp_path, "<table><tr><th>n<th>m" + "<tr><td>1<td>2" * rows + "</table>")
    assert [block.text.count("n\tm") for block in blocks] == [1] * len(blocks)
    assert sum(block.text.count("1\t2") for block in blocks) == rows
    assert all(block.table and block.table.header_rows == 1 and len(block.table.rows) < MAX_CELLS for block in blocks)


def test_code_keeps_its_lines(tmp_path: Path) -> None:
    source = "<p>see <code>x</code>:<pre><code>\ndef f():\n    return  1\n\nf()\n</code></pre>"
    assert _seen(tmp_path, source) == [
        (BlockKind.PARAGRAPH, 0, "see x:"),
        (BlockKind.CODE, 0, "def f():\n    return  1\n\nf()"),
    ]


def test_figures(tmp_path: Path) -> None:
    drawn = base64.b64encode(bytes(600)).decode()
    blocks = _read(
        tmp_path,
        f"""<figure><img src="https://example.org/cat.png" alt="A  cat"><figcaption>Fig. 1</figcaption></figure>
        <img src="data:image/gif;base64,R0lG"><img src="data:image/png;base64,{drawn}">
        <p>where <img src=x.png alt="x"> is real <img src="data:image/png;base64,{drawn}" alt="y">and on</p>
        <img src="file:///etc/passwd">""",
    )
    assert [(block.kind, block.text, block.picture) for block in blocks] == [
        (BlockKind.FIGURE, "A cat", None),
        (BlockKind.CAPTION, "Fig. 1", None),
        (BlockKind.FIGURE, "", Picture(part="data:2")),
        (BlockKind.PARAGRAPH, "where x is real and on", None),
        (BlockKind.FIGURE, "y", Picture(part="data:3")),
    ]


def test_what_nobody_sees_is_dropped(tmp_path: Path) -> None:
    source = """<script>no<p></script><style>no</style><noscript>no</noscript><template><p>no</p></template>
      <nav><ul><li>no</ul></nav><p hidden>no<b>no</b></p><div style="color: red; DISPLAY:none">no<p>no</div>
      <span aria-hidden="true">no</span><header>head</header><aside>side</aside><!-- no --><p>yes"""
    assert _texts(tmp_path, source) == ["head", "side", "yes"]


def test_a_navigation_that_is_never_closed_hides_no_page(tmp_path: Path) -> None:
    assert _texts(tmp_path, "<nav><ul><li>menu<h1>Title</h1><p>words") == ["Title", "words"]


def test_a_body_hidden_until_its_script_runs(tmp_path: Path) -> None:
    assert _texts(tmp_path, "<body style='display:none'><p>words") == ["words"]


def test_odd_characters(tmp_path: Path) -> None:
    source = b"<p>a\x00b &eacute;&nbsp;&lt;i&gt; &amp;amp; &bogus; so\xc2\xadft <![CDATA[x < y]]> &#xD800; &#7;.</p>"
    assert _texts(tmp_path, source) == ["ab é <i> &amp; &bogus; soft x < y \ufffd ."]


def test_xhtml(tmp_path: Path) -> None:
    source = """<?xml version="1.0" encoding="iso-8859-1"?><!DOCTYPE html [<!ENTITY x SYSTEM "file:///etc/passwd">]>
    <html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="x"/></head><body>
    <div/><p>été <a id="n"/>on &x;
    </p><p/><aside epub:type="footnote">note</aside></body></html>"""
    assert _seen(tmp_path, source.encode("latin-1"))[-2:] == [
        (BlockKind.PARAGRAPH, 0, "été on &x;"),
        (BlockKind.FOOTNOTE, 0, "note"),
    ]


@pytest.mark.parametrize(
    ("source", "encoding"),
    [
        ("<p>Grüße", "utf-8"),
        ("<p>Grüße", "utf-8-sig"),
        ("<p>Grüße aus Köln", "utf-16"),
        ("<meta charset=windows-1251><p>Привет, мир", "cp1251"),
        ("<meta http-equiv=Content-Type content='text/html; charset=gb2312'><p>中文网页", "gb18030"),
        ("<meta charset='shift_jis'><p>日本語のページ①", "cp932"),
        ("<meta charset=iso-2022-jp><p>日本語", "iso2022_jp"),
        ("<meta charset=iso-8859-1><p>“quoted” 5 €", "cp1252"),
        ("<meta charset=utf-8><p>Der Bürgermeister von Köln grüßt die Gäste.", "cp1252"),
        ("<meta charset=idna><p>Der Bürgermeister von Köln grüßt die Gäste.", "cp1252"),
        ("<meta charset=utf-16><p>Grüße", "utf-8"),
    ],
)
def test_encodings(tmp_path: Path, source: str, encoding: str) -> None:
    assert _texts(tmp_path, source.encode(encoding)) == [source.rsplit("<p>")[-1]]


@pytest.mark.parametrize(
    "source", [" \n ", "<html></html>", "<title>only</title>", "<script>x</script>", "<p hidden>x"]
)
def test_pages_without_text(tmp_path: Path, source: str) -> None:
    with pytest.raises(EmptyFile, match=r"a\.html has no text in it"):
        html.profile(_file(tmp_path, source), "a.html")


@pytest.mark.parametrize("source", ["words <p", "words", "words<!--", "words</p></p></table></li>", "<td>words"])
def test_broken_pages(tmp_path: Path, source: str) -> None:
    assert _texts(tmp_path, source)[:1] == ["words"]


@pytest.mark.parametrize(
    ("tag", "times"),
    [
        ("<div>", 100_000),
        ("<b>", 20_000),
        ("<table><tr><td>", 20_000),
        ("<ul><li>", 20_000),
        ("<nav><div>", 20_000),
        ("<h1><span>", 20_000),
    ],
)
def test_nested_without_end(tmp_path: Path, tag: str, times: int) -> None:
    blocks = _texts(tmp_path, "<p>before</p>" + tag * times + "deep" + "</i>" * 10_000 + "<p>after</p><div>last")
    assert " ".join(" ".join(blocks).split()) == "before deep after last"


def test_one_text_of_many_megabytes(tmp_path: Path) -> None:
    path = _file(tmp_path, b"<p>" + b"word " * 300_000 + b"</p><p>last")
    profile = html.profile(path, "a.html")
    tracemalloc.start()
    seen = 0
    for block in html.read(path, profile, 0, 1):
        assert len(block.text) <= MAX_CHARS
        seen += len(block.text.split())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == 300_001
    assert peak < 1 << 20
