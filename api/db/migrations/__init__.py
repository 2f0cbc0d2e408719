"""Numbered schema changes, forward only, the same on SQLite and MySQL.

A migration is a module `m0001_what.py` with STATEMENTS: plain SQL in which {text}, {auto}, {table} and {on_document}
stand for what differs between the two. Each statement can be run again: MySQL commits every one of them by itself."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager

import peewee

from api.db.database import Rows
from common.errors import DatabaseTooNew, RowsUnavailable

_SQLITE = {"text": "TEXT", "auto": "INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL", "table": "", "on_document": ""}
_MYSQL = {
    "text": "LONGTEXT",
    "auto": "BIGINT AUTO_INCREMENT PRIMARY KEY",
    "table": "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC",
    "on_document": "ON document",
}
# MySQL commits each statement by itself and has no IF (NOT) EXISTS for these: before a crash, a duplicate was made and
# what is missing was dropped.
_DUPLICATE_COLUMN, _DUPLICATE_INDEX, _MISSING_INDEX = 1060, 1061, 1091


def available() -> list[tuple[int, str]]:
    """(version, module name) of every migration, oldest first."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name.startswith("m"))
    return [(int(name[1:5]), f"{__name__}.{name}") for name in names]


def newest() -> int:
    return available()[-1][0]


def current(rows: Rows) -> int:
    """The version of the schema that the database has; 0 for an empty one."""
    if not rows.db.table_exists("schema_version"):
        return 0
    return int(rows.rows("SELECT COALESCE(MAX(version), 0) FROM schema_version")[0][0])


def migrate(rows: Rows) -> int:
    """Bring the schema up to date, one process at a time. Returns its version.

    Raises DatabaseTooNew, without a change, when the database was written by a newer Pagemill."""
    with _alone(rows):
        have = current(rows)
        if have > newest():
            raise DatabaseTooNew(
                f"the database has schema version {have}, this Pagemill knows up to {newest()}: "
                "it was written by a newer version; run that one, or restore a backup"
            )
        for version, module in available():
            if version > have:
                rows.write(_apply, rows, version, importlib.import_module(module).STATEMENTS)
        return newest()


def _apply(rows: Rows, version: int, statements: tuple[str, ...]) -> None:
    if current(rows) >= version:
        return  # another process was first
    words = _SQLITE if rows.is_sqlite else _MYSQL
    for statement in statements:
        try:
            rows.execute(statement.format(**words))
        except peewee.OperationalError as exc:
            if not {_DUPLICATE_COLUMN, _DUPLICATE_INDEX, _MISSING_INDEX} & set(exc.args[1:]):
                raise
    rows.execute(f"INSERT INTO schema_version (version, applied_ms) VALUES (?, {rows.now_ms})", (version,))


@contextmanager
def _alone(rows: Rows) -> Iterator[None]:
    """On MySQL a named lock; on SQLite each migration is a write transaction, and the version is read under it."""
    if rows.is_sqlite:
        yield
        return
    if rows.rows("SELECT GET_LOCK('pagemill_migrate', 60)")[0][0] != 1:
        raise RowsUnavailable("another process has been changing the database's schema for over a minute")
    try:
        yield
    finally:
        rows.execute("SELECT RELEASE_LOCK('pagemill_migrate')")
