"""The connection to the rows: SQLite or MySQL/MariaDB, write transactions, the database's clock, and the one place
where errors that pass (deadlock, lock wait, lost connection) are tried again.

Leaves tables to models.py and what is written to the services."""

from __future__ import annotations

import fcntl
import logging
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec
import peewee
from peewee import Database, MySQLDatabase, SqliteDatabase

from api.db.models import MODELS, database_proxy
from api.db.wal_checkpoint import LARGEST_FILE_BYTES, Checkpointer
from common.errors import RowsUnavailable, SettingsError
from common.turns import stepping_aside

log = logging.getLogger(__name__)
P = ParamSpec("P")
R = TypeVar("R")

# Deadlock, lock wait timeout, server gone, lost connection, can't connect, server shutting down.
_MYSQL_PASSING = {1213, 1205, 2006, 2013, 2003, 2002, 1053, 1927, 1317}
PATIENT_S = (0.05, 0.1, 0.2, 0.5, 1.0)
# For a thread that must come back soon: its callers try again themselves.
IMPATIENT_S = (0.05,)
_LOCK_WAIT_S = 3
_MMAP_BYTES = 1 << 30


class Rows:
    """An open database. One connection per thread; safe to share between threads."""

    def __init__(self, db: Database, *, lock_path: Path | None, retry_delays_s: Sequence[float]) -> None:
        self.db = db
        self._retry_delays_s = tuple(retry_delays_s)
        self.is_sqlite = lock_path is not None
        self._lock_path = lock_path
        self._local = threading.local()
        self._checkpointer = Checkpointer(Path(str(db.database)), lock_path) if lock_path is not None else None

    @property
    def now_ms(self) -> str:
        """SQL for the database's own clock, in epoch milliseconds, whatever the session's time zone."""
        if self.is_sqlite:
            return "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
        return "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)"

    @property
    def for_update(self) -> str:
        """SQLite's writers are alone anyway."""
        return "" if self.is_sqlite else " FOR UPDATE"

    def using(self, index: str) -> str:
        """SQL behind a table's name: this index and no other, "" for any. Which one is best for a list depends on how
        long it is, and neither database keeps count of that."""
        if not index:
            return ""
        return f" INDEXED BY {index}" if self.is_sqlite else f" FORCE INDEX ({index})"

    @property
    def back_cost(self) -> int:
        """What a step back through an index costs, in steps forward: InnoDB looks for each record from the page's
        directory, since records know only the next one."""
        return 1 if self.is_sqlite else 2

    def containing(self, column: str) -> str:
        """SQL for a column in which a text, its parameter, stands as it is. MariaDB compares characters one by one by
        their collation, and takes half as long for bytes; in UTF-8 these can't be found where the text is not."""
        if self.is_sqlite:
            return f"INSTR({column}, ?) > 0"
        return f"INSTR(CAST({column} AS BINARY), CAST(? AS BINARY)) > 0"

    def execute(self, sql: str, params: Sequence[object] = ()) -> Any:
        """Run one statement written with `?` and return its cursor."""
        execute: Callable[..., Any] = self.db.execute_sql
        return execute(sql if self.is_sqlite else sql.replace("?", "%s"), params)

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return list(self.execute(sql, params).fetchall())

    def table(self, columns: str, rest: str, params: Sequence[object] = ()) -> list[Sequence[Any]]:
        """`SELECT columns rest` in no order, for many rows on a busy thread. SQLite's driver lets go of the interpreter
        lock at every row, and may wait 5 ms to get it back: so all of them come as one."""
        if not self.is_sqlite:
            return list(self.rows(f"SELECT {columns} {rest}", params))
        ((found,),) = self.rows(f"SELECT json_group_array(json_array({columns})) {rest}", params)
        rows: list[Sequence[Any]] = msgspec.json.decode(found)
        return rows

    def insert_many(
        self, table: str, columns: Sequence[str], values: Sequence[Sequence[object]], *, replace: bool = False
    ) -> None:
        """Insert rows in statements of bounded size; with `replace`, in place of those with the same key."""
        per_statement = max(1, 900 // len(columns)) if self.is_sqlite else 500
        head = f"{'REPLACE' if replace else 'INSERT'} INTO {table} ({', '.join(columns)}) VALUES "
        one = f"({', '.join('?' * len(columns))})"
        for start in range(0, len(values), per_statement):
            part = values[start : start + per_statement]
            self.execute(head + ", ".join([one] * len(part)), [v for row in part for v in row])

    def clock(self) -> int:
        return int(self.rows(f"SELECT {self.now_ms}")[0][0])

    def write(self, fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run `fn` in one write transaction, again from the start when the error is one that passes.

        `fn` must read what it needs inside. Called within a write transaction it joins that one."""
        if self.db.in_transaction():
            return fn(*args, **kwargs)
        self._local.is_in_doubt = False
        result: R = self._patiently(self._write_once, fn, *args, **kwargs)
        waiting, self._local.callbacks = self._callbacks(), []
        for callback in waiting:
            callback()
        return result

    @property
    def is_writing(self) -> bool:
        """Whether this thread is within a write transaction."""
        return bool(self.db.in_transaction())

    @property
    def is_in_doubt(self) -> bool:
        """For what runs inside a write transaction: whether an earlier try of it may have committed, since only the
        reply to its commit was lost. Where it was rolled back, nothing is in doubt."""
        found: bool = self._local.is_in_doubt
        return found

    def before_commit(self, key: str, callback: Callable[[], None]) -> None:
        """Call back at the end of this thread's transaction, or at once where there is none: for rows that many want
        to change, so that each is locked as late as can be, and in order of `key`, so that two transactions never wait
        for each other in a circle. What it raises rolls the transaction back."""
        if self.db.in_transaction():
            self._local.last_changes.append((key, callback))
        else:
            callback()

    def after_commit(self, callback: Callable[[], None]) -> None:
        """Call back once this thread's transaction has committed, or at once where there is none. A transaction that
        fails forgets its callbacks."""
        if self.db.in_transaction():
            self._callbacks().append(callback)
        else:
            callback()

    def _callbacks(self) -> list[Callable[[], None]]:
        if not hasattr(self._local, "callbacks"):
            self._local.callbacks = []
        found: list[Callable[[], None]] = self._local.callbacks
        return found

    def read(self, fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run `fn`, which only reads, again when the error is one that passes."""
        if self.db.in_transaction():
            return fn(*args, **kwargs)
        return self._patiently(fn, *args, **kwargs)

    def check(self) -> None:
        """Raise RowsUnavailable unless the database answers now."""
        try:
            self.clock()
        except peewee.PeeweeException as exc:
            self.close_connection()
            raise RowsUnavailable(f"the database does not answer: {exc}") from exc

    def close_connection(self) -> None:
        """Close this thread's connection."""
        if not self.db.is_closed():
            self.db.close()

    def _write_once(self, fn: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        self._local.callbacks, self._local.last_changes = [], []
        if self._checkpointer is None:
            with self.db.atomic():
                return self._up_to_commit(fn, *args, **kwargs)
        with self._file_lock(), self.db.atomic("IMMEDIATE"):
            result = self._up_to_commit(fn, *args, **kwargs)
        self._checkpointer.look()
        return result

    def _up_to_commit(self, fn: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        result = fn(*args, **kwargs)
        for _, change in sorted(self._local.last_changes, key=itemgetter(0)):
            change()
        self._local.is_in_doubt = True
        return result

    def _patiently(self, fn: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        for delay_s in (*self._retry_delays_s, None):
            try:
                return fn(*args, **kwargs)
            except (peewee.OperationalError, peewee.InterfaceError, peewee.InternalError) as exc:
                self.close_connection()
                if delay_s is None or not _passes(exc):
                    raise RowsUnavailable(f"the database can't be used now: {exc}") from exc
                log.debug("database error, trying again in %s s: %s", delay_s, exc)
                time.sleep(delay_s * random.uniform(0.5, 1.5))
        raise AssertionError("unreachable")

    @contextmanager
    def _file_lock(self) -> Iterator[None]:
        """Writers queue up on a file lock: SQLite's own waiting is unfair and slow under load."""
        fd: int | None = getattr(self._local, "lock_fd", None)
        if fd is None:
            assert self._lock_path is not None
            fd = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._local.lock_fd = fd
        _wait_for_lock(fd)
        try:
            yield
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)


def _wait_for_lock(fd: int) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        # Who has it goes on at once: all writers, of other processes too, wait for this one then.
        with stepping_aside(waits_again=False):
            fcntl.flock(fd, fcntl.LOCK_EX)


def open_rows(url: str, *, retry_delays_s: Sequence[float] = PATIENT_S) -> Rows:
    """Open the database that the address names and point the models at it. Connects on first use.

    An error that passes is tried again after each of the delays."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        path = Path(unquote(parts.path)[1:])
        rows = Rows(_sqlite(path), lock_path=path.with_name(path.name + ".lock"), retry_delays_s=retry_delays_s)
    elif parts.scheme == "mysql":
        rows = Rows(_mysql(url), lock_path=None, retry_delays_s=retry_delays_s)
    else:
        raise SettingsError(f"database.url: unknown scheme {parts.scheme!r}; allowed: sqlite, mysql")
    database_proxy.initialize(rows.db)
    rows.db.bind(MODELS)
    return rows


def _sqlite(path: Path) -> Database:
    pragmas: dict[str, str | int] = {
        "journal_mode": "wal",
        "synchronous": "normal",
        "busy_timeout": 30_000,
        "cache_size": -32_000,
        # Threads read the same pages without a copy for each of them.
        "mmap_size": _MMAP_BYTES,
        "wal_autocheckpoint": 0,  # by the Checkpointer
        "journal_size_limit": LARGEST_FILE_BYTES,
    }
    return SqliteDatabase(str(path), pragmas=pragmas, timeout=30)


class _MySQL(MySQLDatabase):
    def _connect(self) -> Any:
        """Readers must see what committed just now; and nobody waits long for a row whose holder has vanished."""
        connection = super()._connect()  # type: ignore[misc]
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            cursor.execute(f"SET SESSION innodb_lock_wait_timeout = {_LOCK_WAIT_S}")
        return connection


def _mysql(url: str) -> Database:
    from pymysql.constants import CLIENT

    parts = urlsplit(url)
    return _MySQL(
        unquote(parts.path.lstrip("/")),
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 3306,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        charset="utf8mb4",
        connect_timeout=10,
        read_timeout=60,
        write_timeout=60,
        client_flag=CLIENT.FOUND_ROWS,  # an unchanged renewal must count as held
    )


def _passes(exc: peewee.PeeweeException) -> bool:
    """peewee wraps the driver's error and keeps it as `orig`."""
    cause = getattr(exc, "orig", None) or exc
    if isinstance(cause, sqlite3.Error):
        return "locked" in str(cause) or "busy" in str(cause)
    code = cause.args[0] if cause.args else None
    return isinstance(exc, peewee.InterfaceError) or code in _MYSQL_PASSING
