"""A server that a task needs is away for long: the task waits, uses no attempt, and its document ends DONE."""

from __future__ import annotations

import pytest

from api.db.database import Rows
from api.db.models import Task
from common.errors import IndexUnavailable
from common.settings import TaskSettings
from common.task_state import DocumentRun, TaskState
from rag.svr.retry import decide
from tests.world import World

TEN_MINUTES_MS = 600_000


@pytest.fixture
def world(rows: Rows) -> World:
    return World(rows)


def let_pass(world: World, doc_id: str, ms: int) -> None:
    """Put the document's tasks back in time, as if so much of it had passed."""
    world.rows.execute(
        "UPDATE task SET run_after = run_after - ?, waiting_since = waiting_since - ? WHERE doc_id = ? AND state = 0",
        (ms, ms, doc_id),
    )


def test_ten_minutes_of_refusals_end_done(world: World) -> None:
    doc_id, (task_id, *others) = world.started()
    for other in others:
        world.finish(world.claim(other)[0])
    settings, passed_ms, refusals = TaskSettings(), 0, 0
    refused = IndexUnavailable("the index answered 429")
    while passed_ms < TEN_MINUTES_MS:
        (task,) = world.claim(task_id)
        ending = decide(task, refused, settings, 0.5)
        assert ending is not None
        before_ms = world.rows.clock()
        assert world.tasks.apply([ending]) == [TaskState.PENDING]
        refusals += 1
        assert world.claim(task_id) == [], "it is not its time yet"
        wait_ms = Task.get_by_id(task_id).run_after - before_ms
        assert 1000 <= wait_ms <= settings.backoff_max_s * 1000
        let_pass(world, doc_id, wait_ms)
        passed_ms += wait_ms
    assert 10 <= refusals <= 60, "neither a storm of tries nor one that sleeps through the end"
    waiting = Task.get_by_id(task_id)
    assert (waiting.attempt, waiting.losses) == (0, 0)
    assert "429" in waiting.error_message
    (task,) = world.claim(task_id)
    assert world.finish(task) is TaskState.DONE
    assert world.flip(doc_id) is TaskState.DONE
    assert world.doc(doc_id).run == DocumentRun.DONE
    assert Task.get_by_id(task_id).error_message == ""


def test_patience_ends(world: World) -> None:
    doc_id, (task_id, *_) = world.started()
    settings, refused = TaskSettings(), IndexUnavailable("the index answered 429")
    for expected in (TaskState.PENDING, TaskState.FAIL):
        (task,) = world.claim(task_id)
        ending = decide(task, refused, settings, 0.5)
        assert ending is not None
        assert world.tasks.apply([ending]) == [expected]
        let_pass(world, doc_id, int(settings.outage_patience_s * 1000) + 1000)
    failed = Task.get_by_id(task_id)
    assert failed.state == TaskState.FAIL
    assert "gave up after waiting" in failed.error_message
