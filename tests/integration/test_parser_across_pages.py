"""Paragraphs over the edges of pages, read by real parser processes: what they answer, and what is left when a page
beside a range takes its process with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.settings import EmbeddingSettings
from rag.flow.chunk import ChunkSettings
from rag.parser import registry
from rag.parser.blocks import Profile, ReadOptions
from rag.svr.block_pool import BlockPool
from rag.svr.parser_pool import Config, ParseJob, ParserPool
from rag.svr.parser_protocol import ParsedChunk
from rag.svr.range_reader import RangeRead, read_range
from tests.prose import paragraph, write_prose

# A parser process in which one page, told by the environment, ends in a crash or never.
CHILD = """
import os, time
from rag.parser import pdf_open
from rag.svr.parser_child import main

read_page = pdf_open.read_page

def fatal(document, path, index, **more):
    if index == int(os.environ["BAD_UNIT"]):
        os.abort() if os.environ["BAD_WAY"] == "crash" else time.sleep(600)
    return read_page(document, path, index, **more)

pdf_open.read_page = fatal
main()
"""


class FragilePool(ParserPool):
    def _command(self) -> list[str]:
        python, _, _, *options = super()._command()
        return [python, "-c", CHILD, *options]


def config(timeout_s: float = 60.0) -> Config:
    return Config(embedding=EmbeddingSettings(), timeout_s=timeout_s)


def ignore(_: int) -> None:
    """How far it is matters to nobody here."""


@pytest.fixture
def prose(tmp_path: Path) -> Path:
    return write_prose(tmp_path / "a.pdf", [paragraph(number, 36 + 17 * (number % 4)) for number in range(36)])


async def read(pool: ParserPool, path: Path, profile: Profile, first: int, end: int) -> RangeRead:
    job = ParseJob(profile, first, end, ChunkSettings(chunk_token_num=64))
    return await read_range(pool, path, job, ignore, carefully=False, skip_bad=True)


async def test_ranges_of_any_size_give_the_same_chunks(prose: Path) -> None:
    by_size: list[list[ParsedChunk]] = []
    async with ParserPool(config()) as pool:
        profile = await pool.prepare(prose, "a.pdf")
        for size in (1, 5, 12, profile.units):
            chunks = []
            for first in range(0, profile.units, size):
                chunks += (await read(pool, prose, profile, first, min(first + size, profile.units))).chunks
            by_size.append(chunks)
    assert profile.units > 12
    assert all(chunks == by_size[0] for chunks in by_size)
    over_an_edge = [chunk for chunk in by_size[0] if len({box.page for box in chunk.boxes}) > 1]
    assert len(over_an_edge) > 5
    assert all(chunk.page == chunk.boxes[0].page for chunk in over_an_edge)


async def test_a_slide_is_a_page_of_its_own(prose: Path) -> None:
    async with ParserPool(config()) as pool:
        profile = await pool.prepare(prose, "a.pdf")
        job = ParseJob(profile, 0, 4, ChunkSettings(method="presentation"))
        chunks = await pool.parse(prose, job, ignore)
    assert [{box.page for box in chunk.boxes} for chunk in chunks] == [{1}, {2}, {3}, {4}]


async def test_the_blocks_are_whole_as_well(prose: Path) -> None:
    async with BlockPool(config(), with_blocks=True) as pool:
        profile = await pool.prepare(prose, "a.pdf")
        for first in range(profile.units):
            await pool.parse(prose, ParseJob(profile, first, first + 1, ChunkSettings()), ignore)
    assert [block.text for block in pool.blocks] == [paragraph(number, 36 + 17 * (number % 4)) for number in range(36)]


async def test_a_page_beside_the_range_that_kills_costs_it_nothing(
    prose: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = registry.profile(prose, "a.pdf")
    bad = _unit_that_goes_on(prose, profile)
    monkeypatch.setenv("BAD_UNIT", str(bad))
    monkeypatch.setenv("BAD_WAY", "crash")
    async with FragilePool(config()) as pool:
        before = await read(pool, prose, profile, bad - 2, bad)
        after = await read(pool, prose, profile, bad + 1, bad + 3)
        around = await read(pool, prose, profile, bad - 2, bad + 3)
    assert (before.failed, after.failed) == ([], [])
    assert [(each.first, each.last) for each in around.failed] == [(bad, bad + 1)]
    assert around.chunks == before.chunks + after.chunks
    last_before = list(registry.read(prose, profile, bad - 1, bad))[-1].text
    first_after = next(registry.read(prose, profile, bad + 1, bad + 2)).text
    assert text_of(before).endswith(last_before) and text_of(after).startswith(first_after)


async def test_a_page_beside_the_range_that_never_ends_has_the_time_of_one_page(
    prose: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = registry.profile(prose, "a.pdf")
    bad = _unit_that_goes_on(prose, profile)
    monkeypatch.setenv("BAD_UNIT", str(bad))
    monkeypatch.setenv("BAD_WAY", "hang")
    async with FragilePool(config(timeout_s=2.0)) as pool:
        found = await read(pool, prose, profile, bad - 1, bad)
    assert found.failed == []
    assert {box.page for chunk in found.chunks for box in chunk.boxes} == {bad}


def text_of(found: RangeRead) -> str:
    return " ".join(chunk.text.replace("\n", " ") for chunk in found.chunks)


def _unit_that_goes_on(path: Path, profile: Profile) -> int:
    """A page into which a paragraph runs, and out of which one runs, and whose neighbours have others besides."""
    for unit in range(3, profile.units - 4):
        texts = [
            [block.text for block in registry.read(path, profile, each, each + 1, ReadOptions())]
            for each in (unit - 1, unit, unit + 1)
        ]
        if all(not page[-1].endswith(".") and len(page) > 1 for page in texts):
            return unit
    raise AssertionError("no page goes on")
