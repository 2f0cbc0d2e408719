"""The watch over real rows and sockets: followers are told by threads that start with the first and outlive errors."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from api.db.database import Rows
from api.db.services.job_changes import JobChanges
from api.db.services.job_views import JobView
from api.live.framing import Ending
from api.live.sse import SseFraming
from api.live.watch import Watch
from common.errors import RowsUnavailable
from common.settings import TaskSettings
from tests.waiting import PATIENCE_S, wait_until
from tests.world import World


class Changes(JobChanges):
    """Of real rows, with failures on demand; counts the looks."""

    failure: Exception | None = None
    looks = 0

    def __init__(self, rows: Rows, settings: TaskSettings) -> None:
        super().__init__(rows, settings)
        self.is_at_rest = threading.Event()

    def let_go(self) -> None:
        super().let_go()
        self.is_at_rest.set()

    def states(self, doc_ids: Sequence[str]) -> dict[str, JobView]:
        self.looks += 1
        if self.failure is not None:
            raise self.failure
        return super().states(doc_ids)


@pytest.fixture
def world(sqlite_rows: Rows) -> World:
    return World(sqlite_rows)


@pytest.fixture
def changes(sqlite_rows: Rows) -> Changes:
    return Changes(sqlite_rows, TaskSettings())


@pytest.fixture
def watch(changes: Changes) -> Iterator[Watch]:
    opened = Watch(changes, lambda v: {"job_id": v.id, "status": str(v.status), "is_final": v.is_final, "eta_s": None})
    yield opened
    opened.close()


@pytest.fixture
def ends() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def follow(watch: Watch, ends: ExitStack, job_id: str) -> Iterator[str]:
    """The lines that a follower reads."""
    near, far = socket.socketpair()
    near.setblocking(False)
    far.settimeout(PATIENCE_S)
    ends.enter_context(far)
    watch.follow_job(near, b"", SseFraming(), job_id)
    return (line.decode().strip() for line in ends.enter_context(far.makefile("rb")))


def next_state(lines: Iterator[str]) -> Any:
    return json.loads(next(line for line in lines if line.startswith("data: ")).removeprefix("data: "))


def test_a_job_is_followed_until_it_ends(world: World, watch: Watch, ends: ExitStack) -> None:
    doc_id, (task_id,) = world.started(1)
    lines = follow(watch, ends, doc_id)
    assert next_state(lines)["status"] == "queued"
    (task,) = world.claim(task_id)
    assert next_state(lines)["status"] == "running"
    world.finish(task)
    world.flip(doc_id)
    assert next_state(lines)["status"] == "done"
    assert [line for line in lines if line] == [": the job has ended"]


def test_the_watch_rests_while_nobody_follows(world: World, changes: Changes, watch: Watch, ends: ExitStack) -> None:
    assert not any(thread.name.startswith("live-") for thread in threading.enumerate())
    doc_id, _ = world.started(1)
    assert next_state(follow(watch, ends, doc_id))["status"] == "queued"
    assert not changes.is_at_rest.is_set()
    ends.close()
    assert changes.is_at_rest.wait(PATIENCE_S)
    assert next_state(follow(watch, ends, doc_id))["status"] == "queued"  # and wakes up


def test_an_outage_is_waited_for(world: World, changes: Changes, watch: Watch, ends: ExitStack) -> None:
    doc_id, _ = world.started(1)
    changes.failure = RowsUnavailable("the database does not answer")
    lines = follow(watch, ends, doc_id)
    wait_until(lambda: changes.looks >= 2, what="looks that fail")
    changes.failure = None
    assert next_state(lines)["status"] == "queued"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_unforeseen_error_ends_followers_and_new_ones_are_served(
    world: World, changes: Changes, watch: Watch, ends: ExitStack
) -> None:
    doc_id, _ = world.started(1)
    changes.failure = ZeroDivisionError()
    assert [line for line in follow(watch, ends, doc_id) if line] == ["retry: 2000", f": {Ending.UNAVAILABLE.reason}"]
    changes.failure = None
    assert next_state(follow(watch, ends, doc_id))["status"] == "queued"


def test_after_a_stop_nobody_is_taken(world: World, watch: Watch, ends: ExitStack) -> None:
    doc_id, _ = world.started(1)
    lines = follow(watch, ends, doc_id)
    assert next_state(lines)["status"] == "queued"
    watch.close()
    assert [line for line in lines if line] == ["retry: 1000", f": {Ending.STOPPING.reason}"]
    assert list(follow(watch, ends, doc_id)) == []
