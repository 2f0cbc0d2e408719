"""The interleavings of the engine one by one, each made to happen: a thread stops at a named point until the other one
is where the test wants it, and a commit goes through though its reply never comes. On SQLite and on MariaDB.

SQLite's writers queue up on one lock, MariaDB's on rows: where the winner depends on that, a test asserts that there is
exactly one."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import peewee
import pymysql
import pytest

from api.db.database import Rows
from api.db.models import Document, Knowledgebase, RangeResult, StaleChunks, Task, TaskEvent
from api.db.services import task_control, task_sql
from api.db.services.publish_service import PublishService
from api.db.services.role_service import RoleService
from api.db.services.stale_service import StaleService
from api.db.services.task_requests import (
    ClaimedTask,
    Fail,
    FinishDocument,
    FinishPrepare,
    FinishRange,
    GiveBack,
    NewRange,
    Renew,
    Written,
)
from api.db.services.visibility import searched_documents
from common.settings import IndexSettings, RelaySettings
from common.task_state import DocumentRun, TaskState, TaskType
from rag.svr.relay import Relay, RelayConfig
from rag.utils.doc_index import ChunkRecord, Scope
from rag.utils.embedded_index import EmbeddedIndex
from rag.utils.folder_store import FolderStore
from rag.utils.redis_conn import Message, Queue
from tests.servers.valkey import ValkeyServer
from tests.sweeping import sweeper_of
from tests.waiting import PATIENCE_S, wait_until
from tests.world import PROFILE, World

TWO_RANGES = (NewRange(0, 12, "digest0"), NewRange(12, 24, "digest1"))
A = TypeVar("A")
B = TypeVar("B")


class PausePoint:
    """A method of an object or a function of a module at which the first thread that comes stops until it is released,
    before its body or `after` it. Others pass."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: object, name: str, *, after: bool = False) -> None:
        self._act = getattr(owner, name)
        self._after = after
        self._taken = threading.Lock()
        self._reached = threading.Event()
        self._released = threading.Event()
        monkeypatch.setattr(owner, name, self._call)

    def wait_reached(self) -> None:
        assert self._reached.wait(PATIENCE_S), "nobody came to the point"

    def release(self) -> None:
        self._released.set()

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        stops = self._taken.acquire(blocking=False)
        if stops and not self._after:
            self._stop()
        result = self._act(*args, **kwargs)
        if stops and self._after:
            self._stop()
        return result

    def _stop(self) -> None:
        self._reached.set()
        assert self._released.wait(PATIENCE_S), "nobody released the point"


class Breakage:
    """A method that, the first time, does its work and then fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: object, name: str, fail: Callable[[], None]) -> None:
        self._act = getattr(owner, name)
        self._fail = fail
        self.happened = False
        monkeypatch.setattr(owner, name, self._call)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        result = self._act(*args, **kwargs)
        if not self.happened:
            self.happened = True
            self._fail()
        return result


class Stage:
    """Threads, each with a connection of its own, and the ways to make them meet."""

    def __init__(self, rows: Rows, monkeypatch: pytest.MonkeyPatch, pool: ThreadPoolExecutor) -> None:
        self.rows = rows
        self._monkeypatch = monkeypatch
        self._pool = pool
        self._at_file_lock: set[int] = set()
        if rows.is_sqlite:
            self._watch_file_lock()

    def start(self, act: Callable[[], A]) -> Future[A]:
        def run() -> A:
            try:
                return act()
            finally:
                self._let_go()

        return self._pool.submit(run)

    def pause(self, owner: object, name: str, *, after: bool = False) -> PausePoint:
        return PausePoint(self._monkeypatch, owner, name, after=after)

    def meet(self, first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
        """`first` has done all but commit when `second` comes; it commits when `second` waits for it, or has ended
        without waiting."""
        return self.overlap(first, second, self.pause(self.rows.db, "commit"))

    def overlap(self, first: Callable[[], A], second: Callable[[], B], point: PausePoint) -> tuple[A, B]:
        """`first` stops at the point, and goes on when `second` waits for it or has ended."""
        one = self.start(first)
        point.wait_reached()
        two = self.start(second)
        wait_until(lambda: two.done() or self._somebody_waits(), what="a second that waits or has ended")
        point.release()
        return one.result(PATIENCE_S), two.result(PATIENCE_S)

    @contextmanager
    def reply_lost(self) -> Iterator[None]:
        """The next write transaction commits, and its reply is lost."""
        fail = self._fail_after_commit if self.rows.is_sqlite else self._break_connection
        broken = Breakage(self._monkeypatch, self.rows.db, "commit", fail)
        yield
        assert broken.happened

    def rolled_back(self, owner: object, name: str) -> Breakage:
        """The first transaction that comes there is rolled back, by an error that passes."""
        return Breakage(self._monkeypatch, owner, name, fail_passing if self.rows.is_sqlite else fail_deadlocked)

    def _let_go(self) -> None:
        self.rows.close_connection()
        lock_fd = vars(self.rows._local).pop("lock_fd", None)
        if lock_fd is not None:
            os.close(lock_fd)

    def _fail_after_commit(self) -> None:
        """No reply of SQLite's is lost on its way: an error when all is done stands for it."""
        self.rows.execute("BEGIN")  # for the rollback that follows
        fail_passing()

    def _break_connection(self) -> None:
        ((number,),) = self.rows.rows("SELECT CONNECTION_ID()")
        killer = threading.Thread(target=self._kill, args=(number,))
        killer.start()
        killer.join()
        wait_until(lambda: self.rows.rows("SELECT 1") == [])  # raises as soon as the server has hung up

    def _kill(self, number: int) -> None:
        self.rows.execute(f"KILL CONNECTION {number}")
        self.rows.db.close()

    def _somebody_waits(self) -> bool:
        if self.rows.is_sqlite:
            return bool(self._at_file_lock)
        ((_, count),) = self.rows.rows("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
        return int(count) > 0

    def _watch_file_lock(self) -> None:
        lock = fcntl.flock

        def flock(fd: int, operation: int) -> None:
            self._at_file_lock.add(threading.get_ident())
            try:
                lock(fd, operation)
            finally:
                self._at_file_lock.discard(threading.get_ident())

        self._monkeypatch.setattr(fcntl, "flock", flock)


def fail_passing() -> None:
    raise peewee.OperationalError(sqlite3.OperationalError("database is locked"), "database is locked")


def fail_deadlocked() -> None:
    raise peewee.OperationalError(pymysql.err.OperationalError(1213, "Deadlock found"), 1213, "Deadlock found")


@pytest.fixture
def world(rows: Rows) -> World:
    return World(rows)


@pytest.fixture
def stage(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with ThreadPoolExecutor(4) as pool:
        yield Stage(rows, monkeypatch, pool)


def state(task_id: str) -> int:
    return int(Task.get_by_id(task_id).state)


def timeline(task_id: str) -> list[tuple[str, int]]:
    lines = TaskEvent.select().where(TaskEvent.task_id == task_id).order_by(TaskEvent.id)
    return [(line.kind, line.claim_no) for line in lines]


def finish_tasks(world: World, doc_id: str) -> list[int]:
    """The states of the document's finish tasks."""
    return [t.state for t in world.tasks_of(doc_id) if t.task_type == TaskType.FINISH]


def prepared(world: World) -> tuple[str, ClaimedTask]:
    """A document whose prepare task is at work."""
    doc_id = world.document()
    world.parsing.start([doc_id])
    (prepare,) = world.claim_all(doc_id)
    return doc_id, prepare


def read_one(world: World, chunks: int = 3) -> str:
    """A document of one range, which is read: its finish task waits."""
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    assert world.finish(task, chunks=chunks) is TaskState.DONE
    return doc_id


def failed(world: World) -> tuple[str, str]:
    """A document that failed, and the range that is the cause."""
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    world.tasks.apply([Fail(task.held, "x", "bad")])
    world.flip(doc_id)
    return doc_id, task.id


def done(world: World) -> str:
    doc_id = read_one(world)
    world.flip(doc_id)
    return doc_id


# Replies that are lost


def test_a_finish_whose_reply_is_lost_counts_once(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(2)
    first, last = world.claim(*ranges)
    with stage.reply_lost():
        assert world.finish(first, chunks=3) is TaskState.DONE
    doc = world.doc(doc_id)
    assert (doc.open_tasks, doc.done_tasks, doc.run_chunks, doc.run_tokens) == (1, 1, 3, 30)
    with stage.reply_lost():
        assert world.finish(last, chunks=5) is TaskState.DONE
    assert finish_tasks(world, doc_id) == [TaskState.PENDING]
    assert (world.doc(doc_id).done_tasks, world.doc(doc_id).run_chunks) == (2, 8)
    assert timeline(last.id) == [("claim", 1), ("done", 1)]
    assert RangeResult.select().where(RangeResult.doc_id == doc_id).count() == 2


def test_a_flip_whose_reply_is_lost_counts_once(world: World, stage: Stage) -> None:
    doc_id = read_one(world, chunks=4)
    (finish,) = world.claim_all(doc_id)
    with stage.reply_lost():
        assert world.tasks.apply([FinishDocument(finish.held, 7)]) == [TaskState.DONE]
    doc = world.doc(doc_id)
    assert (doc.run, doc.active_generation, doc.chunk_count) == (DocumentRun.DONE, 1, 4)
    assert Knowledgebase.get_by_id(world.kb_id).chunk_count == 4


def test_a_flip_whose_reply_is_lost_and_whose_document_is_parsed_anew_meanwhile_is_done(
    world: World, stage: Stage
) -> None:
    doc_id = read_one(world, chunks=4)
    (finish,) = world.claim_all(doc_id)
    between = stage.pause(world.rows, "close_connection")
    with stage.reply_lost():
        flip = stage.start(lambda: world.tasks.apply([FinishDocument(finish.held, 7)]))
        between.wait_reached()
        assert world.parsing.start([doc_id]) == [doc_id]
        between.release()
        assert flip.result(PATIENCE_S) == [TaskState.DONE]
    doc = world.doc(doc_id)
    assert (doc.run, doc.generation, doc.active_generation) == (DocumentRun.RUNNING, 2, 1)
    assert Knowledgebase.get_by_id(world.kb_id).chunk_count == 4


def test_a_finish_whose_reply_is_lost_and_whose_document_is_stopped_meanwhile_is_done(
    world: World, stage: Stage
) -> None:
    doc_id, ranges = world.started(2)
    first, _ = world.claim(*ranges)
    between = stage.pause(world.rows, "close_connection")
    with stage.reply_lost():
        finish = stage.start(lambda: world.finish(first))
        between.wait_reached()
        assert world.parsing.stop([doc_id]) == [doc_id]
        between.release()
        assert finish.result(PATIENCE_S) is TaskState.DONE
    assert [state(t) for t in ranges] == [TaskState.DONE, TaskState.CANCEL]
    assert (world.doc(doc_id).done_tasks, world.doc(doc_id).run) == (1, DocumentRun.CANCEL)


def test_a_prepare_whose_reply_is_lost_inserts_its_ranges_once(world: World, stage: Stage) -> None:
    doc_id, prepare = prepared(world)
    rings = len(world.rings)
    with stage.reply_lost():
        assert world.tasks.apply([FinishPrepare(prepare.held, PROFILE, TWO_RANGES)]) == [TaskState.DONE]
    assert len(world.pending(doc_id)) == 2
    assert (world.doc(doc_id).open_tasks, world.doc(doc_id).total_tasks) == (2, 2)
    assert len(world.rings) == rings + 1


def test_a_claim_whose_reply_is_lost_is_held_once(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(2)
    with stage.reply_lost():
        claimed = world.claim(*ranges, owner="e1:a")
    assert [(t.id, t.claim_no) for t in claimed] == [(ranges[0], 1), (ranges[1], 1)]
    for task in claimed:
        row = Task.get_by_id(task.id)
        assert (row.state, row.claim_no, row.claim_token) == (TaskState.RUNNING, 1, task.token)
        assert (row.owner, row.losses, row.attempt) == ("e1:a", 0, 0)
    assert world.claim(*ranges, owner="e2:b") == []
    assert StaleChunks.select().count() == 0
    assert [world.finish(task) for task in claimed] == [TaskState.DONE] * 2
    assert finish_tasks(world, doc_id) == [TaskState.PENDING]


def test_a_claim_whose_reply_is_lost_has_one_line_in_the_timeline(world: World, stage: Stage) -> None:
    _, ranges = world.started(1)
    with stage.reply_lost():
        world.claim(*ranges)
    assert timeline(ranges[0]) == [("claim", 1)]


def test_a_claim_whose_reply_is_lost_and_whose_lease_ends_meanwhile_is_not_held(world: World, stage: Stage) -> None:
    _, ranges = world.started(1)
    between = stage.pause(world.rows, "close_connection")
    with stage.reply_lost():
        claim = stage.start(lambda: world.claim(*ranges, owner="e1:a"))
        between.wait_reached()
        world.rows.execute("UPDATE task SET lease_until = 1 WHERE id = ?", ranges)
        assert world.tasks.reap() == 1
        (heir,) = world.claim(*ranges, owner="e2:b")
        between.release()
        assert claim.result(PATIENCE_S) == []
    assert heir.claim_no == 2
    assert world.finish(heir) is TaskState.DONE


def test_a_claim_whose_reply_is_lost_and_that_is_cancelled_meanwhile_is_not_held(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(1)
    between = stage.pause(world.rows, "close_connection")
    with stage.reply_lost():
        claim = stage.start(lambda: world.claim(*ranges))
        between.wait_reached()
        assert world.parsing.stop([doc_id]) == [doc_id]
        between.release()
        assert claim.result(PATIENCE_S) == []
    assert state(ranges[0]) == TaskState.CANCEL


def test_a_parse_whose_reply_is_lost_begins_once(world: World, stage: Stage) -> None:
    doc_id = world.document()
    with stage.reply_lost():
        assert world.parsing.start([doc_id]) == [doc_id]
    doc = world.doc(doc_id)
    assert (doc.generation, doc.run, doc.open_tasks) == (1, DocumentRun.RUNNING, 1)
    assert [t.task_type for t in world.tasks_of(doc_id)] == [TaskType.PREPARE]
    assert world.rings == ["ring"]


def test_a_stop_whose_reply_is_lost_is_answered_as_one(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(2)
    (task,) = world.claim(ranges[0])
    with stage.reply_lost():
        assert world.parsing.stop([doc_id]) == [doc_id]
    assert [state(task_id) for task_id in ranges] == [TaskState.CANCEL] * 2
    assert (world.doc(doc_id).run, world.doc(doc_id).open_tasks) == (DocumentRun.CANCEL, 0)
    assert timeline(task.id) == [("claim", 1), ("cancel", 1)]
    assert world.finish(task) is None
    assert world.parsing.stop([doc_id]) == []


def test_executors_hear_of_a_stop_whose_reply_is_lost(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(2)
    (task,) = world.claim(ranges[0])
    with stage.reply_lost():
        world.parsing.stop([doc_id])
    assert world.cancelled == [task.id]


def test_a_give_back_whose_reply_is_lost_counts_once(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    with stage.reply_lost():
        world.tasks.apply([GiveBack(task.held, "retry", 0, "x", "again")])
    row = Task.get_by_id(task.id)
    assert (row.state, row.attempt, row.claim_no) == (TaskState.PENDING, 1, 1)
    assert timeline(task.id) == [("claim", 1), ("retry", 1)]
    assert world.doc(doc_id).open_tasks == 1


def test_a_failure_whose_reply_is_lost_counts_once(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(2)
    (task,) = world.claim(ranges[0])
    with stage.reply_lost():
        world.tasks.apply([Fail(task.held, "x", "bad")])
    assert state(task.id) == TaskState.FAIL
    assert (world.doc(doc_id).failed_tasks, world.doc(doc_id).open_tasks) == (1, 1)


def test_a_hand_back_whose_reply_is_lost_counts_one_loss(world: World, stage: Stage) -> None:
    _, ranges = world.started(1)
    world.claim(*ranges, owner="e1:dead")
    with stage.reply_lost():
        world.tasks.hand_back("e1:dead", "its process died")
    row = Task.get_by_id(ranges[0])
    assert (row.state, row.losses, row.published_at) == (TaskState.PENDING, 1, 0)


def test_a_pause_and_a_resume_whose_replies_are_lost_are_answered_as_one(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(1)
    with stage.reply_lost():
        paused = world.control.pause([doc_id])
    assert state(ranges[0]) == TaskState.PAUSED
    with stage.reply_lost():
        resumed = world.control.resume([doc_id])
    assert state(ranges[0]) == TaskState.PENDING
    assert (paused, resumed) == ([doc_id], [doc_id])


def test_a_delete_whose_reply_is_lost_is_answered_as_one(world: World, stage: Stage) -> None:
    doc_id = done(world)
    with stage.reply_lost():
        deleted = world.control.delete([doc_id])
    assert world.doc(doc_id).deleted_ms > 0
    assert Knowledgebase.get_by_id(world.kb_id).chunk_count == 0
    assert deleted == [doc_id]


def test_a_replay_whose_reply_is_lost_is_answered_as_one(world: World, stage: Stage) -> None:
    doc_id, task_id = failed(world)
    with stage.reply_lost():
        replayed = world.control.replay([task_id])
    assert (state(task_id), world.doc(doc_id).open_tasks) == (TaskState.PENDING, 1)
    assert replayed == [task_id]


# Transactions that are rolled back and run again


def test_a_stop_that_is_rolled_back_and_then_comes_too_late_is_none(world: World, stage: Stage) -> None:
    doc_id = read_one(world)
    stage.rolled_back(task_control, "cancel_open_tasks")
    between = stage.pause(world.rows, "close_connection")
    stop = stage.start(lambda: world.parsing.stop([doc_id]))
    between.wait_reached()
    assert world.flip(doc_id) is TaskState.DONE
    between.release()
    assert stop.result(PATIENCE_S) == []
    assert world.doc(doc_id).run == DocumentRun.DONE


def test_a_stop_that_is_rolled_back_and_then_done_by_another_is_the_others(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    stage.rolled_back(task_control, "cancel_open_tasks")
    between = stage.pause(world.rows, "close_connection")
    stop = stage.start(lambda: world.parsing.stop([doc_id]))
    between.wait_reached()
    assert world.parsing.stop([doc_id]) == [doc_id]
    between.release()
    assert stop.result(PATIENCE_S) == []
    assert world.cancelled == [task.id]


def test_a_parse_that_is_rolled_back_and_then_begun_by_another_is_the_others(world: World, stage: Stage) -> None:
    doc_id = world.document()
    stage.rolled_back(world.parsing, "_start")
    between = stage.pause(world.rows, "close_connection")
    start = stage.start(lambda: world.parsing.start([doc_id]))
    between.wait_reached()
    assert world.parsing.start([doc_id]) == [doc_id]
    between.release()
    assert start.result(PATIENCE_S) == []
    assert (world.doc(doc_id).generation, len(world.tasks_of(doc_id))) == (1, 1)


def test_a_finish_that_is_rolled_back_is_applied_once(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    broken = stage.rolled_back(task_sql, "add_events")
    assert world.finish(task, chunks=3) is TaskState.DONE
    assert broken.happened
    assert (world.doc(doc_id).done_tasks, world.doc(doc_id).run_chunks) == (1, 3)
    assert finish_tasks(world, doc_id) == [TaskState.PENDING]
    assert timeline(task.id) == [("claim", 1), ("done", 1)]


# Endings of one document at the same time


def test_a_finish_just_before_a_cancel_stands(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(2)
    first, second = world.claim(*ranges)
    met = stage.meet(lambda: world.finish(first), lambda: world.parsing.stop([doc_id]))
    assert met == (TaskState.DONE, [doc_id])
    assert [state(t) for t in ranges] == [TaskState.DONE, TaskState.CANCEL]
    assert world.cancelled == [second.id]
    doc = world.doc(doc_id)
    assert (doc.run, doc.active_generation, doc.open_tasks, doc.done_tasks) == (DocumentRun.CANCEL, 0, 0, 1)
    assert world.finish(second) is None


def test_a_finish_just_after_a_cancel_changes_nothing(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    met = stage.meet(lambda: world.parsing.stop([doc_id]), lambda: world.finish(task))
    assert met == ([doc_id], None)
    assert state(task.id) == TaskState.CANCEL
    doc = world.doc(doc_id)
    assert (doc.run, doc.done_tasks, doc.run_chunks, doc.open_tasks) == (DocumentRun.CANCEL, 0, 0, 0)
    assert finish_tasks(world, doc_id) == []
    assert RangeResult.select().count() == 0


def test_the_last_finish_just_before_a_cancel_leaves_nothing_to_do(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    met = stage.meet(lambda: world.finish(task), lambda: world.parsing.stop([doc_id]))
    assert met == (TaskState.DONE, [doc_id])
    assert finish_tasks(world, doc_id) == [TaskState.CANCEL]
    assert world.claim_all(doc_id) == []
    assert (world.doc(doc_id).run, world.doc(doc_id).active_generation) == (DocumentRun.CANCEL, 0)


def test_a_flip_just_before_a_cancel_stands(world: World, stage: Stage) -> None:
    doc_id = read_one(world, chunks=3)
    (finish,) = world.claim_all(doc_id)
    met = stage.meet(lambda: world.tasks.apply([FinishDocument(finish.held, 7)]), lambda: world.parsing.stop([doc_id]))
    assert met == ([TaskState.DONE], [])
    assert (world.doc(doc_id).run, world.doc(doc_id).active_generation) == (DocumentRun.DONE, 1)
    assert Knowledgebase.get_by_id(world.kb_id).chunk_count == 3


def test_a_flip_just_after_a_cancel_changes_nothing(world: World, stage: Stage) -> None:
    doc_id = read_one(world, chunks=3)
    (finish,) = world.claim_all(doc_id)
    met = stage.meet(lambda: world.parsing.stop([doc_id]), lambda: world.tasks.apply([FinishDocument(finish.held, 7)]))
    assert met == ([doc_id], [None])
    assert (world.doc(doc_id).run, world.doc(doc_id).active_generation) == (DocumentRun.CANCEL, 0)
    assert Knowledgebase.get_by_id(world.kb_id).chunk_count == 0


def test_the_last_two_finishers_insert_one_finish_task(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(2)
    first, second = world.claim(*ranges)
    rings = len(world.rings)
    met = stage.meet(lambda: world.finish(first, chunks=3), lambda: world.finish(second, chunks=5))
    assert met == (TaskState.DONE, TaskState.DONE)
    assert finish_tasks(world, doc_id) == [TaskState.PENDING]
    assert (world.doc(doc_id).done_tasks, world.doc(doc_id).run_chunks) == (2, 8)
    assert len(world.rings) == rings + 1
    assert world.flip(doc_id) is TaskState.DONE


def test_a_finish_and_a_hand_back_of_its_last_sibling_leave_it_open(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(2)
    (living,) = world.claim(ranges[0], owner="e2:b")
    world.claim(ranges[1], owner="e1:dead")
    met = stage.meet(lambda: world.tasks.hand_back("e1:dead", "its process died"), lambda: world.finish(living))
    assert met == (1, TaskState.DONE)
    assert finish_tasks(world, doc_id) == []
    assert (world.doc(doc_id).open_tasks, world.pending(doc_id)) == (1, [ranges[1]])


def test_a_hand_back_that_leaves_a_busy_document_alone_finds_its_task_again(world: World, stage: Stage) -> None:
    _, ranges = world.started(2)
    world.claim(ranges[0], owner="e1:dead")
    (living,) = world.claim(ranges[1], owner="e2:b")
    finished, handed_back = stage.meet(
        lambda: world.finish(living), lambda: world.tasks.hand_back("e1:dead", "its process died")
    )
    assert finished is TaskState.DONE
    assert handed_back + world.tasks.hand_back("e1:dead", "its process died") == 1
    assert (state(ranges[0]), Task.get_by_id(ranges[0]).losses) == (TaskState.PENDING, 1)


def test_a_finish_just_before_its_hand_back_stands(world: World, stage: Stage) -> None:
    _, ranges = world.started(1)
    (task,) = world.claim(*ranges, owner="e1:dead")
    met = stage.meet(lambda: world.finish(task), lambda: world.tasks.hand_back("e1:dead", "its process died"))
    assert met == (TaskState.DONE, 0)
    assert (state(task.id), StaleChunks.select().count()) == (TaskState.DONE, 0)


def test_a_finish_just_after_its_hand_back_changes_nothing(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges, owner="e1:dead")
    met = stage.meet(lambda: world.tasks.hand_back("e1:dead", "its process died"), lambda: world.finish(task))
    assert met == (1, None)
    assert state(task.id) == TaskState.PENDING
    assert StaleService(world.rows).lost_claims([doc_id]) == {doc_id: {(1, 0, 1)}}


def test_a_zombie_and_its_heir_in_one_batch_are_answered_apart(world: World) -> None:
    doc_id, ranges = world.started(1)
    (zombie,) = world.claim(*ranges, owner="e1:a")
    world.tasks.hand_back("e1:a", "its process died")
    (heir,) = world.claim(*ranges, owner="e1:b")
    late, right = FinishRange(zombie.held, Written(9, 90, 9)), FinishRange(heir.held, Written(3, 30, 7))
    assert world.tasks.apply([right, late, right]) == [TaskState.DONE, None, TaskState.DONE]
    assert (world.doc(doc_id).run_chunks, world.doc(doc_id).done_tasks) == (3, 1)


# Starts, stops and deletes at the same time


def test_two_parses_at_once_begin_one_generation(world: World, stage: Stage) -> None:
    doc_id = world.document()
    met = stage.meet(lambda: world.parsing.start([doc_id]), lambda: world.parsing.start([doc_id]))
    assert met == ([doc_id], [])
    assert (world.doc(doc_id).generation, len(world.tasks_of(doc_id))) == (1, 1)


def test_two_stops_at_once_have_one_winner(world: World, stage: Stage) -> None:
    doc_id, _ = world.started(1)
    met = stage.meet(lambda: world.parsing.stop([doc_id]), lambda: world.parsing.stop([doc_id]))
    assert met == ([doc_id], [])


def test_a_parse_just_before_a_delete_ends_with_it(world: World, stage: Stage) -> None:
    doc_id = world.document()
    met = stage.meet(lambda: world.parsing.start([doc_id]), lambda: world.control.delete([doc_id]))
    assert met == ([doc_id], [doc_id])
    assert [t.state for t in world.tasks_of(doc_id)] == [TaskState.CANCEL]
    assert (world.doc(doc_id).run, world.doc(doc_id).active_generation) == (DocumentRun.CANCEL, 0)


def test_a_parse_just_after_a_delete_does_not_begin(world: World, stage: Stage) -> None:
    doc_id = world.document()
    met = stage.meet(lambda: world.control.delete([doc_id]), lambda: world.parsing.start([doc_id]))
    assert met == ([doc_id], [])
    assert world.tasks_of(doc_id) == []


def test_a_finish_of_an_older_generation_changes_nothing_in_the_new_one(world: World) -> None:
    doc_id, prepare = prepared(world)
    world.parsing.stop([doc_id])
    world.parsing.start([doc_id])
    assert world.tasks.apply([FinishPrepare(prepare.held, PROFILE, TWO_RANGES)]) == [None]
    assert world.tasks.apply([FinishPrepare(prepare.held, PROFILE, (), Written(9, 90, 9))]) == [None]
    doc = world.doc(doc_id)
    assert (doc.generation, doc.open_tasks, doc.done_tasks, doc.run_chunks) == (2, 1, 0, 0)
    assert [t.state for t in world.tasks_of(doc_id)] == [TaskState.CANCEL, TaskState.PENDING]


def test_a_replay_that_comes_after_a_new_parse_is_refused(world: World, stage: Stage) -> None:
    doc_id, task_id = failed(world)
    before = stage.pause(world.rows, "_write_once")
    replay = stage.start(lambda: world.control.replay([task_id]))
    before.wait_reached()
    assert world.parsing.start([doc_id]) == [doc_id]
    before.release()
    assert replay.result(PATIENCE_S) == []
    assert state(task_id) == TaskState.FAIL
    assert (world.doc(doc_id).generation, world.doc(doc_id).open_tasks) == (2, 2)


def test_a_parse_that_comes_after_a_replay_is_refused(world: World, stage: Stage) -> None:
    doc_id, task_id = failed(world)
    before = stage.pause(world.rows, "_write_once")
    start = stage.start(lambda: world.parsing.start([doc_id]))
    before.wait_reached()
    assert world.control.replay([task_id]) == [task_id]
    before.release()
    assert start.result(PATIENCE_S) == []
    assert (world.doc(doc_id).generation, world.doc(doc_id).open_tasks) == (1, 1)


def test_a_replay_that_read_its_task_before_a_new_parse_has_one_winner(world: World, stage: Stage) -> None:
    doc_id, task_id = failed(world)
    has_read = stage.pause(task_sql, "lock_documents")
    replayed, started = stage.overlap(
        lambda: world.control.replay([task_id]), lambda: world.parsing.start([doc_id]), has_read
    )
    assert (replayed, started) in (([task_id], []), ([], [doc_id]))
    assert (state(task_id) == TaskState.PENDING) == bool(replayed)
    assert world.doc(doc_id).generation == 1 + len(started)


# Claims, and what people do at the same time


def test_a_claim_just_before_a_cancel_is_ended_by_it(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(1)
    claimed, stopped = stage.meet(lambda: world.claim(*ranges), lambda: world.parsing.stop([doc_id]))
    assert ([t.id for t in claimed], stopped) == (ranges, [doc_id])
    assert state(ranges[0]) == TaskState.CANCEL
    assert world.tasks.apply([Renew((claimed[0].held,))]) == [set()]
    assert world.finish(claimed[0]) is None


def test_executors_hear_of_a_cancel_just_after_their_claim(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(1)
    stage.meet(lambda: world.claim(*ranges), lambda: world.parsing.stop([doc_id]))
    assert world.cancelled == ranges
    assert timeline(ranges[0]) == [("claim", 1), ("cancel", 1)]


def test_a_claim_just_after_a_cancel_gets_nothing(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(1)
    met = stage.meet(lambda: world.parsing.stop([doc_id]), lambda: world.claim(*ranges))
    assert met == ([doc_id], [])
    assert (state(ranges[0]), Task.get_by_id(ranges[0]).claim_no) == (TaskState.CANCEL, 0)


def test_a_claim_just_before_a_pause_goes_on(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(2)
    claimed, paused = stage.meet(lambda: world.claim(ranges[0]), lambda: world.control.pause([doc_id]))
    assert ([t.id for t in claimed], paused) == ([ranges[0]], [doc_id])
    assert [state(t) for t in ranges] == [TaskState.RUNNING, TaskState.PAUSED]
    assert world.finish(claimed[0]) is TaskState.DONE


def test_a_claim_just_after_a_pause_gets_nothing(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(1)
    met = stage.meet(lambda: world.control.pause([doc_id]), lambda: world.claim(*ranges))
    assert met == ([doc_id], [])
    assert state(ranges[0]) == TaskState.PAUSED


def test_what_is_handed_back_while_its_document_is_being_paused_lands_paused(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(1)
    world.claim(*ranges, owner="e1:dead")
    _, handed_back = stage.meet(
        lambda: world.control.pause([doc_id]), lambda: world.tasks.hand_back("e1:dead", "its process died")
    )
    # Where it did not wait for the pause it left the task alone for now.
    assert handed_back + world.tasks.hand_back("e1:dead", "its process died") == 1
    assert state(ranges[0]) == TaskState.PAUSED
    assert Task.get_by_id(ranges[0]).losses == 1


def test_what_was_handed_back_just_before_a_pause_is_paused_too(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(1)
    world.claim(*ranges, owner="e1:dead")
    met = stage.meet(
        lambda: world.tasks.hand_back("e1:dead", "its process died"), lambda: world.control.pause([doc_id])
    )
    assert met == (1, [doc_id])
    assert state(ranges[0]) == TaskState.PAUSED


def test_what_the_reaper_takes_from_a_paused_document_lands_paused(world: World) -> None:
    doc_id, ranges = world.started(1)
    world.claim(*ranges)
    world.control.pause([doc_id])
    world.rows.execute("UPDATE task SET lease_until = 1 WHERE id = ?", ranges)
    assert world.tasks.reap() == 1
    assert state(ranges[0]) == TaskState.PAUSED
    assert world.control.resume([doc_id]) == [doc_id]
    assert len(world.claim(*ranges)) == 1


def test_what_goes_back_while_its_document_is_being_resumed_waits_to_be_claimed(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    world.control.pause([doc_id])
    back = GiveBack(task.held, "drain")
    met = stage.meet(lambda: world.control.resume([doc_id]), lambda: world.tasks.apply([back]))
    assert met == ([doc_id], [TaskState.PENDING])


def test_what_went_back_just_before_a_resume_waits_to_be_claimed(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    world.control.pause([doc_id])
    back = GiveBack(task.held, "drain")
    met = stage.meet(lambda: world.tasks.apply([back]), lambda: world.control.resume([doc_id]))
    assert met == ([TaskState.PAUSED], [doc_id])
    assert state(ranges[0]) == TaskState.PENDING


def test_ranges_that_come_while_their_document_is_paused_wait_too(world: World) -> None:
    doc_id, prepare = prepared(world)
    world.control.pause([doc_id])
    assert world.tasks.apply([FinishPrepare(prepare.held, PROFILE, TWO_RANGES)]) == [TaskState.DONE]
    assert world.publishing.mark_next(10) == []
    assert world.pending(doc_id) == []
    assert world.control.resume([doc_id]) == [doc_id]
    assert len(world.claim_all(doc_id)) == 2


def test_the_finish_of_a_paused_document_waits_too(world: World) -> None:
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    world.control.pause([doc_id])
    assert world.finish(task) is TaskState.DONE
    assert finish_tasks(world, doc_id) == [TaskState.PAUSED]
    world.control.resume([doc_id])
    assert world.flip(doc_id) is TaskState.DONE


def test_what_is_replayed_in_a_paused_document_waits_too(world: World) -> None:
    doc_id, ranges = world.started(2)
    (task,) = world.claim(ranges[0])
    world.tasks.apply([Fail(task.held, "x", "bad")])
    world.control.pause([doc_id])
    assert world.control.replay([task.id]) == [task.id]
    assert [state(t) for t in ranges] == [TaskState.PAUSED] * 2


# Renewal and reaper


def lease_over(world: World) -> ClaimedTask:
    _, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    world.rows.execute("UPDATE task SET lease_until = 1 WHERE id = ?", ranges)
    return task


def test_a_renewal_just_before_the_reaper_holds(world: World, stage: Stage) -> None:
    task = lease_over(world)
    met = stage.meet(lambda: world.tasks.apply([Renew((task.held,))]), world.tasks.reap)
    assert met == ([{task.id}], 0)
    assert (state(task.id), Task.get_by_id(task.id).losses) == (TaskState.RUNNING, 0)
    assert world.finish(task) is TaskState.DONE


def test_a_renewal_just_after_the_reaper_does_not_hold(world: World, stage: Stage) -> None:
    task = lease_over(world)
    met = stage.meet(world.tasks.reap, lambda: world.tasks.apply([Renew((task.held,))]))
    assert met == (1, [set()])
    row = Task.get_by_id(task.id)
    assert (row.state, row.lease_until, row.losses) == (TaskState.PENDING, 0, 1)
    assert world.finish(task) is None


def test_a_renewal_after_the_reaper_has_looked_and_before_it_takes_has_one_winner(world: World, stage: Stage) -> None:
    task = lease_over(world)
    has_looked = stage.pause(task_sql, "lock_free_documents")
    reaped, renewed = stage.overlap(world.tasks.reap, lambda: world.tasks.apply([Renew((task.held,))]), has_looked)
    assert (reaped, renewed) in ((0, [{task.id}]), (1, [set()]))
    assert (state(task.id) == TaskState.RUNNING) == (reaped == 0)
    assert (world.finish(task) is TaskState.DONE) == (reaped == 0)


def test_a_reaper_that_looked_before_a_renewal_takes_nothing(world: World, stage: Stage) -> None:
    task = lease_over(world)
    before = stage.pause(world.rows, "_write_once")
    reap = stage.start(world.tasks.reap)
    before.wait_reached()
    assert world.tasks.apply([Renew((task.held,))]) == [{task.id}]
    before.release()
    assert reap.result(PATIENCE_S) == 0
    assert state(task.id) == TaskState.RUNNING


# Deleting, and what zombies still write


def write_chunk(index: EmbeddedIndex, task: ClaimedTask, ordinal: int = 0) -> None:
    record = ChunkRecord(
        id=f"{task.id}/{ordinal}",
        tenant_id=task.tenant_id,
        dataset_id=task.dataset_id,
        document_id=task.document_id,
        generation=task.generation,
        task_no=task.task_no,
        claim_no=task.claim_no,
        ordinal=ordinal,
        page=1,
        text="late",
        terms="late",
        token_count=1,
    )
    index.upsert([record], np.ones((1, 4), np.float32) / np.float32(2))


@pytest.fixture
def index(tmp_path: Path) -> Iterator[EmbeddedIndex]:
    made = EmbeddedIndex(tmp_path / "index", IndexSettings())
    yield made
    made.close()


def test_what_a_zombie_writes_after_a_delete_is_unseen_and_swept(
    world: World, queue: Queue, index: EmbeddedIndex, tmp_path: Path
) -> None:
    doc_id, ranges = world.started(1)
    (zombie,) = world.claim(*ranges)
    everything = Scope(world.tenant_id, world.kb_id, doc_id)
    store = FolderStore(tmp_path / "files")
    store.check()
    sweeper = sweeper_of(world.rows, queue, index, store, tmp_path / "pictures")
    write_chunk(index, zombie)
    assert world.control.delete([doc_id]) == [doc_id]
    sweeper.run_once()
    assert index.count(everything) == 0
    write_chunk(index, zombie)
    assert world.finish(zombie) is None
    assert searched_documents(world.rows, world.tenant_id, [doc_id]) == {}
    sweeper.run_once()
    assert index.count(everything) == 0
    assert Document.select().where(Document.id == doc_id).count() == 1  # the tombstone: it may still write
    world.rows.execute("UPDATE stale_chunks SET at_ms = 1")  # longer ago than lease and request timeout
    sweeper.run_once()
    assert (Document.select().count(), Task.select().count(), StaleChunks.select().count()) == (0, 0, 0)
    assert world.finish(zombie) is None


def test_what_a_zombie_writes_while_it_is_swept_is_swept_later(
    world: World, stage: Stage, queue: Queue, index: EmbeddedIndex, tmp_path: Path
) -> None:
    doc_id, ranges = world.started(1)
    (zombie,) = world.claim(*ranges)
    sweeper = sweeper_of(world.rows, queue, index, FolderStore(tmp_path / "files"), tmp_path / "pictures")
    write_chunk(index, zombie)
    world.tasks.hand_back("e1:boot", "its process died")
    world.rows.execute("UPDATE stale_chunks SET at_ms = 1")
    deleted = stage.pause(index, "delete", after=True)
    sweep = stage.start(sweeper.sweep_chunks)
    deleted.wait_reached()
    write_chunk(index, zombie)
    deleted.release()
    sweep.result(PATIENCE_S)
    lost = Scope(world.tenant_id, world.kb_id, doc_id, 1, (0, 1))
    assert index.count(lost) == 1
    seen = searched_documents(world.rows, world.tenant_id, [doc_id])[doc_id]
    assert not any(seen.shows(chunk) for chunk in index.list(lost, 0, 10).chunks)
    sweeper.sweep_chunks()
    assert (index.count(lost), StaleChunks.select().count()) == (0, 0)


def test_a_finish_just_before_a_delete_is_deleted_with_it(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    met = stage.meet(lambda: world.finish(task), lambda: world.control.delete([doc_id]))
    assert met == (TaskState.DONE, [doc_id])
    assert finish_tasks(world, doc_id) == [TaskState.CANCEL]
    assert RangeResult.select().count() == 0
    assert Knowledgebase.get_by_id(world.kb_id).chunk_count == 0


def test_a_finish_just_after_a_delete_changes_nothing(world: World, stage: Stage) -> None:
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    met = stage.meet(lambda: world.control.delete([doc_id]), lambda: world.finish(task))
    assert met == ([doc_id], None)
    assert state(task.id) == TaskState.CANCEL
    assert RangeResult.select().count() == 0


def test_a_file_that_is_uploaded_again_while_it_is_removed_stays(
    world: World, stage: Stage, queue: Queue, index: EmbeddedIndex, tmp_path: Path
) -> None:
    store = FolderStore(tmp_path / "files")

    def upload() -> Path:
        upload = store.begin_upload()
        upload.write(b"bytes")
        with store.local_path(world.tenant_id, upload.keep(world.tenant_id).digest) as path:
            return path

    path = upload()
    doc_id = world.document()
    Document.update(file_digest=path.name).where(Document.id == doc_id).execute()
    world.control.delete([doc_id])
    StaleChunks.delete().execute()
    world.rows.close_connection()
    unused = stage.pause(store, "delete_unused")
    purge = stage.start(sweeper_of(world.rows, queue, index, store, tmp_path / "pictures").purge)
    unused.wait_reached()  # no row names the file, and none does yet when its upload is over
    assert upload() == path
    unused.release()
    purge.result(PATIENCE_S)
    assert path.read_bytes() == b"bytes"
    assert Document.select().count() == 0


# The relay


class Killed(Exception):
    """Stands for a process that ends at this point."""


def relay_of(world: World, queue: Queue, holder: str) -> Relay:
    settings = RelaySettings(lead_s=0.2, repair_s=0.1, unmark_after_s=0.001, window=8)
    return Relay(RelayConfig(settings, holder), RoleService(world.rows), PublishService(world.rows), queue)


@pytest.fixture
def old_queue(valkey: ValkeyServer) -> Iterator[Queue]:
    """The connection of a leader that is cut off."""
    client = Queue(valkey.url)
    yield client
    client.close()


def waiting_task(world: World) -> str:
    doc_id = world.document()
    world.parsing.start([doc_id])
    (task_id,) = world.pending(doc_id)
    return task_id


def read(queue: Queue) -> list[Message]:
    return queue.read("e1", 100)


def test_what_a_leader_marked_and_never_sent_is_sent_by_the_next(
    world: World, queue: Queue, old_queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = waiting_task(world)

    def die(tasks: object) -> None:
        raise Killed

    monkeypatch.setattr(old_queue, "publish", die)
    with pytest.raises(Killed):
        relay_of(world, old_queue, "e1:killed").run_once()
    assert Task.get_by_id(task_id).published_at > 0
    assert queue.standing().in_turn == 0
    wait_until(relay_of(world, queue, "e2:next").run_once)
    assert [m.task_id for m in read(queue)] == [task_id]


def test_a_mark_whose_reply_is_lost_is_sent_once(world: World, stage: Stage, queue: Queue) -> None:
    task_id = waiting_task(world)
    relay = relay_of(world, queue, "e1:boot")
    with stage.reply_lost():
        assert relay.publish() == 1
    assert relay.publish() == 0
    assert [m.task_id for m in read(queue)] == [task_id]


def test_a_leader_that_wakes_after_another_sent_its_choice_sends_it_twice_and_it_is_claimed_once(
    world: World, stage: Stage, queue: Queue, old_queue: Queue
) -> None:
    task_id = waiting_task(world)
    marked = stage.pause(old_queue, "publish")
    sleeper = stage.start(relay_of(world, old_queue, "e1:asleep").run_once)
    marked.wait_reached()
    wait_until(relay_of(world, queue, "e2:next").run_once)
    first = read(queue)
    assert [m.task_id for m in first] == [task_id]
    (claimed,) = world.claim(task_id)
    queue.ack(first)
    marked.release()
    assert sleeper.result(PATIENCE_S) is True
    second = read(queue)
    assert [m.task_id for m in second] == [task_id]
    assert world.claim(task_id, owner="e3:c") == []
    queue.ack(second)
    assert (Task.get_by_id(task_id).claim_no, Task.get_by_id(task_id).owner) == (1, "e1:boot")
    assert (world.tasks.apply([Renew((claimed.held,))]), queue.standing().in_turn) == ([{task_id}], 0)


def test_a_leader_that_wakes_before_it_marks_marks_nothing_that_runs(
    world: World, stage: Stage, queue: Queue, old_queue: Queue
) -> None:
    task_id = waiting_task(world)
    chosen = stage.pause(world.rows, "_write_once")
    sleeper = stage.start(relay_of(world, old_queue, "e1:asleep").publish)
    chosen.wait_reached()
    assert relay_of(world, queue, "e2:next").publish() == 1
    published_at = Task.get_by_id(task_id).published_at
    (claimed,) = world.claim(task_id)
    queue.ack(read(queue))
    chosen.release()
    assert sleeper.result(PATIENCE_S) == 1
    assert [m.task_id for m in read(queue)] == [task_id]
    assert world.claim(task_id, owner="e3:c") == []
    row = Task.get_by_id(task_id)
    assert (row.published_at, row.claim_token, row.claim_no) == (published_at, claimed.token, 1)


def test_a_task_that_is_cancelled_between_publish_and_claim_is_refused_and_not_sent_again(
    world: World, queue: Queue
) -> None:
    task_id = waiting_task(world)
    relay = relay_of(world, queue, "e1:boot")
    assert relay.publish() == 1
    messages = read(queue)
    assert world.parsing.stop([Task.get_by_id(task_id).doc_id])
    assert world.claim(task_id) == []
    queue.ack(messages)
    assert (relay.publish(), relay.repair(), queue.standing().in_turn) == (0, 0, 0)
    assert state(task_id) == TaskState.CANCEL


def test_a_task_that_is_cancelled_between_the_choice_and_its_mark_is_refused(
    world: World, stage: Stage, queue: Queue
) -> None:
    task_id = waiting_task(world)
    chosen = stage.pause(world.rows, "_write_once")
    relay = relay_of(world, queue, "e1:boot")
    publish = stage.start(relay.publish)
    chosen.wait_reached()
    assert world.parsing.stop([Task.get_by_id(task_id).doc_id])
    chosen.release()
    assert publish.result(PATIENCE_S) == 1
    assert Task.get_by_id(task_id).published_at == 0
    messages = read(queue)
    assert world.claim(task_id) == []
    queue.ack(messages)
    assert (relay.repair(), queue.standing().in_turn) == (0, 0)


def test_a_task_that_is_paused_and_resumed_while_it_is_published_is_claimed_once(world: World, queue: Queue) -> None:
    task_id = waiting_task(world)
    doc_id = Task.get_by_id(task_id).doc_id
    relay = relay_of(world, queue, "e1:boot")
    relay.publish()
    world.control.pause([doc_id])
    world.control.resume([doc_id])
    assert relay.publish() == 1
    assert [m.task_id for m in read(queue)] == [task_id] * 2
    assert [len(world.claim(task_id)) for _ in range(2)] == [1, 0]


def test_a_task_that_goes_back_while_it_is_repaired_is_claimed_once(world: World, stage: Stage, queue: Queue) -> None:
    task_id = waiting_task(world)
    relay = relay_of(world, queue, "e1:boot")
    relay.publish()
    queue._redis.flushall()
    wait_until(lambda: world.publishing.published_before(1))
    compared = stage.pause(queue, "undelivered", after=True)
    repair = stage.start(relay.repair)
    compared.wait_reached()  # it is nowhere: and now it is claimed by a late message, and goes back
    (task,) = world.claim(task_id)
    assert world.tasks.apply([GiveBack(task.held, "drain")]) == [TaskState.PENDING]
    compared.release()
    repair.result(PATIENCE_S)
    assert [m.task_id for m in read(queue)] == [task_id]
    assert [t.claim_no for t in world.claim(task_id)] == [2]
