"""A page beside a piece that kills, hangs or fails its parser is never charged to the piece; and the chunks are the
same for every split, whatever pages are bad."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.errors import PagemillError, ParserLost, ParserTimeout, UnreadableFile, from_code
from rag.flow.chunk import ChunkSettings
from rag.parser import registry
from rag.parser.blocks import PLAIN, Block, BlockKind, Box, FileKind, PlacedLine, Profile, ReadOptions, Unit
from rag.svr.parser_child import Worker
from rag.svr.parser_pool import ParseJob
from rag.svr.parser_protocol import Failed, Parse, Parsed, ParsedChunk, Progress, Reply
from rag.svr.range_reader import RangeRead, read_range

MIDDLE = "goes on and on in lower case until the page has no room"


class Died(BaseException):
    """Stands for the death of the process."""


class Hung(BaseException):
    """Stands for a time limit that has passed."""


def count_words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def lines(page: int, number: int, words: str, last: bool) -> list[Block]:
    """Three full lines of a paragraph, of which the last ends its sentence or does not."""
    rows = (f"{words} of page {page} {MIDDLE}", MIDDLE, f"{MIDDLE} and ends." if last else f"{MIDDLE} and still")
    text, placed = "", []
    for row, line in enumerate(rows):
        top = 80 + 60 * number + 12 * row
        placed.append(PlacedLine(len(text), Box(page, 72, 540, top, top + 10)))
        text += line + (" " if row < 2 else "")
    return [Block(BlockKind.PARAGRAPH, text, page, lines=tuple(placed))]


def document(pages: Sequence[str]) -> list[list[Block]]:
    """For each page: a letter per paragraph; "s" starts and ends, "o" starts and stays open, "m" neither, "e" ends."""
    found = []
    for page, letters in enumerate(pages, start=1):
        blocks: list[Block] = []
        for number, letter in enumerate(letters):
            blocks += lines(page, number, "Paragraph" if letter in "so" else "what", last=letter in "se")
        found.append(blocks)
    return found


class Parsers:
    """Stands for the pool, with the real answers of a parser process, and deaths of it where told."""

    timeout_s = 120.0

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pages: Sequence[str], bad: dict[int, BaseException]) -> None:
        self._pages = document(pages)
        self._bad = bad
        self.tries: Counter[int] = Counter()
        self.asked: list[tuple[int, int]] = []
        self.profile = Profile(FileKind.PDF, Unit.PAGE, len(pages))
        monkeypatch.setattr(registry, "read", self._read)

    def _read(
        self, path: Path, profile: Profile, first: int, end: int, options: ReadOptions = PLAIN
    ) -> Iterator[Block]:
        for unit in range(first, end):
            self.tries[unit] += 1
            if unit in self._bad:
                raise self._bad[unit]
            yield from self._pages[unit]

    async def parse(
        self, path: Path, job: ParseJob, on_progress: Callable[[int], None], timeout_s: float
    ) -> list[ParsedChunk]:
        self.asked.append((job.from_unit, job.to_unit))
        request = Parse(str(path), job.profile, job.from_unit, job.to_unit, job.settings, job.options)
        replies: list[Reply] = []

        def send(reply: Reply) -> None:
            if isinstance(reply, Progress):
                on_progress(reply.units_done)
            replies.append(reply)

        try:
            Worker(count_words, 1, send).answer(request)
        except Died as exc:
            raise ParserLost("it died") from exc
        except Hung as exc:
            raise ParserTimeout("too long") from exc
        match replies[-1]:
            case Parsed(chunks):
                return chunks
            case Failed(code, message):
                raise from_code(code, message)
        raise AssertionError(replies)

    async def read(
        self, first: int, end: int, *, pages: tuple[tuple[int, int], ...] = (), carefully: bool = False
    ) -> tuple[RangeRead, list[int]]:
        progress: list[int] = []
        job = ParseJob(self.profile, first, end, ChunkSettings(chunk_token_num=30), ReadOptions(pages=pages))
        read = await read_range(self, Path("x"), job, progress.append, carefully=carefully, skip_bad=True)  # type: ignore[arg-type]
        return read, progress


def texts(read: RangeRead) -> str:
    return " ".join(chunk.text.replace("\n", " ") for chunk in read.chunks)


def expected(*units: tuple[int, str]) -> str:
    return " ".join(block.text for unit, letters in units for block in document([""] * unit + [letters])[unit])


@pytest.mark.parametrize("error", [Died(), Hung(), UnreadableFile("damaged"), KeyError("odd")])
async def test_a_bad_page_behind_the_range_ends_its_last_block(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    parsers = Parsers(monkeypatch, ["ss", "so", "es"], {2: error})
    read, progress = await parsers.read(0, 2)
    assert read.failed == []
    assert texts(read) == expected((0, "ss"), (1, "so"))
    assert all(0 <= done <= 2 for done in progress)
    # One that can't be read is told by the parser itself; others are tried twice, but for time that ran out.
    assert parsers.tries[2] == {"UnreadableFile": 1, "Hung": 2}.get(type(error).__name__, 3)
    # What is wrong with the file is so the next time too; a process that was lost may have been bad luck.
    assert read.is_cut_short == (not isinstance(error, UnreadableFile))


@pytest.mark.parametrize("error", [Died(), Hung(), UnreadableFile("damaged")])
async def test_a_bad_page_before_the_range_takes_nothing_from_it(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    parsers = Parsers(monkeypatch, ["so", "es", "s"], {0: error})
    read, _ = await parsers.read(1, 3)
    assert read.failed == []
    assert texts(read) == expected((1, "es"), (2, "s"))


async def test_a_bad_page_within_the_range_is_charged_and_ends_the_block_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsers = Parsers(monkeypatch, ["so", "m", "es", "s"], {1: Died()})
    read, progress = await parsers.read(0, 4)
    assert [(bad.first, bad.last, bad.code) for bad in read.failed] == [(1, 2, "parser_lost")]
    assert texts(read) == expected((0, "so"), (2, "es"), (3, "s"))
    assert progress == sorted(progress)
    assert not read.is_cut_short


async def test_one_blow_while_a_neighbour_is_read_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bad: dict[int, BaseException] = {1: Died()}
    parsers = Parsers(monkeypatch, ["so", "es"], bad)
    read_page = registry.read

    def healed(path: Path, profile: Profile, first: int, end: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
        if parsers.tries[1] == 1:
            bad.clear()
        return read_page(path, profile, first, end, options)

    monkeypatch.setattr(registry, "read", healed)
    read, _ = await parsers.read(0, 1)
    assert parsers.tries[1] == 2
    assert texts(read) == expected((0, "so"), (1, "e"))
    assert {box.page for box in read.chunks[-1].boxes} == {2}


async def test_pages_that_are_not_wanted_are_not_read_after_a_failure_either(monkeypatch: pytest.MonkeyPatch) -> None:
    parsers = Parsers(monkeypatch, ["so", "m", "m", "es"], {1: Died()})
    read, _ = await parsers.read(2, 3, pages=((2, 3),))
    assert set(parsers.tries) == {1, 2}
    assert texts(read) == expected((2, "m"))


async def test_read_page_by_page_after_a_lost_executor_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    parsers = Parsers(monkeypatch, ["so", "m", "m", "es", "so", "e"], {})
    whole, _ = await parsers.read(0, 6)
    careful, _ = await parsers.read(0, 6, carefully=True)
    assert careful.chunks == whole.chunks
    assert len(parsers.asked) == 7


_pages = st.lists(
    st.sampled_from(["s", "so", "o", "m", "es", "e", "eo", "esso", "mo", "", "ss"]), min_size=1, max_size=14
)
_bad = st.sampled_from([Died(), Hung(), UnreadableFile("damaged"), KeyError("odd")])


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(pages=_pages, bad=st.dictionaries(st.integers(0, 13), _bad, max_size=2), size=st.integers(1, 6))
async def test_the_split_is_not_seen_whatever_page_is_bad(
    monkeypatch: pytest.MonkeyPatch, pages: list[str], bad: dict[int, BaseException], size: int
) -> None:
    parsers = Parsers(monkeypatch, pages, bad)
    whole = await _read_in(parsers, 1000)
    assert await _read_in(parsers, size) == whole
    chunks, failed = whole
    assert failed == sorted(unit for unit in bad if unit < len(pages))
    good = [(unit, letters) for unit, letters in enumerate(pages) if unit not in bad]
    words = " ".join(chunk.text for chunk in chunks).split()
    assert Counter(words) == Counter(expected(*good).split())


async def _read_in(parsers: Parsers, size: int) -> tuple[list[ParsedChunk], list[int]]:
    chunks: list[ParsedChunk] = []
    failed: list[int] = []
    units = parsers.profile.units
    for first in range(0, units, size):
        end = min(first + size, units)
        try:
            read, _ = await parsers.read(first, end)
        except PagemillError:  # nothing of it could be read
            failed += range(first, end)
            continue
        chunks += read.chunks
        failed += [unit for each in read.failed for unit in range(each.first, each.last)]
    return chunks, failed
