"""Moving SQLite's log of changes into the database file, beside the writers. SQLite itself would do it inside a commit,
and whoever wants to write meanwhile would wait for the disk.

The log's file is not cut: once all of it has been moved and nobody reads in it, the next writer begins at its start
again by itself. To cut it kept all writers waiting, and to make it longer again those who sync any other file. One that
has grown for a reader's sake is cut by SQLite at its next beginning (`LARGEST_FILE_BYTES`, as journal_size_limit)."""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

log = logging.getLogger(__name__)

_LARGEST_LOG_BYTES = 16 * 1024 * 1024
LARGEST_FILE_BYTES = 8 * _LARGEST_LOG_BYTES
# From so many times its length on, writers are kept out until the log has ended; and for how long they are, for the
# sake of readers that still look into it.
_WAITS_FOR_READERS_MS = ((8, 250), (3, 20))
_TRIES_BESIDE_WRITERS = 6
# https://www.sqlite.org/fileformat2.html#walformat: bytes of a page, and the salts that the log and its frames share.
_HEAD_BYTES, _FRAME_HEAD_BYTES = 32, 24
_PAGE_BYTES, _HEAD_SALTS, _FRAME_SALTS = slice(8, 12), slice(16, 24), slice(8, 16)


class Checkpointer:
    """Of one database file, in every process that writes to it; one of them works at a time. `lock_path` is the file
    whose lock writers take in turns."""

    def __init__(self, path: Path, lock_path: Path, largest_bytes: int = _LARGEST_LOG_BYTES) -> None:
        self._path = path
        self._log_path = path.with_name(path.name + "-wal")
        self._turn_path = path.with_name(path.name + ".checkpoint")
        self._lock_path = lock_path
        self._largest_bytes = largest_bytes
        # The log that was moved last, and how long it has to become to be moved once more.
        self._moved_log = b""
        self._due_bytes = largest_bytes
        self._is_working = threading.Lock()

    def look(self) -> None:
        """After a commit: have the log moved once it has grown. Looking costs a few microseconds. A reader that stays
        keeps the log from beginning again: it is not moved at every commit then."""
        found = self._log_of(self._largest_bytes)
        if not found or (found == self._moved_log and not self._log_of(self._due_bytes)):
            return
        if self._is_working.acquire(blocking=False):
            if found != self._moved_log:
                self._moved_log, self._due_bytes = found, self._largest_bytes
            self._due_bytes += self._largest_bytes
            threading.Thread(target=self._work, name="checkpoint", daemon=True).start()

    def is_as_long_as(self, wanted_bytes: int) -> bool:
        """Whether the log, not its file, has come so far since it began at its start."""
        return bool(self._log_of(wanted_bytes))

    def _log_of(self, wanted_bytes: int) -> bytes:
        """What tells this log from earlier ones in the same file, or b"" where it is shorter: the frame there is of an
        older one, or there is none. SQLite's own index knows the length too, and must not be looked into: to close that
        file ends all locks that this process has on it, and another would cut it off under everybody's feet. On the
        log's own file SQLite has no locks."""
        try:
            file = os.open(self._log_path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # nothing was written yet, or the last connection was closed
            return b""
        try:
            head = os.pread(file, _HEAD_BYTES, 0)
            frame_bytes = _FRAME_HEAD_BYTES + int.from_bytes(head[_PAGE_BYTES], "big")
            last_frame = max(0, (wanted_bytes - _HEAD_BYTES) // frame_bytes - 1)
            frame = os.pread(file, _FRAME_HEAD_BYTES, _HEAD_BYTES + last_frame * frame_bytes)
        finally:
            os.close(file)
        return head[_HEAD_SALTS] if frame[_FRAME_SALTS] == head[_HEAD_SALTS] else b""

    def _work(self) -> None:
        try:
            with self._turn_path.open("wb") as turn:
                fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._move_log()
        except BlockingIOError:
            pass  # another process is at it
        except (sqlite3.Error, OSError) as exc:
            log.warning("the database's log can't be moved now: %s", exc)
        finally:
            self._is_working.release()

    def _move_log(self) -> None:
        with closing(sqlite3.connect(self._path, isolation_level=None)) as link:
            link.execute("PRAGMA synchronous = NORMAL")
            for _ in range(_TRIES_BESIDE_WRITERS):
                if _is_moved(link):
                    break
            for times, wait_ms in _WAITS_FOR_READERS_MS:
                if self.is_as_long_as(times * self._largest_bytes):
                    self._end(link, wait_ms)
                    break

    def _end(self, link: sqlite3.Connection, wait_ms: int) -> None:
        link.execute(f"PRAGMA busy_timeout = {wait_ms}")
        with self._lock_path.open("ab") as writers:
            fcntl.flock(writers, fcntl.LOCK_EX)
            link.execute("PRAGMA wal_checkpoint(RESTART)")


def _is_moved(link: sqlite3.Connection) -> bool:
    """Whether nobody wrote while the log was moved: all of it is in the database's file then, and who writes next
    begins at its start."""
    version = _version(link)
    link.execute("PRAGMA wal_checkpoint(PASSIVE)")
    return _version(link) == version


def _version(link: sqlite3.Connection) -> int:
    """Another one after every commit of others."""
    return int(link.execute("PRAGMA data_version").fetchone()[0])
