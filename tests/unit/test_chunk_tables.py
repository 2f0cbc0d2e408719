"""Tables in chunks: HTML that shows what the table showed, in parts that each can be read alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from common.settings import EmbeddingSettings
from rag.flow.chunk import Chunk, ChunkSettings
from rag.flow.chunker import Chunker
from rag.flow.tables import plain_text, table_parts
from rag.flow.token_counter import token_counter
from rag.flow.tokens import Scale
from rag.parser.blocks import Block, BlockKind, Box, Cell, FileKind, Profile, Table, Unit
from rag.utils.embedder import load_tokenizer

HEADER = (Cell("name"), Cell("value"))


def count_words(texts: Sequence[str]) -> list[int]:
    return [len(re.findall(r"\w+|[^\w\s]", text)) for text in texts]


SCALE = Scale(count_words, "\n")


def block(table: Table, page: int = 1) -> Block:
    text = "\n".join("\t".join(cell.text for cell in row) for row in table.rows)
    return Block(kind=BlockKind.TABLE, text=text, page=page, table=table)


def cut(blocks: Sequence[Block], limit: int = 200) -> list[Chunk]:
    profile = Profile(FileKind.PDF, Unit.PAGE, 9)
    return list(Chunker(count_words, ChunkSettings(chunk_token_num=limit), profile).chunk(blocks))


def numbered(count: int) -> Table:
    rows = tuple((Cell(f"row{number}"), Cell(f"{number}")) for number in range(count))
    places = tuple(Box(1, 0, 100, 10 * number, 10 * number + 10) for number in range(count + 1))
    return Table((HEADER, *rows), header_rows=1, places=places)


def test_a_table_is_html() -> None:
    table = Table(
        (
            (Cell("a < b", columns=2), Cell("c")),
            (Cell("1", rows=2), Cell('"2" & 3'), Cell("")),
            (Cell("4"), Cell("</td><script>")),
        ),
        header_rows=1,
    )
    (chunk,) = cut([block(table)])
    assert chunk.kind == "table"
    assert chunk.text == (
        '<table><tr><th colspan="2">a &lt; b</th><th>c</th></tr>'
        '<tr><td rowspan="2">1</td><td>"2" &amp; 3</td><td></td></tr>'
        "<tr><td>4</td><td>&lt;/td&gt;&lt;script&gt;</td></tr></table>"
    )
    assert plain_text(chunk.text) == 'a < b\tc\n1\t"2" & 3\t\n4\t</td><script>'


def test_plain_text_leaves_the_text_around_tables_alone() -> None:
    text = "1 &lt; 2 <b>\n<table><caption>T &amp; U</caption><tr><td>a</td></tr></table>\nend"
    assert plain_text(text) == "1 &lt; 2 <b>\nT & U\na\nend"
    assert plain_text("no <td> here") == "no <td> here"


def test_a_large_table_is_cut_at_rows_and_repeats_its_header() -> None:
    chunks = cut([block(numbered(60))], limit=200)
    assert len(chunks) > 3 and {chunk.kind for chunk in chunks} == {"table"}
    start = "<table><tr><th>name</th><th>value</th></tr><tr><td>row"
    assert all(chunk.text.startswith(start) and chunk.tokens <= 200 for chunk in chunks)
    rows = [number for chunk in chunks for number in re.findall(r"<td>(\d+)</td>", chunk.text)]
    assert rows == [str(number) for number in range(60)]
    assert [chunk.boxes[0].top for chunk in chunks] == [
        10 * int(number) + 10 for chunk in chunks for number in re.findall(r"<td>(\d+)</td>", chunk.text)[:1]
    ]


def test_the_caption_is_repeated_too() -> None:
    caption = Block(kind=BlockKind.CAPTION, text="Table 1. Numbers", page=1)
    chunks = cut([caption, block(numbered(60))], limit=200)
    assert all(chunk.text.startswith("<table><caption>Table 1. Numbers</caption><tr><th>") for chunk in chunks)


def test_a_span_that_is_cut_goes_on_in_the_next_part() -> None:
    body = [(Cell("group", rows=40), Cell("x0")), *((Cell(f"x{number}"),) for number in range(1, 40))]
    parts = table_parts(Table((HEADER, *body), header_rows=1), "", 200, SCALE)
    spans = [int(span) for part in parts for span in re.findall(r'rowspan="(\d+)">group', part.text)]
    assert len(spans) == len(parts) > 1 and sum(spans) == 40
    assert all(part.tokens <= 200 for part in parts)
    assert parts[1].text.split("</tr>")[1].startswith(f'<tr><td rowspan="{spans[1]}">group</td><td>x')


def test_a_row_that_is_too_large_is_text_with_the_names_of_its_columns() -> None:
    long = " ".join(f"w{number}" for number in range(300))
    table = Table((HEADER, (Cell("small"), Cell("1")), (Cell("large"), Cell(long))), header_rows=1)
    chunks = cut([block(table)], limit=100)
    assert {chunk.kind for chunk in chunks} == {"table"} and all(chunk.tokens <= 100 for chunk in chunks)
    assert "<td>small</td><td>1</td>" in chunks[0].text
    assert "name: large\nvalue: w0 w1" in "\n".join(chunk.text for chunk in chunks)
    assert all(f"w{number}" in " ".join(chunk.text for chunk in chunks) for number in range(300))


def test_a_header_that_is_too_large_is_given_once() -> None:
    header = tuple(Cell(f"a rather long name of column {number}") for number in range(8))
    rows = tuple(tuple(Cell(str(number)) for number in range(8)) for _ in range(10))
    chunks = cut([block(Table((header, *rows), header_rows=1))], limit=130)
    assert sum("<th>" in chunk.text for chunk in chunks) == 1


def test_a_small_table_stays_in_the_text_around_it() -> None:
    text = Block(kind=BlockKind.PARAGRAPH, text="Two numbers:", page=1)
    (chunk,) = cut([text, block(Table((HEADER,)))])
    assert chunk.kind == "text" and chunk.text.startswith("Two numbers:\n<table><tr><td>name")


def test_text_flows_around_a_large_table() -> None:
    texts = [Block(kind=BlockKind.PARAGRAPH, text=text, page=1) for text in ("before", "after")]
    chunks = cut([texts[0], block(numbered(6)), texts[1]])
    assert [chunk.kind for chunk in chunks] == ["text", "table"]
    assert chunks[0].text == "before\nafter"


def test_a_heading_with_nothing_but_a_table_below_it_stays_with_it() -> None:
    headings = [Block(kind=BlockKind.HEADING, text=text, page=1, level=1) for text in ("Sums", "Words")]
    text = Block(kind=BlockKind.PARAGRAPH, text="some words", page=1)
    table, words = cut([headings[0], block(numbered(6)), headings[1], text])
    assert (table.kind, table.headings) == ("table", ("Sums",)) and table.text.startswith("Sums\n<table>")
    assert (words.text, words.headings) == ("Words\nsome words", ("Words",))


@pytest.mark.parametrize("rows", [((),), ((), (Cell("a"),)), ((Cell("a", columns=10**9, rows=10**9),), (Cell("b"),))])
def test_odd_tables(rows: tuple[tuple[Cell, ...], ...]) -> None:
    text = "".join(plain_text(chunk.text) for chunk in cut([block(Table(rows, header_rows=5))]))
    assert sorted("".join(text.split())) == sorted(cell.text for row in rows for cell in row)


def test_many_spans_take_no_time() -> None:
    rows = tuple((Cell("a", rows=1000), Cell("b", rows=1000)) for _ in range(3000))
    assert len(table_parts(Table(rows), "", 10**9, SCALE)) == 1


def test_the_size_is_that_of_the_markup() -> None:
    count = token_counter(load_tokenizer(EmbeddingSettings()))
    profile = Profile(FileKind.PDF, Unit.PAGE, 9)
    chunks = list(Chunker(count, ChunkSettings(chunk_token_num=256), profile).chunk([block(numbered(100))]))
    assert len(chunks) > 1
    for chunk in chunks:
        (tokens,) = count([chunk.text])
        assert tokens <= chunk.tokens <= 256
