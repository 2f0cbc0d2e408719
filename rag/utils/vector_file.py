"""A SQLite file of bounded size in which rows are found by a key, and those go first that were used longest ago.
Several processes may use it; whatever kills one of them leaves it whole. Errors are the caller's to judge.

`place` grows with every row that is written or used again, so the rows stand in the order in which they go, and what
goes frees whole pages."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rag.utils.embedded_folder import try_lock

_VERSION = 1
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE vector(place INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, used_s INTEGER NOT NULL, data BLOB NOT NULL);
PRAGMA user_version = {_VERSION};
COMMIT;
"""
_PAGE_BYTES = 16384
_LOG_PAGES = 128
_BUSY_S = 2.0
_LOOK_S = 0.01
# Keys in one statement.
_SLICE = 500
# A use is noted so often at most: most uses write nothing.
_USED_STEP_S = 600
# Room that is made at once, over what is needed: it is not made at every write.
_SPARE = 0.05
_PASSING = (
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM),
    *(sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH),
)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether it is the file's contents that are wrong, and not its lock, its disk or its folder."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF not in _PASSING


class VectorFile:
    """Not thread-safe. Raises sqlite3.Error and OSError; a connection that raised is given up."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._path = path
        self._most_bytes = most_bytes
        self._link: sqlite3.Connection | None = None
        self._inode = 0

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The data of those keys that are there."""
        found: dict[bytes, bytes] = {}
        with self._connected() as link:
            for part in _slices(keys):
                found.update(link.execute(f"SELECT key, data FROM vector WHERE key IN ({_marks(part)})", part))
        return found

    def note_use(self, keys: Sequence[bytes], now_s: int) -> None:
        """These are the last to go from now on, if that was not said a short while ago."""
        since_s = now_s - _USED_STEP_S
        with self._connected() as link:
            old: list[bytes] = []
            for part in _slices(keys):
                sql = f"SELECT key FROM vector WHERE key IN ({_marks(part)}) AND used_s <= ?"
                old += [key for (key,) in link.execute(sql, (*part, since_s))]
            if old:
                with _transaction(link):
                    link.executemany(
                        "UPDATE vector SET place = (SELECT max(place) + 1 FROM vector), used_s = ? WHERE key = ?",
                        [(now_s, key) for key in old],
                    )

    def write(self, rows: Mapping[bytes, bytes], now_s: int) -> None:
        """Rows that are more than half of all there is room for are not kept."""
        need_bytes = sum(len(key) * 2 + len(data) + 64 for key, data in rows.items())
        if not rows or need_bytes > self._most_bytes // 2:
            return
        with self._connected() as link, _transaction(link):
            self._make_room(link, need_bytes)
            link.executemany(
                "INSERT INTO vector(key, used_s, data) VALUES (?, ?, ?)"
                " ON CONFLICT(key) DO UPDATE SET used_s = excluded.used_s, data = excluded.data",
                [(key, now_s, data) for key, data in rows.items()],
            )

    def remake(self) -> None:
        """Put an empty file in the place of the one that was used last, unless another process has done so."""
        inode = self._inode
        self.close()
        with self._alone():
            if inode in (0, self._inode_now()):
                self._remove()

    def close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()

    @contextlib.contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        if self._link is not None and self._inode_now() != self._inode:
            self.close()  # it was made anew, or deleted
        link, self._link = self._link or self._connect(), None
        with contextlib.ExitStack() as on_error:
            on_error.callback(link.close)
            yield link
            on_error.pop_all()
        self._link = link

    def _connect(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._alone(), contextlib.ExitStack() as on_error:
            if self._size() > self._most_bytes * 5 // 4 + 8 * _PAGE_BYTES:
                self._remove()  # there is less room than there was: pages that are free stay in a file
            link = sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
            on_error.callback(link.close)
            self._inode = self._inode_now()
            if link.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                link.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
                link.execute("PRAGMA journal_mode = WAL")
                link.executescript(_SCHEMA)
            link.execute("PRAGMA synchronous = NORMAL")
            link.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
            link.execute(f"PRAGMA journal_size_limit = {_LOG_PAGES * _PAGE_BYTES}")
            on_error.pop_all()
        return link

    def _make_room(self, link: sqlite3.Connection, need_bytes: int) -> None:
        if self._used_bytes(link) + need_bytes <= self._most_bytes:
            return
        target_bytes = int(self._most_bytes * (1 - _SPARE)) - need_bytes
        while (used_bytes := self._used_bytes(link)) > target_bytes:
            (rows,) = link.execute("SELECT count(*) FROM vector").fetchone()
            if not rows:
                return
            part = int(rows * (used_bytes - target_bytes) / used_bytes) + 1
            link.execute("DELETE FROM vector WHERE place IN (SELECT place FROM vector ORDER BY place LIMIT ?)", (part,))

    def _used_bytes(self, link: sqlite3.Connection) -> int:
        pages, free = (link.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count"))
        return int(pages - free) * _PAGE_BYTES

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """No other process opens or removes the file meanwhile. Raises TimeoutError where one takes too long."""
        with self._beside(".lock").open("ab") as file:
            deadline_s = time.monotonic() + _BUSY_S
            while not try_lock(file.fileno()):
                if time.monotonic() > deadline_s:
                    raise TimeoutError(f"another process holds {file.name}")
                time.sleep(_LOOK_S)
            yield

    def _remove(self) -> None:
        """SQLite leaves the files of a new one alone when a process closes a database that was removed."""
        for path in (self._path, self._beside("-wal"), self._beside("-shm")):
            path.unlink(missing_ok=True)

    def _beside(self, suffix: str) -> Path:
        return self._path.with_name(self._path.name + suffix)

    def _inode_now(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            return self._path.stat().st_ino
        return 0

    def _size(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            return self._path.stat().st_size
        return 0


@contextlib.contextmanager
def _transaction(link: sqlite3.Connection) -> Iterator[None]:
    """Its connection is closed where it raises, which rolls it back."""
    link.execute("BEGIN IMMEDIATE")
    yield
    link.execute("COMMIT")


def _slices(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(keys), _SLICE):
        yield keys[start : start + _SLICE]


def _marks(part: Sequence[bytes]) -> str:
    return ",".join("?" * len(part))
