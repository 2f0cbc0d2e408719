"""Migrations make what the models say, on both databases, and the hot queries use their indexes."""

from __future__ import annotations

from typing import Any

import pytest

from api.db import migrations
from api.db.database import Rows, open_rows
from api.db.models import MODELS
from api.db.services.publish_service import PublishService
from common.errors import DatabaseTooNew
from common.task_state import TaskState
from tests.world import World


def test_the_schema_is_what_the_models_say(rows: Rows) -> None:
    for model in MODELS:
        table = model._meta.table_name
        columns = {c.name: c.null for c in rows.db.get_columns(table)}
        expected = {f.column_name: f.null for f in model._meta.sorted_fields}
        assert columns == expected, table
        declared = {(tuple(names), unique) for names, unique in model._meta.indexes}
        declared |= {
            ((f.column_name,), f.unique)
            for f in model._meta.sorted_fields
            if (f.unique or f.index) and not f.primary_key
        }
        made = {(tuple(i.columns), i.unique) for i in rows.db.get_indexes(table)}
        assert declared <= made, table


def test_migrating_twice_changes_nothing(rows: Rows) -> None:
    assert migrations.migrate(rows) == migrations.newest()
    assert migrations.current(rows) == migrations.newest()


def test_migrations_are_numbered_without_gaps() -> None:
    assert [version for version, _ in migrations.available()] == list(range(1, migrations.newest() + 1))


def test_a_database_of_a_newer_version_is_refused_unchanged(database_url: str) -> None:
    rows = open_rows(database_url)
    migrations.migrate(rows)
    rows.execute("INSERT INTO schema_version (version, applied_ms) VALUES (999, 1)")
    with pytest.raises(DatabaseTooNew, match="schema version 999"):
        migrations.migrate(rows)
    assert migrations.current(rows) == 999
    rows.close_connection()


class _Recorder:
    """Collects the statements that a service runs."""

    def __init__(self, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[str, list[Any]]] = []
        run = rows.execute

        def record(sql: str, params: Any = ()) -> Any:
            self.seen.append((sql, list(params)))
            return run(sql, params)

        monkeypatch.setattr(rows, "execute", record)


def test_hot_queries_use_their_indexes(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(rows)
    for _ in range(30):
        world.started(20)
    if not rows.is_sqlite:
        rows.execute("ANALYZE TABLE task")
        rows.execute("ANALYZE TABLE document")
    recorder = _Recorder(rows, monkeypatch)
    doc_id, ranges = world.started(2)
    world.publishing.mark_next(5)
    world.publishing.published_before(1)
    for task in world.claim(*ranges):
        world.finish(task)
    world.tasks.reap()
    world.tasks.hand_back("e1:gone", "its process died")
    world.flip(doc_id)
    world.parsing.stop([doc_id])
    PublishService(rows).lead("relay", "e1:a", 1000)
    statements = [(sql, params) for sql, params in recorder.seen if sql.lstrip().startswith(("SELECT", "UPDATE"))]
    assert len(statements) > 20
    full_scans = [sql for sql, params in statements if _scans(rows, sql, params)]
    assert full_scans == []


def _scans(rows: Rows, sql: str, params: list[Any]) -> bool:
    """True where the plan reads a whole table of tasks or documents."""
    if rows.is_sqlite:
        plan = [row[3] for row in rows.rows(f"EXPLAIN QUERY PLAN {sql}", params)]
        return any(line.startswith("SCAN") and "INDEX" not in line and "CONSTANT" not in line for line in plan)
    plan = rows.rows(f"EXPLAIN {sql}", params)
    return any(row[3] == "ALL" and row[2] in ("task", "document", "t", "d") for row in plan)


def test_the_reaper_reads_running_tasks_only(sqlite_rows: Rows) -> None:
    plan = sqlite_rows.rows(
        f"EXPLAIN QUERY PLAN SELECT id FROM task WHERE state = {int(TaskState.RUNNING)} AND lease_until < 5"
    )
    assert any("task_queue (state=?" in row[3] for row in plan)
