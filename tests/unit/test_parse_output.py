"""What `pagemill parse` prints: Markdown, HTML and JSON, in which nothing of a document is taken for markup."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from api.commands.document_parse import METHODS, page_ranges
from api.commands.options import print_json_object
from api.commands.parse_drawing import places
from api.commands.parse_output import Reading, facts_of, summary
from api.commands.spooled_chunks import SpooledChunks
from api.db.services.task_requests import BadRange
from rag.flow.chunk import Chunk
from rag.flow.contents import Heading
from rag.flow.render import to_html, to_markdown
from rag.parser.blocks import Block, BlockKind, Box, Cell, FileKind, Picture, PlacedLine, Profile, Table, Unit
from rag.svr.parser_protocol import ParsedChunk

WHOLE = Profile(kind=FileKind.DOCX, unit=Unit.WHOLE, units=1)
PAGES = Profile(kind=FileKind.PDF, unit=Unit.PAGE, units=2, title="<b>Tide & time</b>", author="A. Writer")


def block(kind: BlockKind, text: str, page: int = 1, **more: object) -> Block:
    return Block(kind=kind, text=text, page=page, **more)  # type: ignore[arg-type]


def paragraph(text: str, page: int = 1) -> Block:
    return block(BlockKind.PARAGRAPH, text, page)


def table(*rows: tuple[Cell, ...], header_rows: int = 0) -> Block:
    text = "\n".join("\t".join(cell.text for cell in row) for row in rows)
    return block(BlockKind.TABLE, text, table=Table(rows, header_rows))


def markdown(*blocks: Block, profile: Profile = WHOLE) -> str:
    return to_markdown(profile, blocks)


def body(*blocks: Block, profile: Profile = WHOLE) -> str:
    return to_html(profile, blocks, "a.docx").split("<body>\n")[1].split("\n</body>")[0]


def test_every_kind_of_block_has_its_markdown() -> None:
    written = markdown(
        block(BlockKind.HEADING, "The  tide\ntables", level=2),
        paragraph("Twice a day."),
        block(BlockKind.LIST_ITEM, "\u2022 ebb"),
        block(BlockKind.LIST_ITEM, "2) flood", level=2),
        block(BlockKind.CODE, "print(`x`)\n"),
        block(BlockKind.FIGURE, "", 3),
        block(BlockKind.FIGURE, "a chart", picture=Picture(part="word/media/image1.png")),
        block(BlockKind.CAPTION, "Fig. 1"),
        block(BlockKind.FOOTNOTE, "see there"),
        block(BlockKind.FOOTNOTE, "and here"),
    )
    assert written == (
        "## The tide tables\n\nTwice a day.\n\n- ebb\n    2) flood\n\n```\nprint(`x`)\n```\n\n**[Figure, page 3]**\n\n"
        "**[Figure]** a chart\n\n*Fig. 1*\n\n[^1]: see there\n\n[^2]: and here\n"
    )


def test_pages_are_named_where_there_are_pages() -> None:
    written = markdown(paragraph("one"), paragraph("two"), paragraph("three", 2), profile=PAGES)
    assert written == "<!-- page 1 -->\n\none\n\ntwo\n\n<!-- page 2 -->\n\nthree\n"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("snake_case and 3 * 4 stay", "snake_case and 3 * 4 stay"),
        ("a *star* and _this_", "a \\*star\\* and \\_this\\_"),
        ("<script>alert(1)</script> 1 < 2", "\\<script>alert(1)\\</script> 1 < 2"),
        ("[click](javascript:x) but [1] stays", "[click\\](javascript:x) but [1] stays"),
        ("# no heading", "\\# no heading"),
        ("- no item\n12. nor this", "\\- no item\n12\\. nor this"),
        ("back\\slash `tick` &amp; ~~gone~~", "back\\\\slash \\`tick\\` \\&amp; \\~~gone\\~~"),
        ("text\n---", "text\n\\---"),
    ],
)
def test_what_looks_like_markup_is_escaped_where_it_would_be_some(text: str, written: str) -> None:
    assert markdown(paragraph(text)) == f"{written}\n"


def test_markdown_stays_as_it_was_written() -> None:
    profile = Profile(kind=FileKind.MARKDOWN, unit=Unit.WHOLE, units=1)
    blocks = [
        block(BlockKind.HEADING, "A", level=1),
        paragraph("a **bold** word"),
        block(BlockKind.LIST_ITEM, "* item\n* other"),
        block(BlockKind.TABLE, "|a|\n|-|\n|1|"),
        block(BlockKind.CODE, "```py\nx\n```"),
    ]
    assert to_markdown(profile, blocks) == (
        "# A\n\na **bold** word\n\n* item\n* other\n\n|a|\n|-|\n|1|\n\n```py\nx\n```\n"
    )


def test_a_plain_table_is_githubs_and_one_with_spans_is_html() -> None:
    plain = table((Cell("a|b"), Cell("c\nd")), (Cell("1"),), header_rows=1)
    assert markdown(plain) == "| a\\|b | c<br>d |\n| --- | --- |\n| 1 |  |\n"
    bare = table((Cell("1"), Cell("2")))
    assert markdown(bare) == "|  |  |\n| --- | --- |\n| 1 | 2 |\n"
    spanned = table((Cell("<i>", columns=2),), (Cell("1", rows=2), Cell("2")), (Cell("3"),), header_rows=1)
    expected = (
        '<table>\n<thead>\n<tr><th colspan="2">&lt;i&gt;</th></tr>\n</thead>\n<tbody>\n'
        '<tr><td rowspan="2">1</td><td>2</td></tr>\n<tr><td>3</td></tr>\n</tbody>\n</table>'
    )
    assert markdown(spanned) == f"{expected}\n"
    assert body(spanned) == expected
    assert markdown(block(BlockKind.TABLE, "a\tb\n1\t2")) == "|  |  |\n| --- | --- |\n| a | b |\n| 1 | 2 |\n"
    assert markdown(table(), paragraph("x")) == "x\n"


def test_html_is_escaped_and_asks_for_nothing() -> None:
    page = to_html(PAGES, [paragraph("<script>alert('x')</script>\nnext"), paragraph("two", 2)], "a.pdf")
    assert page.startswith("<!DOCTYPE html>\n")
    assert "<title>&lt;b&gt;Tide &amp; time&lt;/b&gt;</title>" in page
    assert "<script" not in page
    assert "<p>&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;<br>next</p>" in page
    assert '<section id="page-2">\n<p class="page">Page 2</p>\n<p>two</p>\n</section>' in page
    assert "default-src 'none'" in page
    assert "src=" not in page.replace("default-src=", "")


def test_every_kind_of_block_has_its_html() -> None:
    blocks = [
        block(BlockKind.HEADING, "H", level=9),
        block(BlockKind.LIST_ITEM, "- a"),
        block(BlockKind.LIST_ITEM, "b"),
        block(BlockKind.CODE, "<a>\n  b"),
        block(BlockKind.FIGURE, "seen", 4),
        block(BlockKind.CAPTION, "c"),
        block(BlockKind.FOOTNOTE, "f"),
    ]
    assert body(*blocks) == (
        "<h6>H</h6>\n<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n<pre><code>&lt;a&gt;\n  b</code></pre>\n"
        '<figure>Figure, page 4<br>seen</figure>\n<p class="caption">c</p>\n<p class="footnote">f</p>'
    )


def _printed(fields: Mapping[str, Any], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    print_json_object(fields)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_what_is_printed_an_item_at_a_time_looks_like_any_json(capsys: pytest.CaptureFixture[str]) -> None:
    lists: dict[str, list[Any]] = {"none": [], "few": [{"a": "line\nline", "b": []}, 2, None]}
    print_json_object({"name": "é", "deep": {"x": [1]}, **{name: iter(items) for name, items in lists.items()}})
    expected = json.dumps({"name": "é", "deep": {"x": [1]}, **lists}, indent=2, ensure_ascii=False)
    assert capsys.readouterr().out == expected + "\n"
    print_json_object({})
    assert capsys.readouterr().out == "{}\n"


def test_spooled_chunks_are_those_that_were_added() -> None:
    heading = Heading("H", 1, 1)
    chunks = [
        ParsedChunk(text="one\x00é", tokens=1, page=1, boxes=(Box(1, 10, 20, 30, 40),), headings=("H",), terms="t"),
        ParsedChunk(text="", tokens=0, page=2, contents=(heading,), is_parent=True),
    ]
    with closing(SpooledChunks()) as spooled:
        assert (len(spooled), list(spooled)) == (0, [])
        spooled.add(chunks[:1])
        assert [chunk.text for chunk in spooled] == ["one\x00é"]
        spooled.add(chunks[1:])
        found = list(spooled)
        assert len(spooled) == 2
    fields = [{name: getattr(chunk, name) for name in Chunk.__struct_fields__} for chunk in (*found, *chunks)]
    assert fields[:2] == fields[2:]


def test_json_has_places_and_what_could_not_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    box = Box(1, 10, 20, 30, 40)
    line = Block(kind=BlockKind.PARAGRAPH, text="one", page=1, lines=(PlacedLine(0, box),))
    chunk = ParsedChunk(text="one", tokens=1, page=1, boxes=(box,), headings=("H",), terms="one")
    reading = Reading(PAGES, [line], [chunk], [BadRange(1, 2, "unreadable_file", "page 2 is damaged")])
    facts = _printed(facts_of(Path("a.pdf"), reading, blocks=False), capsys)
    assert facts["profile"]["kind"] == "pdf"
    (shown,) = facts["chunks"]
    assert (shown["text"], shown["boxes"], shown["headings"]) == ("one", [[1, 10, 20, 30, 40]], ["H"])
    assert "terms" not in shown
    assert facts["failed"] == [{"first": 2, "last": 2, "code": "unreadable_file", "reason": "page 2 is damaged"}]
    with_blocks = _printed(facts_of(Path("a.pdf"), reading, blocks=True), capsys)
    assert "chunks" not in with_blocks
    assert with_blocks["blocks"][0]["boxes"] == [[1, 10, 20, 30, 40]]


def test_the_summary_says_what_a_file_is() -> None:
    chunks = [ParsedChunk(text="x", tokens=1, page=1)]
    assert summary(Path("b/a.pdf"), Reading(PAGES, chunks=chunks)) == (
        "a.pdf: pdf, 2 pages, “<b>Tide & time</b>”, author A. Writer, 1 chunk"
    )
    assert summary(Path("a\x1b[31m.docx"), Reading(WHOLE)) == "a\ufffd[31m.docx: docx, 0 chunks"


def test_pages_are_given_as_people_write_them() -> None:
    assert page_ranges("") == ()
    assert page_ranges("3-5,8") == ((3, 5), (8, 8))
    assert page_ranges(" 1 - 2 , 2") == ((1, 2), (2, 2))
    for bad in ("0", "5-3", "a", "1,", "-3", "1-2-3", "9" * 10, "\uff11"):
        with pytest.raises(ValueError, match="no list of pages"):
            page_ranges(bad)


def test_the_methods_are_those_of_datasets() -> None:
    assert {"naive", "paper", "qa"} <= set(METHODS)


def test_a_block_stands_where_its_lines_its_rows_or_its_picture_do() -> None:
    box, below = Box(1, 1, 5, 1, 2), Box(1, 0, 4, 3, 4)
    assert places(Block(BlockKind.PARAGRAPH, "a", 1, lines=(PlacedLine(0, box),))) == (box,)
    rows = Table(((Cell("a"),), (Cell("b"),)), places=(box, below))
    assert places(Block(BlockKind.TABLE, "a\nb", 1, table=rows)) == (Box(1, 0, 5, 1, 4),)
    assert places(Block(BlockKind.FIGURE, "", 1, picture=Picture(box=box))) == (box,)
    assert places(paragraph("no place")) == ()
