"""Moving SQLite's log of changes into the database file, beside the writers. SQLite itself would do it inside a commit,
and whoever wants to write meanwhile would wait for the disk."""

from __future__ import annotations

import fcntl
import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

log = logging.getLogger(__name__)

_LARGEST_LOG_BYTES = 32 * 1024 * 1024
# How long writers are kept out for the sake of a reader that still looks into the log.
_WAIT_FOR_READERS_MS = 20
_TRIES_BESIDE_WRITERS = 6


class Checkpointer:
    """Of one database file, in every process that writes to it; one of them works at a time. `lock_path` is the file
    whose lock writers take in turns."""

    def __init__(self, path: Path, lock_path: Path, largest_bytes: int = _LARGEST_LOG_BYTES) -> None:
        self._path = path
        self._log_path = path.with_name(path.name + "-wal")
        self._turn_path = path.with_name(path.name + ".checkpoint")
        self._lock_path = lock_path
        self._largest_bytes = largest_bytes
        self._due_bytes = largest_bytes
        self._is_working = threading.Lock()

    def look(self) -> None:
        """After a commit: have the log moved once it has grown. Looking costs a few microseconds."""
        if self.log_bytes() >= self._due_bytes and self._is_working.acquire(blocking=False):
            threading.Thread(target=self._work, name="checkpoint", daemon=True).start()

    def log_bytes(self) -> int:
        """By its file's size. SQLite's own index of the log knows more, and must not be looked into: to close that file
        ends all locks that this process has on it, and another process would cut it off under everybody's feet."""
        try:
            return self._log_path.stat().st_size
        except FileNotFoundError:  # nothing was written yet, or the last connection was closed
            return 0

    def _work(self) -> None:
        try:
            with self._turn_path.open("wb") as turn:
                fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._move_log()
        except BlockingIOError:
            pass  # another process is at it
        except (sqlite3.Error, OSError) as exc:
            log.warning("the database's log of %d bytes can't be moved now: %s", self.log_bytes(), exc)
        finally:
            # A reader that stays keeps the log from ending: not tried again at every commit.
            left_bytes = self.log_bytes()
            self._due_bytes = self._largest_bytes + (left_bytes if left_bytes >= self._largest_bytes else 0)
            self._is_working.release()

    def _move_log(self) -> None:
        with closing(sqlite3.connect(self._path, isolation_level=None)) as link:
            link.execute("PRAGMA synchronous = NORMAL")
            link.execute(f"PRAGMA busy_timeout = {_WAIT_FOR_READERS_MS}")
            for _ in range(_TRIES_BESIDE_WRITERS):
                if self._has_ended(link):
                    return
            with self._alone():
                _end(link)

    def _has_ended(self, link: sqlite3.Connection) -> bool:
        """Moving it is done beside the writers, with all the waiting for the disk. They are kept out only to end it,
        and only where none of them has written meanwhile: there is nothing left to wait for then."""
        version = _version(link)
        link.execute("PRAGMA wal_checkpoint(PASSIVE)")
        with self._alone():
            is_moved = _version(link) == version
            if is_moved:
                _end(link)
            return is_moved

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._lock_path.open("ab") as writers:
            fcntl.flock(writers, fcntl.LOCK_EX)
            yield


def _end(link: sqlite3.Connection) -> None:
    link.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _version(link: sqlite3.Connection) -> int:
    """Another one after every commit of others."""
    return int(link.execute("PRAGMA data_version").fetchone()[0])
