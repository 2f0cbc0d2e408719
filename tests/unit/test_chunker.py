"""Chunks: nothing is lost, none is too large or needlessly small, and the split of a document is not seen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.settings import EmbeddingSettings
from rag.flow.chunk import Chunk, ChunkSettings
from rag.flow.chunker import Chunker
from rag.flow.split import split
from rag.flow.token_counter import token_counter
from rag.parser import registry
from rag.parser.blocks import Block, BlockKind, Box, FileKind, Heading, PlacedLine, Profile, Unit
from rag.utils.embedder import load_tokenizer
from tests import pdfs

PAGES = Profile(kind=FileKind.PDF, unit=Unit.PAGE, units=100)
ROWS = Profile(kind=FileKind.CSV, unit=Unit.ROW, units=1000)


def count_words(texts: Sequence[str]) -> list[int]:
    return [len(re.findall(r"\w+|[^\w\s]", text)) for text in texts]


def cut(blocks: Sequence[Block], limit: int = 20, profile: Profile = PAGES, delimiter: str = "\n") -> list[Chunk]:
    settings = ChunkSettings(chunk_token_num=limit, delimiter=delimiter)
    return list(Chunker(count_words, settings, profile).chunk(blocks))


def paragraph(text: str, page: int = 1) -> Block:
    return Block(kind=BlockKind.PARAGRAPH, text=text, page=page)


def words(count: int, page: int = 1) -> Block:
    return paragraph(" ".join(f"w{number}" for number in range(count)), page)


_texts = st.text(
    alphabet=st.one_of(st.sampled_from(" \n.!?。;ab1"), st.characters(codec="utf-8")), min_size=0, max_size=400
)
_blocks = st.lists(
    st.builds(
        Block,
        kind=st.sampled_from((BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.LIST_ITEM, BlockKind.CODE)),
        text=_texts,
        page=st.integers(1, 3),
        level=st.integers(1, 3),
    ),
    max_size=12,
)


@given(_blocks, st.integers(1, 60), st.sampled_from(["\n", "", "`ab`.;", "\n!?。"]))
def test_no_character_is_lost(blocks: list[Block], limit: int, delimiter: str) -> None:
    blocks.sort(key=lambda block: block.page)
    chunks = cut(blocks, limit, delimiter=delimiter)
    given_text = "".join("".join(block.text.split()) for block in blocks)
    assert "".join("".join(chunk.text.split()) for chunk in chunks) == given_text
    assert all(chunk.text for chunk in chunks)


@given(st.lists(st.integers(1, 90), min_size=1, max_size=30), st.integers(4, 50))
def test_no_chunk_is_over_the_limit(sizes: list[int], limit: int) -> None:
    chunks = cut([words(size) for size in sizes], limit)
    assert all(0 < chunk.tokens <= limit for chunk in chunks)
    assert sum(chunk.tokens for chunk in chunks) == sum(sizes)


def test_a_page_is_cut_evenly() -> None:
    chunks = cut([words(5) for _ in range(9)], limit=40)
    assert [chunk.tokens for chunk in chunks] == [25, 20]


def test_a_large_block_is_cut_evenly() -> None:
    chunks = cut([words(1030)], limit=512)
    assert len(chunks) == 3 and min(chunk.tokens for chunk in chunks) > 200


def test_a_chunk_never_crosses_a_page() -> None:
    chunks = cut([words(3, page=1), words(4, page=2), words(5, page=3)])
    assert [(chunk.page, chunk.tokens) for chunk in chunks] == [(1, 3), (2, 4), (3, 5)]


def test_large_blocks_are_cut_at_the_delimiter_first_then_at_sentences() -> None:
    text = "one two three; four five six; seven eight nine"
    assert [chunk.text for chunk in cut([paragraph(text)], 4, delimiter=";")] == [
        "one two three;",
        "four five six;",
        "seven eight nine",
    ]
    text = "One two three. Four five six! Seven eight nine?"
    assert [chunk.text for chunk in cut([paragraph(text)], 4)] == [
        "One two three.",
        "Four five six!",
        "Seven eight nine?",
    ]


def test_a_word_without_end_is_cut_too() -> None:
    chunks = cut([paragraph("x" * 100_000)], limit=100)
    assert max(len(chunk.text) for chunk in chunks) <= 1600
    assert "".join(chunk.text for chunk in chunks) == "x" * 100_000


def test_headings_stay_with_what_follows_and_make_the_path() -> None:
    blocks = [
        Block(kind=BlockKind.HEADING, text="Birds", page=1, level=1),
        words(8),
        Block(kind=BlockKind.HEADING, text="Owls", page=1, level=2),
        words(9),
        Block(kind=BlockKind.HEADING, text="Fish", page=1, level=1),
        words(9),
    ]
    chunks = cut(blocks, limit=10)
    assert [chunk.headings for chunk in chunks] == [("Birds",), ("Birds", "Owls"), ("Fish",)]
    assert [chunk.text.split()[0] for chunk in chunks] == ["Birds", "Owls", "Fish"]


def test_the_outline_gives_the_path_on_later_pages() -> None:
    outline = (Heading("One", 1, 1), Heading("Deep", 2, 2), Heading("Two", 1, 5))
    profile = Profile(kind=FileKind.PDF, unit=Unit.PAGE, units=9, outline=outline)
    chunks = cut([words(3, page=page) for page in (1, 2, 3, 5, 6)], profile=profile)
    assert [chunk.headings for chunk in chunks] == [(), ("One",), ("One", "Deep"), ("One", "Deep"), ("Two",)]


def test_boxes_are_those_of_the_blocks() -> None:
    boxes = [Box(1, 10, 20, top, top + 5) for top in (0, 10, 20)]
    blocks = [Block(kind=BlockKind.PARAGRAPH, text="a b c", page=1, lines=(PlacedLine(0, box),)) for box in boxes]
    assert [chunk.boxes for chunk in cut(blocks, limit=6)] == [tuple(boxes[:2]), tuple(boxes[2:])]


def test_parts_of_a_block_have_the_boxes_of_their_lines() -> None:
    lines = ["One two three.", "Four five six.", "Seven eight nine.", "Ten eleven twelve."]
    # Two lines in each of two columns.
    boxes = [Box(1, 10, 90, 700, 710), Box(1, 10, 90, 712, 722), Box(1, 110, 190, 50, 60), Box(1, 110, 190, 62, 72)]
    text = " ".join(lines)
    placed = tuple(PlacedLine(text.index(line), box) for line, box in zip(lines, boxes, strict=True))
    block = Block(kind=BlockKind.PARAGRAPH, text=text, page=1, lines=placed)
    assert block.boxes == (Box(1, 10, 90, 700, 722), Box(1, 110, 190, 50, 72))
    assert [chunk.boxes for chunk in cut([block], limit=8)] == [block.boxes[:1], block.boxes[1:]]
    assert [chunk.boxes for chunk in cut([block], limit=4)] == [(box,) for box in boxes]


def test_parts_of_a_page_long_paragraph_stand_below_each_other(tmp_path: Path) -> None:
    lines = [pdfs.sentence(1, number) for number in range(1, 41)]
    path = pdfs.write_lines(tmp_path / "a.pdf", [lines])
    (block,) = registry.read(path, registry.profile(path, "a.pdf"), 0, 1)
    chunks = cut([block], limit=160)
    assert len(chunks) > 3
    for above, below in pairwise(chunks):
        assert above.boxes[-1].bottom <= below.boxes[0].top + 2
    for chunk in chunks:
        (box,) = chunk.boxes
        assert (box.bottom - box.top) / len(chunk.text.split(". ")) == pytest.approx(14.2, abs=2)


def test_rows_are_grouped_by_the_hundred() -> None:
    rows = [Block(kind=BlockKind.TABLE, text="n: 1", page=number) for number in range(1, 251)]
    chunks = cut(rows, limit=200, profile=ROWS)
    assert {chunk.kind for chunk in chunks} == {"table"}
    assert [chunk.page for chunk in chunks] == [1, 51, 101, 151, 201]
    parts = [chunk for first in (0, 100, 200) for chunk in cut(rows[first : first + 100], 200, ROWS)]
    assert parts == chunks


def test_kind_is_table_only_if_all_of_it_is() -> None:
    table = Block(kind=BlockKind.TABLE, text="a: 1", page=1)
    assert [chunk.kind for chunk in cut([table, words(2)])] == ["text"]


@pytest.mark.parametrize("page_size", [1, 5, 12])
@pytest.mark.parametrize("outlined", [False, True])
def test_chunks_do_not_depend_on_the_split(tmp_path: Path, page_size: int, outlined: bool) -> None:
    if outlined:
        path = pdfs.write_outlined(tmp_path / "a.pdf", [f"Chapter of {n} things" for n in range(15)])
    else:
        path = pdfs.write_pages(tmp_path / "a.pdf", 30, sentences=18, heading="Sheet", footer=True)
    count = token_counter(load_tokenizer(EmbeddingSettings()))
    profile = registry.profile(path, "a.pdf")
    chunker = Chunker(count, ChunkSettings(chunk_token_num=128), profile)
    whole = list(chunker.chunk(registry.read(path, profile, 0, 30)))
    parts = [
        chunk
        for first, end in split(profile, page_size, 5000, None)
        for chunk in chunker.chunk(registry.read(path, profile, first, end))
    ]
    assert parts == whole
    assert {chunk.page for chunk in whole} == set(range(1, 31))
    assert all(chunk.boxes and chunk.tokens <= 128 for chunk in whole)


def test_tokens_are_those_of_the_model() -> None:
    count = token_counter(load_tokenizer(EmbeddingSettings()))
    assert count(["hello world", "", "unbelievably"]) == [2, 0, count(["unbelievably"])[0]]
    assert count(["word " * 100_000]) == [100_000]
