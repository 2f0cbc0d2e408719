"""Migrations make what the models say, on both databases, and the hot queries use their indexes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from api.db import migrations
from api.db.database import Rows, open_rows
from api.db.models import MODELS, Document, Knowledgebase
from api.db.records import insert
from api.db.services.dataset_service import DatasetFilter, DatasetService
from api.db.services.document_list import DocumentFilter
from api.db.services.document_service import DocumentService
from api.db.services.role_service import RoleService
from common.errors import DatabaseTooNew
from common.settings import TaskSettings
from common.task_state import DocumentRun, TaskState
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


def test_the_size_of_datasets_is_counted_when_it_begins_to_be_kept(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = open_rows(database_url)
    known = migrations.available()
    monkeypatch.setattr(migrations, "available", lambda: known[:9])
    migrations.migrate(rows)
    before = (*[field.column_name for field in Knowledgebase._meta.sorted_fields if field.name != "size_bytes"],)
    dataset = Knowledgebase(id="k", tenant_id="t", created_by="t", name="k", embedding_model="m", create_ms=1)
    values = {**dataset.__data__, "parser_config": "{}", "update_ms": 1}
    rows.insert_many("knowledgebase", before, [[values.get(column) for column in before]])
    for number, deleted_ms in enumerate((0, 0, 7)):
        insert(rows, [_document(f"d{number}", size_bytes=10 + number, deleted_ms=deleted_ms)])
    monkeypatch.undo()
    migrations.migrate(rows)
    assert [one.size_bytes for one in Knowledgebase.select()] == [21]
    rows.close_connection()


def _document(doc_id: str, **fields: Any) -> Document:
    return Document(
        id=doc_id,
        tenant_id="t",
        kb_id="k",
        created_by="t",
        name=doc_id,
        name_key=None if fields["deleted_ms"] else doc_id,
        file_digest="0" * 64,
        suffix="txt",
        type="doc",
        chunk_method="naive",
        parser_config={},
        meta_fields={},
        create_ms=1,
        update_ms=1,
        **fields,
    )


def test_a_database_of_a_newer_version_is_refused_unchanged(database_url: str) -> None:
    rows = open_rows(database_url)
    migrations.migrate(rows)
    rows.execute("INSERT INTO schema_version (version, applied_ms) VALUES (999, 1)")
    with pytest.raises(DatabaseTooNew, match="schema version 999"):
        migrations.migrate(rows)
    assert migrations.current(rows) == 999
    rows.close_connection()


class _Recorder:
    """Collects the statements that services run, in plain SQL or through peewee."""

    def __init__(self, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[str, list[Any]]] = []
        self.execute = rows.db.execute_sql

        def record(sql: str, params: Any = None) -> Any:
            self.seen.append((sql, list(params or ())))
            return self.execute(sql, params)

        monkeypatch.setattr(rows.db, "execute_sql", record)

    def plans(self) -> list[tuple[str, list[Any]]]:
        """Each statement that reads, with its plan."""
        explain = "EXPLAIN QUERY PLAN " if rows_are_sqlite(self.execute) else "EXPLAIN "
        reading = [(sql, params) for sql, params in self.seen if sql.lstrip().startswith(("SELECT", "UPDATE"))]
        return [(sql, list(self.execute(explain + sql, params).fetchall())) for sql, params in reading]


def rows_are_sqlite(execute: Any) -> bool:
    return type(execute.__self__).__name__ == "SqliteDatabase"


def test_hot_queries_use_their_indexes(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    others, world = World(rows), World(rows)
    for _ in range(60):
        others.started(20)
    world.started(2)
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
    RoleService(rows).lead("relay", "e1:a", 1000)
    documents = DocumentService(rows, TaskSettings())
    for wanted in (DocumentFilter(), DocumentFilter(runs=(DocumentRun.DONE,)), DocumentFilter(ids=(doc_id,))):
        assert documents.page(world.tenant_id, world.kb_id, wanted).total > 0
    DatasetService(rows, "m").page(world.tenant_id, DatasetFilter())
    plans = recorder.plans()
    assert len(plans) > 40
    assert [sql for sql, plan in plans if _scans(rows, plan)] == []


def _scans(rows: Rows, plan: list[Any]) -> bool:
    """True where the plan reads a whole table of tasks or documents."""
    if rows.is_sqlite:
        lines = [row[3] for row in plan]
        return any(re.match(r"SCAN (task|document|t|d|t1)\b(?!.*INDEX)", line) for line in lines)
    return any(row[3] == "ALL" and row[2] in ("task", "document", "t", "d", "t1") for row in plan)


def test_the_reaper_reads_running_tasks_only(sqlite_rows: Rows) -> None:
    plan = sqlite_rows.rows(
        f"EXPLAIN QUERY PLAN SELECT id FROM task WHERE state = {int(TaskState.RUNNING)} AND lease_until < 5"
    )
    assert any("task_queue (state=?" in row[3] for row in plan)
