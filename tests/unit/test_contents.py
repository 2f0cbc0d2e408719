"""The table of contents: which headings stand in a chunk, and what they make together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from rag.flow.chunk import Chunk, ChunkSettings
from rag.flow.chunker import Chunker
from rag.flow.contents import Entry, table_of_contents
from rag.parser import registry
from rag.parser.blocks import Block, BlockKind, FileKind, Heading, Profile, Unit
from tests import pdfs

WORDS = "Some words of a section that is long enough to be told from others. "


def count_words(texts: Sequence[str]) -> list[int]:
    return [len(re.findall(r"\w+|[^\w\s]", text)) for text in texts]


def cut(
    blocks: Sequence[Block], unit: Unit = Unit.WHOLE, outline: tuple[Heading, ...] = (), **chosen: object
) -> list[Chunk]:
    profile = Profile(FileKind.PDF, unit, 100, outline=outline)
    return list(Chunker(count_words, ChunkSettings(**chosen), profile).chunk(blocks))  # type: ignore[arg-type]


def toc(chunks: Sequence[Chunk]) -> list[Entry[int]]:
    return list(table_of_contents((place, chunk.contents) for place, chunk in enumerate(chunks) if not chunk.is_parent))


def shown(chunks: Sequence[Chunk]) -> list[tuple[int, str, int]]:
    return [(entry.level, entry.title, entry.chunk) for entry in toc(chunks)]


def heading(text: str, level: int, page: int = 1) -> Block:
    return Block(BlockKind.HEADING, text, page, level)


def text(words: str = WORDS, page: int = 1) -> Block:
    return Block(BlockKind.PARAGRAPH, words, page)


def test_every_heading_is_there_also_where_sections_share_a_chunk() -> None:
    blocks = [
        heading("Lamps", 1),
        text(),
        heading("Oil", 2),
        text(),
        heading("Wicks", 2),
        text(),
        heading("Tides", 1),
        text(),
    ]
    whole = cut(blocks)
    assert len(whole) == 1
    assert shown(whole) == [(1, "Lamps", 0), (2, "Oil", 0), (2, "Wicks", 0), (1, "Tides", 0)]
    small = cut(blocks, chunk_token_num=20)
    assert [(level, title) for level, title, _ in shown(small)] == [(level, title) for level, title, _ in shown(whole)]
    assert all(entry.title in small[entry.chunk].text for entry in toc(small))


def test_an_overlap_does_not_repeat_a_heading() -> None:
    blocks = [heading("Lamps", 1), text(WORDS * 6), heading("Oil", 2), text(WORDS * 6)]
    chunks = cut(blocks, chunk_token_num=40, overlapped_percent=50)
    assert len(chunks) > 4
    assert [title for _, title, _ in shown(chunks)] == ["Lamps", "Oil"]


def test_depth_is_counted_and_not_taken_from_levels_that_skip() -> None:
    blocks = [
        part
        for level, title in ((3, "a"), (7, "b"), (5, "c"), (1, "d"), (2, "e"))
        for part in (heading(title, level), text())
    ]
    assert [(level, title) for level, title, _ in shown(cut(blocks))] == [
        (1, "a"),
        (2, "b"),
        (2, "c"),
        (1, "d"),
        (2, "e"),
    ]


def test_a_title_at_the_top_of_every_page_is_one_entry() -> None:
    blocks = [part for page in (1, 2, 3) for part in (heading("The keeper's book", 1, page), text(page=page))]
    assert [(entry.title, entry.page) for entry in toc(cut(blocks, Unit.PAGE))] == [("The keeper's book", 1)]
    apart = [*blocks[:2], heading("Other", 1, 2), text(page=2), heading("The keeper's book", 1, 3), text(page=3)]
    assert [entry.page for entry in toc(cut(apart, Unit.PAGE))] == [1, 2, 3]


def test_articles_and_questions_are_entries_too() -> None:
    laws = [text("Article 1. Lamps are lit at night. " + WORDS), text("Article 2. Oil is paid for. " + WORDS)]
    assert [title for _, title, _ in shown(cut(laws, method="laws"))] == ["Article 1", "Article 2"]
    asked = [heading("Who lights the lamps?", 1), text("The keeper."), heading("When?", 1), text("At night.")]
    assert [title for _, title, _ in shown(cut(asked, method="qa"))] == ["Who lights the lamps?", "When?"]


def test_a_child_is_told_and_not_its_parent() -> None:
    chunks = cut([heading("Lamps", 1), text("One line.\nAnother line.")], children_delimiter="\n")
    assert chunks[0].is_parent
    (entry,) = toc(chunks)
    assert chunks[entry.chunk].parent_back == 1


OUTLINE = (
    Heading("Lamps", 1, 1),
    Heading("Nowhere on the page", 2, 1),
    Heading("Oil", 2, 1),
    Heading("Tides", 1, 2),
)


def test_an_outline_is_the_table_of_contents() -> None:
    blocks = [
        *(heading("1. Lamps", 1), text(WORDS * 3), heading("A line in large type", 12), text(WORDS * 3)),
        *(heading("OIL", 2), text(WORDS * 3), text(WORDS * 3, page=2)),
    ]
    chunks = cut(blocks, Unit.PAGE, OUTLINE, chunk_token_num=50)
    assert [(entry.level, entry.title, entry.page) for entry in toc(chunks)] == [
        (1, "1. Lamps", 1),
        (2, "Nowhere on the page", 1),
        (2, "OIL", 1),
        (1, "Tides", 2),
    ]
    assert all("OIL" in chunks[entry.chunk].text for entry in toc(chunks) if entry.title == "OIL")
    # The same whatever the split.
    by_page = [
        cut([block for block in blocks if block.page == page], Unit.PAGE, OUTLINE, chunk_token_num=50)
        for page in (1, 2)
    ]
    assert by_page[0] + by_page[1] == chunks


def test_a_real_outline(tmp_path: Path) -> None:
    path = pdfs.write_outlined(tmp_path / "a.pdf", ["Harvest", "Lighthouse"], pages_each=2)
    profile = registry.profile(path, "a.pdf")
    chunks = list(Chunker(count_words, ChunkSettings(), profile).chunk(registry.read(path, profile, 0, profile.units)))
    assert [(entry.level, entry.title, entry.page) for entry in toc(chunks)] == [
        (1, "1. Harvest", 1),
        (1, "2. Lighthouse", 3),
    ]
    assert all(chunks[entry.chunk].page == entry.page for entry in toc(chunks))


@pytest.mark.parametrize("contents", [(), (Heading("", 1, 1),)])
def test_nothing_is_no_entry(contents: tuple[Heading, ...]) -> None:
    assert list(table_of_contents([("chunk", contents)])) == []
