"""Errors of the database: those that pass are tried again, all others of the server's are an outage."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import peewee
import pytest

from api.db.database import Rows, open_rows
from common.errors import RowsUnavailable


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    opened = open_rows(f"sqlite:///{tmp_path / 'rows.db'}", retry_delays_s=(0.01, 0.01))
    opened.db.pragma("busy_timeout", 1, permanent=True)
    opened.execute("CREATE TABLE t (x INTEGER PRIMARY KEY)")
    yield opened
    opened.close_connection()


def test_a_locked_database_is_tried_again(rows: Rows, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "rows.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        calls = []

        def insert() -> None:
            calls.append(1)
            if len(calls) == 3:
                other.execute("COMMIT")
            rows.execute("INSERT INTO t VALUES (1)")

        def locked_twice() -> None:
            if len(calls) < 2:
                calls.append(1)
                rows.execute("INSERT INTO t VALUES (1)")
            else:
                insert()

        rows.read(locked_twice)  # without the transaction's own lock: each call meets the other's
        assert len(calls) == 3
    assert rows.rows("SELECT x FROM t") == [(1,)]


def test_one_that_stays_locked_is_an_outage(rows: Rows, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "rows.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RowsUnavailable):
            rows.write(rows.execute, "INSERT INTO t VALUES (1)")
        other.execute("ROLLBACK")
    rows.write(rows.execute, "INSERT INTO t VALUES (1)")


def test_an_error_that_does_not_pass_is_an_outage_at_once(rows: Rows) -> None:
    calls = []

    def fail() -> None:
        calls.append(1)
        raise peewee.OperationalError("disk I/O error")

    with pytest.raises(RowsUnavailable, match="disk I/O error"):
        rows.write(fail)
    assert len(calls) == 1


def test_a_broken_rule_is_the_callers_to_handle(rows: Rows) -> None:
    rows.write(rows.execute, "INSERT INTO t VALUES (1)")
    with pytest.raises(peewee.IntegrityError):
        rows.write(rows.execute, "INSERT INTO t VALUES (1)")


def test_callbacks_come_after_the_commit_and_not_after_a_failure(rows: Rows) -> None:
    seen: list[object] = []

    def insert(x: int, *, fail: bool) -> None:
        rows.execute("INSERT INTO t VALUES (?)", (x,))
        rows.after_commit(lambda: seen.append((x, rows.db.in_transaction())))
        if fail:
            raise ValueError

    rows.write(insert, 1, fail=False)
    with pytest.raises(ValueError):
        rows.write(insert, 2, fail=True)
    rows.write(insert, 3, fail=False)
    assert seen == [(1, False), (3, False)]
    rows.after_commit(lambda: seen.append("at once"))
    assert seen[-1] == "at once"
