"""Texts of many tasks in few calls: what goes together, who waits for whom, and whom an error or a cancel hits.

The clock of these tests stands still: a line that waited for time to pass would never go on."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from common.errors import EmbeddingRefused, EmbeddingUnavailable
from rag.svr.embedding_line import EmbeddingLine, LineConfig
from rag.utils.doc_index import Vectors
from rag.utils.embedding_cache import EmbeddingCache, Model
from tests.waiting import wait_until


class Held:
    """An embedder whose calls wait until they are let go; a text's vector is its number."""

    name, dimension, max_tokens = "held@Test", 2, 100

    def __init__(self, *, open_: bool = False) -> None:
        self.calls: list[list[str]] = []
        self.fails: Callable[[list[str]], Exception | None] = lambda texts: None
        self._let_go = threading.Semaphore(1_000_000 if open_ else 0)

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        assert self._let_go.acquire(timeout=30)
        error = self.fails(list(texts))
        if error is not None:
            raise error
        return np.array([[float(text.rpartition("-")[2]), 1.0] for text in texts], np.float32).reshape(-1, 2)

    def let_go(self, calls: int = 1) -> None:
        self._let_go.release(calls)

    async def began(self, calls: int) -> None:
        """Wait until so many calls are under way or over."""
        await trio.to_thread.run_sync(wait_until, lambda: len(self.calls) >= calls)
        await trio.testing.wait_all_tasks_blocked()


class Desk:
    """A line with tasks at it."""

    def __init__(self, line: EmbeddingLine, nursery: trio.Nursery) -> None:
        self.line = line
        self.nursery = nursery
        self.got: dict[str, list[float]] = {}
        self.errors: dict[str, Exception] = {}
        self.scopes: dict[str, trio.CancelScope] = {}

    async def comes(self, task: str, count: int, tenant_id: str = "t") -> None:
        """A task with so many texts lines up."""
        self.nursery.start_soon(self._embed, task, [f"{task}-{n}" for n in range(count)], tenant_id)
        await trio.testing.wait_all_tasks_blocked()

    async def _embed(self, task: str, texts: Sequence[str], tenant_id: str) -> None:
        with trio.CancelScope() as self.scopes[task]:
            try:
                vectors = await self.line.embed(tenant_id, texts)
            except (EmbeddingRefused, EmbeddingUnavailable, ZeroDivisionError) as exc:
                self.errors[task] = exc
            else:
                self.got[task] = vectors[:, 0].tolist()


@asynccontextmanager
async def desk(
    embedder: Held, *, batch_size: int = 4, calls: int = 1, cache: EmbeddingCache | None = None
) -> AsyncIterator[Desk]:
    async with trio.open_nursery() as nursery:
        yield Desk(EmbeddingLine(embedder, LineConfig(batch_size, calls), nursery, cache), nursery)


async def test_an_idle_line_asks_at_once(mock_clock: MockClock) -> None:
    held = Held(open_=True)
    async with desk(held) as d:
        assert (await d.line.embed("t", ["a-1", "a-2"])).tolist() == [[1.0, 1.0], [2.0, 1.0]]
        assert (await d.line.embed("t", ["a-3"])).tolist() == [[3.0, 1.0]]
        assert (await d.line.embed("t", [])).shape == (0, 2)
    assert held.calls == [["a-1", "a-2"], ["a-3"], []]


async def test_what_has_queued_goes_in_one_call(mock_clock: MockClock) -> None:
    held = Held()
    async with desk(held) as d:
        await d.comes("first", 1)
        await held.began(1)
        await d.comes("second", 2)
        await d.comes("third", 2)
        held.let_go(2)
    assert held.calls == [["first-0"], ["second-0", "second-1", "third-0", "third-1"]]
    assert d.got == {"first": [0.0], "second": [0.0, 1.0], "third": [0.0, 1.0]}


async def test_a_large_task_goes_in_several_calls_and_a_small_one_does_not_wait_for_all_of_them(
    mock_clock: MockClock,
) -> None:
    held = Held()
    async with desk(held) as d:
        await d.comes("large", 10)
        await held.began(1)
        await d.comes("small", 1)
        await d.comes("other", 1, tenant_id="u")
        for call in range(1, 4):
            held.let_go()
            if call < 3:
                await held.began(call + 1)
    assert held.calls == [
        ["large-0", "large-1", "large-2", "large-3"],
        ["large-4", "large-5", "other-0", "small-0"],
        ["large-6", "large-7", "large-8", "large-9"],
    ]
    assert d.got["large"] == [float(n) for n in range(10)]


async def test_tenants_take_turns(mock_clock: MockClock) -> None:
    held = Held()
    async with desk(held, batch_size=3) as d:
        await d.comes("now", 1)
        await held.began(1)
        for number in range(4):
            await d.comes(f"bulk{number}", 1, tenant_id="bulk")
        await d.comes("single", 1, tenant_id="single")
        held.let_go()
        await held.began(2)
        assert held.calls[1] == ["bulk0-0", "single-0", "bulk1-0"]
        held.let_go(2)


async def test_no_more_calls_at_once_than_allowed(mock_clock: MockClock) -> None:
    held = Held()
    async with desk(held, batch_size=1, calls=2) as d:
        await d.comes("a", 5)
        await held.began(2)
        assert len(held.calls) == 2
        held.let_go(5)
    assert len(held.calls) == 5
    assert d.got["a"] == [0.0, 1.0, 2.0, 3.0, 4.0], "in order, whichever call ended first"


async def test_a_task_that_is_cancelled_does_not_disturb_the_others_in_its_call(mock_clock: MockClock) -> None:
    held = Held()
    async with desk(held) as d:
        await d.comes("busy", 1)
        await held.began(1)
        await d.comes("goes", 2)
        await d.comes("stays", 2)
        held.let_go()
        await held.began(2)
        d.scopes["goes"].cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert held.calls[1] == ["goes-0", "goes-1", "stays-0", "stays-1"]
        held.let_go()
    assert d.scopes["goes"].cancelled_caught
    assert d.got == {"busy": [0.0], "stays": [0.0, 1.0]}


async def test_a_task_that_is_cancelled_in_the_line_is_not_sent(mock_clock: MockClock) -> None:
    held = Held()
    async with desk(held) as d:
        await d.comes("busy", 6)
        await held.began(1)
        await d.comes("goes", 2)
        await d.comes("stays", 1, tenant_id="u")
        d.scopes["goes"].cancel()
        d.scopes["busy"].cancel()  # two of its texts are not sent yet
        await trio.testing.wait_all_tasks_blocked()
        held.let_go(2)
    assert held.calls == [["busy-0", "busy-1", "busy-2", "busy-3"], ["stays-0"]]
    assert d.got == {"stays": [0.0]}


async def test_an_outage_is_everybodys_who_was_in_the_call(mock_clock: MockClock) -> None:
    held = Held()
    away = EmbeddingUnavailable("the embedding endpoint answered 429", 7.0)
    held.fails = lambda texts: away if "second-0" in texts else None
    async with desk(held) as d:
        await d.comes("first", 1)
        await held.began(1)
        await d.comes("second", 1)
        await d.comes("third", 1)
        held.let_go(2)
    assert len(held.calls) == 2
    assert d.got == {"first": [0.0]}
    assert {task: getattr(error, "retry_after_s", None) for task, error in d.errors.items()} == {
        "second": 7.0,
        "third": 7.0,
    }


@pytest.mark.parametrize("cause", [EmbeddingRefused("the text has poison"), ZeroDivisionError("not foreseen")])
async def test_an_error_that_one_text_causes_hits_only_its_own_task(mock_clock: MockClock, cause: Exception) -> None:
    held = Held()
    held.fails = lambda texts: cause if any("poison" in text for text in texts) else None
    async with desk(held, batch_size=8) as d:
        await d.comes("busy", 1)
        await held.began(1)
        for task in ("good", "poison", "better"):
            await d.comes(task, 2)
        held.let_go(5)
    assert d.got == {"busy": [0.0], "good": [0.0, 1.0], "better": [0.0, 1.0]}
    assert d.errors == {"poison": cause}
    assert [len(call) for call in held.calls] == [1, 6, 2, 2, 2]


async def test_what_is_left_of_a_task_that_failed_is_not_sent_and_the_line_goes_on(mock_clock: MockClock) -> None:
    held = Held()
    held.fails = lambda texts: EmbeddingUnavailable("away") if "large-0" in texts else None
    async with desk(held) as d:
        await d.comes("large", 100)
        await held.began(1)
        held.let_go(1)
        await trio.to_thread.run_sync(wait_until, lambda: "large" in d.errors)
        await d.comes("next", 1)
        held.let_go(1)
    assert [len(call) for call in held.calls] == [4, 1]
    assert d.got == {"next": [0.0]}


async def test_the_same_text_is_sent_once(mock_clock: MockClock) -> None:
    held = Held(open_=True)
    async with desk(held) as d:
        assert (await d.line.embed("t", ["a-1", "a-2", "a-1"]))[:, 0].tolist() == [1.0, 2.0, 1.0]
    assert held.calls == [["a-1", "a-2"]]


def cache_in(folder: Path) -> EmbeddingCache:
    return EmbeddingCache(folder / "embeddings.db", 1 << 20, Model("http://e/v1", "m", 0))


async def test_what_the_cache_knows_is_not_sent_and_each_call_is_kept(mock_clock: MockClock, tmp_path: Path) -> None:
    held, cache = Held(), cache_in(tmp_path)
    held.fails = lambda texts: EmbeddingUnavailable("away") if "a-4" in texts and len(held.calls) == 2 else None
    async with desk(held, cache=cache) as d:
        await d.comes("a", 6)
        held.let_go(2)
        await trio.to_thread.run_sync(wait_until, lambda: "a" in d.errors)
        held.let_go(2)
        found = await d.line.embed("t", [f"a-{n}" for n in range(6)])
        assert held.calls[2:] == [["a-4", "a-5"]], "the first call is not repeated"
        await d.line.embed("u", ["a-0"])
        assert held.calls[3:] == [["a-0"]], "another tenant's is not known"
        assert d.line.cache_counts == (4, 9)
    assert found.shape == (6, 2)
    assert np.allclose(np.linalg.norm(found[:4], axis=1), 1)
    cache.close()


async def test_vectors_of_another_dimension_in_the_cache_are_asked_for_anew(
    mock_clock: MockClock, tmp_path: Path
) -> None:
    held, cache = Held(open_=True), cache_in(tmp_path)
    cache.put("t", {"a-0": np.array([0.6, 0.0, 0.8], np.float32)})
    async with desk(held, cache=cache) as d:
        found = await d.line.embed("t", ["a-0", "a-1"])
    assert held.calls == [["a-1"], ["a-0"]]
    assert found.tolist() == [[0.0, 1.0], [1.0, 1.0]]
    cache.close()


def test_a_line_that_takes_nothing_is_refused() -> None:
    for sizes in ((0, 1), (1, 0)):
        with pytest.raises(ValueError):
            LineConfig(*sizes)
