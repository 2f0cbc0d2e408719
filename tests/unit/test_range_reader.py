"""A page that kills its parser is found, named and left out; a blow from outside costs no page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import (
    AttemptFailed,
    BadPage,
    EncryptedFile,
    PagemillError,
    ParserKilled,
    ParserLost,
    ParserNotStarted,
    ParserTimeout,
)
from rag.flow.chunk import ChunkSettings
from rag.parser.blocks import FileKind, Profile, Unit
from rag.svr.parser_pool import ParseJob
from rag.svr.parser_protocol import ParsedChunk
from rag.svr.range_reader import RangeRead, read_range


class Parsers:
    """Stands for the pool: one chunk a page, and for some pages an error as often as told."""

    timeout_s = 120.0

    def __init__(self, errors: dict[int, PagemillError], times: int = 1000) -> None:
        self._errors = errors
        self._left = Counter(dict.fromkeys(errors, times))
        self.asked: list[tuple[int, int, float]] = []

    async def parse(
        self, path: Path, job: ParseJob, on_progress: Callable[[int], None], timeout_s: float
    ) -> list[ParsedChunk]:
        self.asked.append((job.from_unit, job.to_unit, timeout_s))
        for page in range(job.from_unit, job.to_unit):
            if self._left[page] > 0:
                self._left[page] -= 1
                raise self._errors[page]
        on_progress(job.to_unit - job.from_unit)
        return [ParsedChunk(text=str(page), tokens=1, page=page + 1) for page in range(job.from_unit, job.to_unit)]


async def read(
    parsers: Parsers, first: int = 0, last: int = 12, *, carefully: bool = False, skip_bad: bool = True
) -> tuple[RangeRead, list[int]]:
    profile = Profile(FileKind.PDF, Unit.PAGE, 100)
    progress: list[int] = []
    job = ParseJob(profile, first, last, ChunkSettings())
    found = await read_range(parsers, Path("x"), job, progress.append, carefully=carefully, skip_bad=skip_bad)  # type: ignore[arg-type]
    return found, progress


async def test_a_sound_range_is_read_in_one_go() -> None:
    parsers = Parsers({})
    found, progress = await read(parsers, 12, 24)
    assert parsers.asked == [(12, 24, 120.0)]
    assert [c.page for c in found.chunks] == list(range(13, 25))
    assert (found.failed, progress) == ([], [12])


async def test_the_page_that_kills_is_named_and_the_rest_is_delivered_in_order() -> None:
    found, progress = await read(Parsers({17: ParserLost("it died (signal 11)")}), 12, 24)
    assert [c.page for c in found.chunks] == [p for p in range(13, 25) if p != 18]
    (bad,) = found.failed
    assert (bad.first, bad.last, bad.code, bad.reason) == (17, 18, "parser_lost", "it died (signal 11)")
    assert progress == sorted(progress)


async def test_several_bad_pages_are_all_found() -> None:
    found, _ = await read(Parsers({n: AttemptFailed("bad") for n in (0, 5, 11)}))
    assert [bad.first for bad in found.failed] == [0, 5, 11]
    assert len(found.chunks) == 9


async def test_one_blow_from_outside_costs_no_page() -> None:
    found, _ = await read(Parsers({3: ParserLost("killed")}, times=1))
    assert found.failed == []
    assert len(found.chunks) == 12


async def test_a_page_whose_process_is_killed_now_and_then_is_no_bad_page() -> None:
    found, _ = await read(Parsers({3: ParserKilled("killed")}, times=6))
    assert found.failed == []
    assert len(found.chunks) == 12


async def test_a_process_that_does_not_start_costs_no_page() -> None:
    with pytest.raises(ParserNotStarted):
        await read(Parsers({3: ParserNotStarted("killed")}))


async def test_a_hang_gets_less_time_as_pieces_get_smaller_and_no_second_try() -> None:
    parsers = Parsers({5: ParserTimeout("too long")})
    found, _ = await read(parsers)
    assert [bad.code for bad in found.failed] == ["parser_timeout"]
    alone = [timeout_s for first, last, timeout_s in parsers.asked if (first, last) == (5, 6)]
    assert alone == [30.0]


async def test_a_bad_page_fails_the_document_where_that_is_asked_for() -> None:
    with pytest.raises(BadPage, match="page 6 can't be read: it died"):
        await read(Parsers({5: ParserLost("it died")}), skip_bad=False)


async def test_a_range_of_which_nothing_can_be_read_is_no_matter_of_pages() -> None:
    with pytest.raises(ParserLost):
        await read(Parsers({n: ParserLost("it died") for n in range(3)}), 0, 3)
    with pytest.raises(BadPage):
        await read(Parsers({0: ParserTimeout("too long")}), 0, 1)


async def test_after_a_lost_executor_pages_are_read_one_by_one() -> None:
    parsers = Parsers({})
    await read(parsers, 0, 4, carefully=True)
    assert [(first, last) for first, last, _ in parsers.asked] == [(0, 1), (1, 2), (2, 3), (3, 4)]


async def test_a_file_that_is_at_fault_as_a_whole_is_not_halved() -> None:
    parsers = Parsers({0: EncryptedFile("needs a password")})
    with pytest.raises(EncryptedFile):
        await read(parsers)
    assert len(parsers.asked) == 1


async def test_rows_are_halved_at_whole_groups() -> None:
    parsers = Parsers({250: ParserLost("it died")})
    profile = Profile(FileKind.CSV, Unit.ROW, 1000)
    job = ParseJob(profile, 0, 1000, ChunkSettings())
    found = await read_range(parsers, Path("x"), job, lambda _: None, carefully=False, skip_bad=True)  # type: ignore[arg-type]
    assert all(first % 100 == 0 and last % 100 == 0 for first, last, _ in parsers.asked)
    assert [(bad.first, bad.last) for bad in found.failed] == [(200, 300)]
