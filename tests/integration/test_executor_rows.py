"""Executors as rows: who runs, how others ended and what became of their tasks; orders; counts by the minute."""

from __future__ import annotations

import pytest

from api.db.database import Rows
from api.db.models import Executor, TaskTally
from api.db.services.executor_fates import ExecutorFates, Fate
from api.db.services.executor_orders import ExecutorOrders, Wanted
from api.db.services.executor_registry import Ended, ExecutorRegistry
from api.db.services.tally_service import KEPT_MINUTES, Tally, TallyService
from api.db.services.task_requests import Fail, FinishRange, GiveBack, Written
from common.errors import InvalidInput, NotFound
from rag.svr.dead_executors import DeadExecutors
from rag.svr.registration import Me, Registration, Steering
from tests.world import World


@pytest.fixture
def world(rows: Rows) -> World:
    return World(rows)


def test_a_dead_executor_is_kept_with_what_became_of_its_tasks(world: World) -> None:
    registry = ExecutorRegistry(world.rows)
    registry.register("e1:a", "e1", {"pid": 4})
    registry.register("e2:a", "e2", {"pid": 5})
    doc_id, _ = world.started(ranges=3)
    world.claim_all(doc_id, owner="e1:a")
    fates = ExecutorFates(world.rows)
    assert [lost.fate for lost in fates.of(["e1:a"])["e1:a"]] == [Fate.HELD] * 3
    dead = DeadExecutors(world.rows, world.tasks)
    dead.add("e1:a", "was killed by SIGKILL")
    dead.hand_back()
    assert [row.name for row in registry.running()] == ["e2"]
    (ended,) = registry.ended()
    assert (ended.ended, ended.reason, ended.beat) == (Ended.DEAD, "was killed by SIGKILL", {"pid": 4})
    assert [lost.fate for lost in fates.of(["e1:a"])["e1:a"]] == [Fate.WAITING] * 3
    done, failed, running = world.claim_all(doc_id, owner="e2:a")
    world.finish(done)
    world.tasks.apply([Fail(failed.held, "parser_error", "no")])
    told = {lost.task_id: lost for lost in fates.of(["e1:a"])["e1:a"]}
    assert (told[done.id].fate, told[done.id].by) == (Fate.DONE, "e2")
    assert (told[failed.id].fate, told[failed.id].error_code) == (Fate.FAILED, "parser_error")
    assert (told[running.id].fate, told[running.id].by, told[running.id].document_id) == (Fate.RUNNING, "e2", doc_id)
    assert TallyService(world.rows).total().lost == 3


def test_tasks_that_are_gone_are_told_so(world: World) -> None:
    doc_id, _ = world.started(ranges=1)
    (task,) = world.claim_all(doc_id, owner="e1:a")
    world.tasks.hand_back("e1:a", "its process died")
    world.rows.execute("DELETE FROM task WHERE id = ?", (task.id,))
    assert [lost.fate for lost in ExecutorFates(world.rows).of(["e1:a"])["e1:a"]] == [Fate.GONE]


def test_one_that_left_in_order_is_not_called_dead(rows: Rows) -> None:
    registry = ExecutorRegistry(rows)
    registry.register("e1:a", "e1", {})
    registry.leave("e1:a", "an operator asked for a restart")
    registry.mark_dead("e1:a", "ended with exit code 0")
    assert [(row.ended, row.reason) for row in registry.ended()] == [(Ended.LEFT, "an operator asked for a restart")]


def test_a_new_boot_ends_the_one_before_it(rows: Rows) -> None:
    registry = ExecutorRegistry(rows)
    registry.register("e1:a", "e1", {})
    registry.register("e1:b", "e1", {})
    assert [row.owner for row in registry.running()] == ["e1:b"]
    assert [(row.owner, row.ended) for row in registry.ended()] == [("e1:a", Ended.DEAD)]


def test_silence_is_noticed_and_taken_back_when_it_is_heard_again(rows: Rows) -> None:
    registry = ExecutorRegistry(rows)
    registry.register("e1:a", "e1", {})
    assert registry.mark_silent(60_000) == 0
    rows.execute("UPDATE executor SET seen_ms = seen_ms - 61000")
    assert registry.mark_silent(60_000) == 1
    assert [row.ended for row in registry.ended()] == [Ended.SILENT]
    registry.refresh("e1:a", {"done": 3}, (0, 0))
    assert [(row.ended, row.beat) for row in registry.running()] == [(Ended.NOT, {"done": 3})]


def test_what_ended_long_ago_is_forgotten(world: World) -> None:
    registry = ExecutorRegistry(world.rows)
    registry.register("e1:a", "e1", {})
    doc_id, _ = world.started(ranges=1)
    world.claim_all(doc_id, owner="e1:a")
    world.tasks.hand_back("e1:a", "its process died")
    registry.mark_dead("e1:a", "why")
    registry.forget(60_000)
    assert len(registry.ended()) == 1
    world.rows.execute("UPDATE executor SET end_ms = end_ms - 121000")
    world.rows.execute("UPDATE lost_task SET at_ms = at_ms - 121000")
    registry.forget(60_000)
    assert registry.ended() == []
    assert ExecutorFates(world.rows).of(["e1:a"]) == {"e1:a": []}


def test_a_drain_holds_for_every_boot_and_a_restart_for_one(rows: Rows) -> None:
    registry, orders = ExecutorRegistry(rows), ExecutorOrders(rows)
    with pytest.raises(NotFound):
        orders.drain("e1", "admin@x")
    registry.register("e1:a", "e1", {})
    orders.drain("e1", "admin@x")
    assert (orders.wanted("e1", "e1:a"), orders.wanted("e1", "e1:b")) == (Wanted.DRAIN, Wanted.DRAIN)
    assert orders.wanted("e2", "e2:a") is Wanted.RUN
    assert orders.all()["e1"].by_user == "admin@x"
    orders.restart("e1", "admin@x")
    assert (orders.wanted("e1", "e1:a"), orders.wanted("e1", "e1:b")) == (Wanted.RESTART, Wanted.RUN)
    orders.resume("e1")
    assert orders.wanted("e1", "e1:a") is Wanted.RUN
    with pytest.raises(InvalidInput):
        orders.resume("e1")
    orders.drain("e1", "admin@x")
    orders.clear(["e1", "e2"])
    assert orders.all() == {}


class _Told:
    """An executor that writes down what it is told."""

    def __init__(self) -> None:
        self.held: list[bool] = []
        self.left = 0
        self.quiet = False
        self.hits = 0

    def leave(self) -> None:
        self.left += 1

    @property
    def steering(self) -> Steering:
        return Steering(
            lambda: {"pid": 7, "embedding_cache_hits": self.hits, "embedding_cache_misses": 2 * self.hits},
            self.held.append,
            lambda: self.quiet,
            self.leave,
            lambda: "",
        )


def test_an_executor_obeys_and_leaves_when_it_is_quiet(rows: Rows) -> None:
    told, orders = _Told(), ExecutorOrders(rows)
    registration = Registration(Me("e1", "e1:a"), ExecutorRegistry(rows), orders, told.steering)
    registration.run_once()
    assert told.held == [False]
    orders.drain("e1", "admin")
    registration.run_once()
    registration.run_once()
    assert told.held == [False, True]
    orders.resume("e1")
    registration.run_once()
    orders.restart("e1", "admin")
    registration.run_once()
    assert (told.held, told.left) == ([False, True, False, True], 0)
    told.quiet = True
    registration.run_once()
    registration.run_once()
    assert told.left == 1
    fresh = _Told()
    Registration(Me("e1", "e1:b"), ExecutorRegistry(rows), orders, fresh.steering).run_once()
    assert fresh.held == [False]


def test_what_the_cache_was_asked_is_counted_once(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.svr.registration._WRITE_S", 0.0)
    told = _Told()
    registration = Registration(Me("e1", "e1:a"), ExecutorRegistry(rows), ExecutorOrders(rows), told.steering)
    for hits in (3, 3, 5):
        told.hits = hits
        registration.run_once()
    total = TallyService(rows).total()
    assert (total.cache_hits, total.cache_misses) == (5, 10)


def test_every_end_is_counted_in_its_minute(world: World) -> None:
    doc_id, _ = world.started(ranges=5)
    read, copied, failed, back, _ = world.claim_all(doc_id)
    world.tasks.apply(
        [
            FinishRange(read.held, Written(3, 30, 7, units=12, pages=12)),
            FinishRange(copied.held, Written(2, 20, 8, reused=True, units=12, pages=12)),
            Fail(failed.held, "parser_error", "no"),
            GiveBack(back.held, "retry", 1000, "timeout", "too slow"),
        ]
    )
    world.parsing.stop([doc_id])
    total = TallyService(world.rows).total()
    # The prepare task is done as well; the one that went back and the one at work are cancelled.
    assert total == Tally(3, 1, 1, 0, 2, reused=1, pages=12, reused_pages=12, chunks=5, tokens=50)
    history, _ = TallyService(world.rows).by_minute(30)
    assert len(history) == 30
    assert sum(tally.done for tally in history[-2:]) == 3


def test_folding_changes_no_sum(world: World) -> None:
    tallies = TallyService(world.rows)
    now = tallies.now_minute()
    minutes = [now, now, now, now - 1, now - KEPT_MINUTES - 5, now - KEPT_MINUTES - 6, now - KEPT_MINUTES - 6, 0]
    for number, minute in enumerate(minutes, 1):
        TaskTally.create(minute=minute, done=number, pages=10 * number)
    before, recent = tallies.total(), tallies.by_minute(60)
    assert tallies.fold() == len(minutes) - 3
    assert (tallies.total(), tallies.by_minute(60)) == (before, recent)
    assert sorted(tally.minute for tally in TaskTally.select()) == [0, now - 1, now]
    assert tallies.fold() == 0
    assert Executor.select().count() == 0
