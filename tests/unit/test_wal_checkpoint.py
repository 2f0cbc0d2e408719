"""SQLite's log is moved beside the writers, and never grows without end."""

from __future__ import annotations

import fcntl
import multiprocessing
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
_ROW_BYTES = 3_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rows.db"


def _opened(path: Path) -> sqlite3.Connection:
    opened = sqlite3.connect(path, isolation_level=None)
    opened.execute("PRAGMA journal_mode = wal")
    opened.execute("PRAGMA wal_autocheckpoint = 0")
    opened.execute("PRAGMA synchronous = NORMAL")
    opened.execute(f"PRAGMA journal_size_limit = {8 * _LARGEST}")
    return opened


@pytest.fixture
def link(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(_opened(path)) as opened:
        opened.execute("CREATE TABLE t (x INTEGER PRIMARY KEY, body TEXT)")
        yield opened


@pytest.fixture
def checkpointer(path: Path) -> Checkpointer:
    return Checkpointer(path, _lock(path), _LARGEST)


def _lock(path: Path) -> Path:
    return path.with_name("rows.db.lock")


def _file_bytes(path: Path) -> int:
    return path.with_name("rows.db-wal").stat().st_size


def _insert(link: sqlite3.Connection, count: int) -> None:
    link.executemany("INSERT INTO t (body) VALUES (?)", [("x" * _ROW_BYTES,)] * count)


def _is_idle() -> bool:
    return all(thread.name != "checkpoint" for thread in threading.enumerate())


def _settled(condition: Callable[[], bool], what: str) -> None:
    wait_until(lambda: condition() and _is_idle(), PATIENCE_S, what)


def _looked(checkpointer: Checkpointer) -> None:
    checkpointer.look()
    _settled(lambda: True, "the end of the move")


def _in_the_file(path: Path) -> int:
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as only_the_file:
        return int(only_the_file.execute("SELECT count(*) FROM t").fetchone()[0])


def test_a_log_that_has_grown_is_moved(link: sqlite3.Connection, checkpointer: Checkpointer, path: Path) -> None:
    _insert(link, 100)
    assert checkpointer.is_as_long_as(_LARGEST)
    _looked(checkpointer)
    assert _in_the_file(path) == 100


def test_the_logs_file_is_written_from_its_beginning_again(
    link: sqlite3.Connection, checkpointer: Checkpointer, path: Path
) -> None:
    sizes = []
    for _ in range(5):
        _insert(link, 100)
        assert checkpointer.is_as_long_as(_LARGEST)
        _looked(checkpointer)
        sizes.append(_file_bytes(path))
        _insert(link, 1)
        assert not checkpointer.is_as_long_as(_LARGEST)
    assert max(sizes) <= sizes[0] * 1.2
    assert link.execute("SELECT count(*) FROM t").fetchone() == (505,)


def test_its_length_is_that_of_what_was_written_since_it_began(
    link: sqlite3.Connection, checkpointer: Checkpointer, path: Path
) -> None:
    _insert(link, 60)
    whole = _file_bytes(path)
    assert checkpointer.is_as_long_as(whole) and not checkpointer.is_as_long_as(whole + 8_000)
    link.execute("PRAGMA wal_checkpoint(PASSIVE)")
    _insert(link, 30)
    assert _file_bytes(path) == whole
    assert checkpointer.is_as_long_as(whole // 3) and not checkpointer.is_as_long_as(whole)


def test_there_is_no_log(checkpointer: Checkpointer, path: Path) -> None:
    assert not checkpointer.is_as_long_as(0)
    path.with_name("rows.db-wal").touch()
    assert not checkpointer.is_as_long_as(0)


def test_nobody_looks_into_the_index_of_the_log(link: sqlite3.Connection, checkpointer: Checkpointer) -> None:
    """To open and close that file would end the locks of this process: another would take it for unused, and cut it."""
    _insert(link, 100)
    link.execute("BEGIN")
    assert link.execute("SELECT count(*) FROM t").fetchone() == (100,)
    held = _locks_of_this_process()
    assert held
    _looked(checkpointer)
    assert _locks_of_this_process() >= held
    link.execute("COMMIT")


def _locks_of_this_process() -> set[str]:
    """Places of POSIX locks: device, inode and bytes."""
    lines = [line.split() for line in Path("/proc/locks").read_text(encoding="ascii").splitlines()]
    return {" ".join(line[5:]) for line in lines if line[1] == "POSIX" and line[4] == str(os.getpid())}


def test_writers_are_not_kept_out_while_it_is_moved(
    link: sqlite3.Connection, checkpointer: Checkpointer, path: Path
) -> None:
    """One of them has the lock all the time, and the log is moved beside it."""
    _insert(link, 40)
    with _lock(path).open("ab") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        _looked(checkpointer)
        assert _in_the_file(path) == 40


def test_a_short_log_stays(link: sqlite3.Connection, checkpointer: Checkpointer, path: Path) -> None:
    before = path.stat().st_size
    _insert(link, 5)
    checkpointer.look()
    assert _is_idle()
    assert path.stat().st_size == before


def test_a_reader_that_stays_keeps_nobody_waiting(
    link: sqlite3.Connection, checkpointer: Checkpointer, path: Path
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        _insert(link, 10)
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM t").fetchone() == (10,)
        _insert(link, 15)
        _looked(checkpointer)
        _insert(link, 1)
        checkpointer.look()
        assert _is_idle(), "not tried again before the log has grown once more"
        for _ in range(20):
            _insert(link, 100)
            _looked(checkpointer)
        assert reader.execute("SELECT count(*) FROM t").fetchone() == (10,)
        assert _file_bytes(path) > 8 * _LARGEST
        reader.execute("COMMIT")
    _insert(link, 100)
    _looked(checkpointer)
    _insert(link, 1)
    assert _file_bytes(path) <= 8 * _LARGEST, "cut once nobody reads in it"
    assert link.execute("SELECT count(*) FROM t").fetchone() == (2127,)


def test_one_that_writers_never_leave_alone_ends_while_they_wait(
    link: sqlite3.Connection, checkpointer: Checkpointer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.db.wal_checkpoint._is_moved", lambda _: False)
    _insert(link, 400)
    assert checkpointer.is_as_long_as(3 * _LARGEST)
    _looked(checkpointer)
    assert _in_the_file(path) == 400
    _insert(link, 1)
    assert not checkpointer.is_as_long_as(_LARGEST)


def test_one_process_at_a_time(link: sqlite3.Connection, checkpointer: Checkpointer, path: Path) -> None:
    other = Checkpointer(path, _lock(path), _LARGEST)
    for _ in range(5):
        _insert(link, 100)
        checkpointer.look()
        other.look()
    _settled(lambda: True, "the end of both")
    assert link.execute("SELECT count(*) FROM t").fetchone() == (500,)
    assert link.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def _write_and_read(path: Path, number: int, commits: int) -> None:
    """One process of several: two threads write in turns with all others, one reads, and everybody looks after the
    log."""
    checkpointer = Checkpointer(path, _lock(path), _LARGEST)
    is_over = threading.Event()

    def write(thread: int) -> None:
        with closing(_opened(path)) as link, _lock(path).open("ab") as turn:
            for commit in range(commits):
                fcntl.flock(turn, fcntl.LOCK_EX)
                link.execute("BEGIN IMMEDIATE")
                link.execute("INSERT INTO t (body) VALUES (?)", (f"{number} {thread} {commit} {'x' * _ROW_BYTES}",))
                link.execute("COMMIT")
                fcntl.flock(turn, fcntl.LOCK_UN)
                checkpointer.look()
                is_over.wait(0.002)

    def read() -> None:
        with closing(_opened(path)) as link:
            link.execute("PRAGMA mmap_size = 1073741824")
            seen = 0
            while not is_over.is_set():
                ((found,),) = link.execute("SELECT count(*) FROM t WHERE length(body) > 0").fetchall()
                assert found >= seen
                seen = found
                is_over.wait(0.01)

    writers = [threading.Thread(target=write, args=(thread,)) for thread in range(2)]
    reader = threading.Thread(target=read)
    for one in (*writers, reader):
        one.start()
    for one in writers:
        one.join()
    is_over.set()
    reader.join()
    _settled(lambda: True, "the end of the last move")


def test_many_processes_lose_nothing_and_the_file_stays_short(link: sqlite3.Connection, path: Path) -> None:
    """None of them ends by a signal or by `database is locked`."""
    processes, commits = 4, 300
    context = multiprocessing.get_context("spawn")
    started = [context.Process(target=_write_and_read, args=(path, number, commits)) for number in range(processes)]
    for one in started:
        one.start()
    sizes = []
    while any(one.is_alive() for one in started):
        sizes.append(_file_bytes(path))
        started[0].join(0.05)
        started[-1].join(0.05)
    assert [one.exitcode for one in started] == [0] * processes
    assert link.execute("SELECT count(DISTINCT substr(body, 1, 12)) FROM t").fetchone() == (processes * 2 * commits,)
    assert link.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    pages_written = 3 * processes * 2 * commits  # a row has a page of its own, beside those that lead to it
    assert max(sizes) < pages_written * 4096 / 2
