"""A document that is one range is read by the parser that has just looked at it, before that opens another."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import trio
import trio.testing

from api.db.services.task_requests import FinishPrepare, FinishRange, Reusable
from common.settings import TaskSettings
from common.task_state import TaskType
from rag.parser.blocks import Profile, ReadOptions, Unit
from rag.svr.fair_line import FairLine
from rag.svr.fence import Fence, steady_s
from rag.svr.parser_pool import ParseJob
from rag.svr.parser_protocol import ParsedChunk
from rag.svr.slots import Slots
from rag.svr.worker import Work, WorkerParts, run_one
from tests.unit.test_decisions import TASK
from tests.unit.test_worker_model import OneFile


@dataclass
class Parsers:
    """A pool that notes what it is asked for, and lets others go on meanwhile."""

    pages: int
    asked: list[str] = field(default_factory=list)
    timeout_s = 300.0

    async def prepare(self, path: Path, name: str, options: ReadOptions) -> Profile:
        self.asked.append(f"look at {name}")
        await trio.testing.wait_all_tasks_blocked()
        return Profile(kind="pdf", unit=Unit.PAGE, units=self.pages, title=name)

    async def parse(self, path: Path, job: ParseJob, *_: object, **__: object) -> list[ParsedChunk]:
        self.asked.append(f"read {job.profile.title}")
        await trio.testing.wait_all_tasks_blocked()
        return []


class Model:
    name, url, dimension, max_tokens = "m", "", 2, 512


def parts_with(parsers: Parsers, path: Path) -> WorkerParts:
    nothing = cast(Any, None)  # what is not reached: no chunks, nothing to embed and to write
    return WorkerParts(
        settings=TaskSettings(),
        store=cast(Any, OneFile(path)),
        parsers=cast(Any, parsers),
        embedder=cast(Any, Model()),
        index=nothing,
        readers=FairLine(1),
        embedding=nothing,
        index_writers=FairLine(1),
    )


async def prepare_two(parsers: Parsers, path: Path) -> list[FinishPrepare]:
    ended: list[FinishPrepare] = []
    parts = parts_with(parsers, path)

    async def run(name: str) -> None:
        task = msgspec.structs.replace(TASK, id=name, task_type=TaskType.PREPARE, file_name=name)
        ending = await run_one(Work(task, Fence(60.0, steady_s()), lambda progress, message: None, Slots(6)), parts)
        assert isinstance(ending, FinishPrepare)
        ended.append(ending)

    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, "a")
            nursery.start_soon(run, "b")
    return ended


async def test_what_was_looked_at_is_read_in_the_same_turn(tmp_path: Path) -> None:
    parsers = Parsers(pages=100)
    ended = await prepare_two(parsers, tmp_path / "file")
    first, second = sorted("ab", key=lambda name: parsers.asked.index(f"look at {name}"))
    assert parsers.asked == [f"look at {first}", f"read {first}", f"look at {second}", f"read {second}"]
    assert [ending.written is not None for ending in ended] == [True, True]


async def test_a_document_of_many_ranges_leaves_its_turn_to_the_next(tmp_path: Path) -> None:
    parsers = Parsers(pages=1000)
    ended = await prepare_two(parsers, tmp_path / "file")
    assert sorted(parsers.asked) == ["look at a", "look at b"]
    assert [ending.written for ending in ended] == [None, None]


async def test_a_range_that_is_copied_stands_in_no_line(tmp_path: Path) -> None:
    slots = Slots(6)
    slots.was_read(5.0)
    slots.take(1)
    room: list[int] = []

    class Nothing:
        def read_all(self, scope: object) -> tuple[list[Any], Any]:
            room.append(slots.wait_free())
            return [], np.zeros((0, 2), np.float32)

    source = Reusable("set", "doc", 1, 1, 1, 0, 0)
    task = msgspec.structs.replace(TASK, task_type=TaskType.RANGE, reusable=source)
    parts = replace(parts_with(Parsers(pages=1), tmp_path / "file"), index=cast(Any, Nothing()))
    work = Work(task, Fence(60.0, steady_s()), lambda progress, message: None, slots)
    with trio.fail_after(10):
        ending = await run_one(work, parts)
    assert isinstance(ending, FinishRange) and ending.written.reused
    assert (room, work.in_line) == ([1], False)
