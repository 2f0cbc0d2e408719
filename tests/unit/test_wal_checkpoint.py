"""SQLite's log is moved beside the writers, and never grows without end."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from api.db.wal_checkpoint import Checkpointer
from tests.waiting import PATIENCE_S, wait_until

_LARGEST = 200_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rows.db"


@pytest.fixture
def link(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        opened.execute("PRAGMA journal_mode = wal")
        opened.execute("PRAGMA wal_autocheckpoint = 0")
        opened.execute("CREATE TABLE t (x INTEGER PRIMARY KEY, body TEXT)")
        yield opened


@pytest.fixture
def checkpointer(path: Path) -> Checkpointer:
    return Checkpointer(path, path.with_name("rows.db.lock"), _LARGEST)


def _insert(link: sqlite3.Connection, count: int) -> None:
    link.executemany("INSERT INTO t (body) VALUES (?)", [("x" * 3_000,)] * count)


def _is_idle() -> bool:
    return all(thread.name != "checkpoint" for thread in threading.enumerate())


def _settled(condition: Callable[[], bool], what: str) -> None:
    wait_until(lambda: condition() and _is_idle(), PATIENCE_S, what)


def test_a_log_that_has_grown_is_moved_and_ends(
    link: sqlite3.Connection, checkpointer: Checkpointer, path: Path
) -> None:
    _insert(link, 100)
    assert checkpointer.log_bytes() > _LARGEST
    checkpointer.look()
    _settled(lambda: checkpointer.log_bytes() == 0, "an empty log")
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as only_the_file:
        assert only_the_file.execute("SELECT count(*) FROM t").fetchone() == (100,)


def test_nobody_looks_into_the_index_of_the_log(link: sqlite3.Connection, checkpointer: Checkpointer) -> None:
    """To open and close that file would end the locks of this process: another would take it for unused, and cut it."""
    _insert(link, 100)
    link.execute("BEGIN")
    assert link.execute("SELECT count(*) FROM t").fetchone() == (100,)
    held = _locks_of_this_process()
    assert held
    checkpointer.look()
    _settled(lambda: True, "the end of the try")
    assert _locks_of_this_process() >= held
    link.execute("COMMIT")


def _locks_of_this_process() -> set[str]:
    """Places of POSIX locks: device, inode and bytes."""
    lines = [line.split() for line in Path("/proc/locks").read_text(encoding="ascii").splitlines()]
    return {" ".join(line[5:]) for line in lines if line[1] == "POSIX" and line[4] == str(os.getpid())}


def test_writers_are_not_kept_out_while_it_is_moved(
    link: sqlite3.Connection, checkpointer: Checkpointer, path: Path
) -> None:
    """However often somebody writes meanwhile: it ends, with all that was written."""
    _insert(link, 100)
    lock = path.with_name("rows.db.lock")
    checkpointer.look()
    for _ in range(50):
        with lock.open("ab") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            _insert(link, 1)
    _settled(lambda: True, "the end of the move")
    _insert(link, 100)
    checkpointer.look()
    _settled(lambda: checkpointer.log_bytes() == 0, "an empty log")
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as only_the_file:
        assert only_the_file.execute("SELECT count(*) FROM t").fetchone() == (250,)


def test_a_short_log_stays(link: sqlite3.Connection, checkpointer: Checkpointer) -> None:
    _insert(link, 5)
    before = checkpointer.log_bytes()
    checkpointer.look()
    assert _is_idle()
    assert 0 < checkpointer.log_bytes() == before


def test_a_reader_that_stays_keeps_nobody_waiting(
    link: sqlite3.Connection, checkpointer: Checkpointer, path: Path
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        _insert(link, 50)
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM t").fetchone() == (50,)
        _insert(link, 50)
        checkpointer.look()
        _settled(lambda: True, "the end of the try")
        assert checkpointer.log_bytes() > _LARGEST
        checkpointer.look()
        assert _is_idle(), "not tried again before the log has grown once more"
        assert reader.execute("SELECT count(*) FROM t").fetchone() == (50,)
        reader.execute("COMMIT")
    _insert(link, 100)
    checkpointer.look()
    _settled(lambda: checkpointer.log_bytes() == 0, "an empty log")
    assert link.execute("SELECT count(*) FROM t").fetchone() == (200,)


def test_one_process_at_a_time(link: sqlite3.Connection, checkpointer: Checkpointer, path: Path) -> None:
    other = Checkpointer(path, path.with_name("rows.db.lock"), _LARGEST)
    for _ in range(5):
        _insert(link, 100)
        checkpointer.look()
        other.look()
    _settled(lambda: True, "the end of both")
    assert link.execute("SELECT count(*) FROM t").fetchone() == (500,)
    assert link.execute("PRAGMA integrity_check").fetchone() == ("ok",)
