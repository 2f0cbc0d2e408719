"""What followers are told comes from the rows, on both databases: what changed, what is at work, by indexes."""

from __future__ import annotations

from typing import Any

import pytest

from api.db.database import Rows
from api.db.models import Document
from api.db.services.job_changes import LATE_MS, JobChanges, Look
from api.db.services.job_views import JobStatus, WorkRange
from common.settings import TaskSettings
from rag.parser.blocks import Unit
from tests.world import World


@pytest.fixture
def world(rows: Rows) -> World:
    return World(rows)


@pytest.fixture
def changes(rows: Rows) -> JobChanges:
    return JobChanges(rows, TaskSettings())


def look(changes: JobChanges, world: World, *job_ids: str, since_ms: int | None = None) -> Look:
    return changes.look(set(job_ids), {world.kb_id}, since_ms)


def move_back(world: World, doc_id: str, by_ms: int) -> None:
    """As if it had changed so much earlier."""
    world.rows.write(world.rows.execute, "UPDATE document SET update_ms = update_ms - ? WHERE id = ?", (by_ms, doc_id))


def test_a_look_sees_what_changed_and_what_is_asked_for(world: World, changes: JobChanges) -> None:
    other = World(world.rows)
    never, old, new = world.document(), world.started()[0], world.started()[0]
    foreign = other.started()[0]
    move_back(world, old, LATE_MS * 2)
    seen = look(changes, world)
    assert set(seen.marks) == {new}
    assert seen.marks[new].is_running and seen.marks[new].dataset_id == world.kb_id
    assert set(look(changes, world, never, foreign).marks) == {never, new, foreign}
    assert set(look(changes, world, since_ms=seen.now_ms - LATE_MS * 2).marks) == {old, new}
    assert look(changes, world, "0" * 32).marks.keys() == {new}


def test_a_look_sees_every_kind_of_change(world: World, changes: JobChanges) -> None:
    doc_id, ranges = world.started(1)
    for act in (
        lambda: world.control.pause([doc_id]),
        lambda: world.control.resume([doc_id]),
        lambda: world.finish(world.claim(*ranges)[0]),
        lambda: world.flip(doc_id),
        lambda: world.parsing.start([doc_id]),
        lambda: world.parsing.stop([doc_id]),
        lambda: world.control.delete([doc_id]),
    ):
        move_back(world, doc_id, 5)  # no two of these within one millisecond
        before = look(changes, world, doc_id).marks[doc_id]
        act()
        assert look(changes, world, doc_id).marks[doc_id] != before
    assert look(changes, world, doc_id).marks[doc_id].deleted_ms > 0


def test_a_deleted_document_is_told_as_such(world: World, changes: JobChanges) -> None:
    doc_id, _ = world.started()
    move_back(world, doc_id, LATE_MS * 2)
    assert look(changes, world).marks == {}
    world.control.delete([doc_id])
    assert set(look(changes, world).marks) == {doc_id}
    view = changes.states([doc_id])[doc_id]
    assert (view.status, view.is_final, view.message) == (JobStatus.DELETED, True, "deleted by the user")


def test_documents_at_work_are_seen_though_their_rows_stay(world: World, changes: JobChanges) -> None:
    doc_id, ranges = world.started()
    assert look(changes, world).at_work == set()
    world.claim(ranges[0])
    assert look(changes, world).at_work == {doc_id}
    assert changes.look({doc_id}, set(), None).at_work == set()


def test_owed_is_what_runs_and_what_changed_since(world: World, changes: JobChanges) -> None:
    running, done, deleted = (world.started(1)[0] for _ in range(3))
    world.parsing.stop([done])
    world.control.delete([deleted])
    world.document()
    now_ms = world.rows.clock()
    assert changes.owed(world.kb_id, None, 10) == [running]
    assert set(changes.owed(world.kb_id, now_ms, 10)) == {running, done, deleted}
    assert len(changes.owed(world.kb_id, now_ms, 1)) == 2
    assert changes.owed(world.kb_id, now_ms + LATE_MS * 2, 10) == [running]


def test_states_of_several_tenants_are_told_together(world: World, changes: JobChanges) -> None:
    other = World(world.rows)
    working, ranges = world.started(2)
    waiting, _ = other.started(2)
    world.claim(ranges[0])
    states = changes.states([working, waiting, "0" * 32])
    assert set(states) == {working, waiting}
    assert (states[working].status, states[waiting].status) == (JobStatus.RUNNING, JobStatus.QUEUED)
    assert states[working].ranges == [WorkRange(Unit.PAGE, 1, 12)]
    assert (states[working].queue_position, states[waiting].queue_position) == (None, 1)


def test_looks_go_through_indexes(world: World, changes: JobChanges, monkeypatch: pytest.MonkeyPatch) -> None:
    others = World(world.rows)
    for _ in range(60):
        others.started(20)
    doc_id, _ = world.started(2)
    if not world.rows.is_sqlite:
        world.rows.execute("ANALYZE TABLE task")
        world.rows.execute("ANALYZE TABLE document")
    execute = world.rows.db.execute_sql
    seen: list[tuple[str, Any]] = []

    def record(sql: str, params: Any = None) -> Any:
        seen.append((sql, params or ()))
        return execute(sql, params)

    monkeypatch.setattr(world.rows.db, "execute_sql", record)
    look(changes, world, doc_id)
    changes.owed(world.kb_id, 5, 10)
    monkeypatch.undo()
    plans = {
        sql: _plan(world.rows, sql, params) for sql, params in seen if "FROM document" in sql or "FROM task" in sql
    }
    assert len(plans) == 7
    assert [sql for sql, plan in plans.items() if "SCAN document" in plan or "SCAN task" in plan or "ALL" in plan] == []
    assert Document.select().count() == 61


def _plan(rows: Rows, sql: str, params: Any) -> list[str]:
    explain = "EXPLAIN QUERY PLAN " if rows.is_sqlite else "EXPLAIN "
    return [str(row[3]) for row in rows.db.execute_sql(explain + sql, params).fetchall()]
