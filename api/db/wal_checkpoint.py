"""Moving SQLite's log of changes into the database file, beside the writers. SQLite itself would do it inside a commit,
and whoever wants to write meanwhile would wait for the disk."""

from __future__ import annotations

import fcntl
import logging
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

log = logging.getLogger(__name__)

_LARGEST_LOG_BYTES = 32 * 1024 * 1024
# How long writers are kept out for the sake of a reader that still looks into the log.
_WAIT_FOR_READERS_MS = 20


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
            # The bulk of it beside the writers; what they wrote meanwhile is little, and moved without them.
            link.execute("PRAGMA wal_checkpoint(PASSIVE)")
            link.execute(f"PRAGMA busy_timeout = {_WAIT_FOR_READERS_MS}")
            with self._lock_path.open("ab") as writers:
                fcntl.flock(writers, fcntl.LOCK_EX)
                link.execute("PRAGMA wal_checkpoint(TRUNCATE)")
