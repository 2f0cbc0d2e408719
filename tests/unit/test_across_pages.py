"""Paragraphs that run over the edges of pages are one block, whatever the split."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import UnreadableFile
from rag.flow.chunk import Chunk, ChunkSettings
from rag.flow.chunker import Chunker
from rag.parser import across_pages, registry
from rag.parser.blocks import PLAIN, Block, BlockKind, FileKind, Profile, ReadOptions, Unit
from tests.prose import paragraph, write_prose

SPLITS = (1, 5, 12, 1000)


def count_words(texts: Sequence[str]) -> list[int]:
    return [len(re.findall(r"\w+|[^\w\s]", text)) for text in texts]


def read(path: Path, profile: Profile, size: int, pages: tuple[tuple[int, int], ...] = ()) -> list[Block]:
    """The blocks of the wanted pages, in ranges of `size`."""
    options = ReadOptions(pages=pages)
    return [
        block
        for low, high in pages or ((1, profile.units),)
        for first in range(low - 1, high, size)
        for block in across_pages.read(path, profile, first, min(first + size, high), options)
    ]


def ranges(path: Path, profile: Profile, size: int) -> list[list[Block]]:
    return [
        list(across_pages.read(path, profile, first, min(first + size, profile.units)))
        for first in range(0, profile.units, size)
    ]


def cut(profile: Profile, parts: Sequence[Sequence[Block]], chosen: ChunkSettings) -> list[Chunk]:
    return [chunk for part in parts for chunk in Chunker(count_words, chosen, profile).chunk(part)]


def pages_of(block: Block) -> list[int]:
    return list(dict.fromkeys(line.box.page for line in block.lines))


@pytest.mark.parametrize("header", ["", "The keeper's book"])
def test_what_was_written_as_one_paragraph_is_one_block(tmp_path: Path, header: str) -> None:
    written = [paragraph(number, 30 + 17 * (number % 4)) for number in range(40)]
    path = write_prose(tmp_path / "a.pdf", written, header=header)
    profile = registry.profile(path, "a.pdf")
    blocks = [block for block in read(path, profile, 12) if "Remark" in block.text or not header]
    assert [block.text for block in blocks] == written
    joined = [block for block in blocks if len(pages_of(block)) > 1]
    assert len(joined) > 5
    for block in joined:
        assert block.page == pages_of(block)[0]
        assert [box.page for box in block.boxes] == pages_of(block)


def test_blocks_and_chunks_do_not_depend_on_the_split(tmp_path: Path) -> None:
    written = [paragraph(number, 25 + 13 * (number % 7)) for number in range(40)]
    path = write_prose(tmp_path / "a.pdf", written)
    profile = registry.profile(path, "a.pdf")
    assert profile.units > 12
    by_size = [ranges(path, profile, size) for size in SPLITS]
    whole = [block for part in by_size[-1] for block in part]
    assert all([block for part in parts for block in part] == whole for parts in by_size)
    for method in ("naive", "book", "laws", "manual", "paper", "qa"):
        chosen = ChunkSettings(method=method, chunk_token_num=40, overlapped_percent=20)
        chunks, *others = [cut(profile, parts, chosen) for parts in by_size]
        assert all(other == chunks for other in others)
        assert [chunk.page for chunk in chunks] == sorted(chunk.page for chunk in chunks)
        assert all(chunk.page == chunk.boxes[0].page for chunk in chunks)


def test_a_paragraph_may_span_many_pages_but_not_all_of_a_document(tmp_path: Path) -> None:
    path = write_prose(tmp_path / "a.pdf", [paragraph(1, 2500)])
    profile = registry.profile(path, "a.pdf")
    assert profile.units > 20
    whole = read(path, profile, 1000)
    assert all(read(path, profile, size) == whole for size in SPLITS)
    assert " ".join(block.text for block in whole) == paragraph(1, 2500)
    spans = [len(pages_of(block)) for block in whole]
    assert max(spans) == 8 and spans[:-1] == [8] * (len(spans) - 1)


def test_chunks_of_the_end_of_a_paragraph_are_on_the_page_where_they_start(tmp_path: Path) -> None:
    path = write_prose(tmp_path / "a.pdf", [paragraph(1, 300)])
    profile = registry.profile(path, "a.pdf")
    chunks = cut(profile, ranges(path, profile, 1), ChunkSettings(chunk_token_num=40))
    assert {chunk.page for chunk in chunks} == set(range(1, profile.units + 1))
    assert any({box.page for box in chunk.boxes} == {1, 2} for chunk in chunks)


def test_an_edit_on_one_page_changes_no_other_pages_chunks(tmp_path: Path) -> None:
    written = [paragraph(number, 25 + 13 * (number % 7)) for number in range(24)]
    # Of the same length, so that all else stays where it is.
    edited = [text.replace("Remark 12 ", "Remork 12 ") for text in written]
    chunks = []
    for name, texts in (("a.pdf", written), ("b.pdf", edited)):
        path = write_prose(tmp_path / name, texts)
        profile = registry.profile(path, name)
        chunks.append(cut(profile, ranges(path, profile, 12), ChunkSettings(chunk_token_num=40)))
    changed = [chunk for chunk in chunks[1] if chunk not in chunks[0]]
    assert len(changed) == 1 and "Remork 12" in changed[0].text


def test_pages_that_are_not_wanted_are_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_prose(tmp_path / "a.pdf", [paragraph(1, 900)])
    profile = registry.profile(path, "a.pdf")
    seen: set[int] = set()

    def spied(path: Path, profile: Profile, first: int, end: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
        seen.update(range(first, end))
        return original(path, profile, first, end, options)

    original = registry.read
    monkeypatch.setattr(registry, "read", spied)
    whole = read(path, profile, 1000, ((3, 5),))
    assert seen == {2, 3, 4}
    assert [pages_of(block) for block in whole] == [[3, 4, 5]]
    # The same however the wish is written, and cut.
    for pages in (((3, 5),), ((3, 4), (5, 5)), ((3, 3), (4, 5))):
        for size in (1, 2, 12):
            assert read(path, profile, size, pages) == whole
    assert seen == {2, 3, 4}
    assert [pages_of(block) for block in read(path, profile, 1, ((1, 2), (4, 5)))] == [[1, 2], [4, 5]]


@pytest.fixture
def bad_pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[int]]:
    """Units that can't be read."""
    bad: set[int] = set()

    def broken(path: Path, profile: Profile, first: int, end: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
        for unit in range(first, end):
            if unit in bad:
                raise UnreadableFile(f"page {unit + 1} is damaged and can't be read")
            yield from original(path, profile, unit, unit + 1, options)

    original = registry.read
    monkeypatch.setattr(registry, "read", broken)
    yield bad


def test_a_page_beside_the_range_that_is_damaged_ends_the_block(tmp_path: Path, bad_pages: set[int]) -> None:
    path = write_prose(tmp_path / "a.pdf", [paragraph(1, 600)])
    profile = registry.profile(path, "a.pdf")
    bad_pages.add(2)
    told: list[int | None] = []
    (before,) = across_pages.read(path, profile, 0, 2, PLAIN, told.append)
    (after,) = across_pages.read(path, profile, 3, 5, PLAIN, told.append)
    assert (pages_of(before), pages_of(after)[0]) == ([1, 2], 4)
    assert told[:4] == [2, None, 2, None] and set(told[4:]) <= {5, 6, 7, None}
    with pytest.raises(UnreadableFile):
        list(across_pages.read(path, profile, 1, 4))


@pytest.mark.parametrize("kind", [FileKind.PDF, FileKind.IMAGE, FileKind.PPTX])
def test_other_kinds_and_scans_have_no_neighbours(kind: FileKind) -> None:
    profile = Profile(kind=kind, unit=Unit.PAGE, units=50, scanned=0.5)
    assert across_pages.neighbourhood(profile, (), 10, 12) == (10, 12)


def test_neighbours_are_the_page_before_and_as_many_behind_as_a_paragraph_may_run_on() -> None:
    profile = Profile(kind=FileKind.PDF, unit=Unit.PAGE, units=50)
    assert across_pages.neighbourhood(profile, (), 12, 24) == (11, 32)
    assert across_pages.neighbourhood(profile, (), 0, 50) == (0, 50)
    assert across_pages.neighbourhood(profile, ((13, 24),), 12, 24) == (12, 24)
    assert across_pages.neighbourhood(profile, ((1, 12), (13, 26), (28, 40)), 12, 24) == (11, 26)
    assert across_pages.neighbourhood(profile, ((1, 10**9),), 48, 50) == (47, 50)


@settings(max_examples=15, deadline=None)
@given(
    lengths=st.lists(st.integers(3, 260), min_size=1, max_size=12), height=st.integers(45, 120), size=st.integers(1, 6)
)
def test_no_word_is_lost_or_doubled(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], height: int, size: int
) -> None:
    written = [paragraph(number, words) for number, words in enumerate(lengths)]
    path = write_prose(tmp_path_factory.mktemp("prose") / "a.pdf", written, height=height)
    profile = registry.profile(path, "a.pdf")
    blocks = read(path, profile, size)
    assert blocks == read(path, profile, 1000)
    assert " ".join(block.text for block in blocks) == " ".join(written)
    assert all(block.kind is BlockKind.PARAGRAPH for block in blocks)
