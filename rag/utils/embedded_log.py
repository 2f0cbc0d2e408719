"""The SQLite file of the embedded index: its tables, its connections, and the log that followers read.

A chunk's row number is given once and never again: a chunk written anew gets a new row, so followers only
ever add rows and drop them. What is in the tables is known to embedded_writes.py and embedded_reads.py."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from common.errors import DatabaseTooNew, IndexUnavailable
from rag.utils.embedded_folder import Folder, Mark, locked, sync_folder

LOCK_TIMEOUT_S = 10.0
_VERSION = 4
_SCHEMA = """
CREATE TABLE dataset(
    number INTEGER PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, dimension INTEGER NOT NULL,
    UNIQUE (tenant, name));
CREATE TABLE chunk(
    row INTEGER PRIMARY KEY, dataset INTEGER NOT NULL, document TEXT NOT NULL, generation INTEGER NOT NULL,
    task_no INTEGER NOT NULL, claim_no INTEGER NOT NULL, page INTEGER NOT NULL, ordinal INTEGER NOT NULL,
    id TEXT NOT NULL, available INTEGER NOT NULL, token_count INTEGER NOT NULL, created_ms INTEGER NOT NULL,
    kind TEXT NOT NULL, extra BLOB, text TEXT NOT NULL, terms TEXT NOT NULL);
CREATE INDEX chunk_id ON chunk(id);
CREATE INDEX chunk_place ON chunk(dataset, document, generation, task_no, claim_no);
CREATE TABLE vector(row INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE log(
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, nonce TEXT NOT NULL, dataset INTEGER NOT NULL,
    operation TEXT NOT NULL, rows BLOB NOT NULL, changes INTEGER NOT NULL, written_ms INTEGER NOT NULL);
CREATE INDEX log_dataset ON log(dataset, sequence);
CREATE TABLE state(
    one INTEGER PRIMARY KEY CHECK (one = 1), last_row INTEGER NOT NULL, changes INTEGER NOT NULL,
    compacted INTEGER NOT NULL);
INSERT INTO state VALUES (1, 0, 0, 0);
"""
# What each version has that the one before had not.
_SINCE = {
    2: """
CREATE TABLE copy(
    number INTEGER PRIMARY KEY, source_dataset INTEGER NOT NULL, source_document TEXT NOT NULL,
    source_generation INTEGER NOT NULL, dataset INTEGER NOT NULL, document TEXT NOT NULL, generation INTEGER NOT NULL,
    claim_no INTEGER NOT NULL, created_ms INTEGER NOT NULL);
""",
    3: """
ALTER TABLE copy ADD COLUMN chunks INTEGER NOT NULL DEFAULT 0;
CREATE INDEX copy_place ON copy(dataset, document, generation);
""",
    4: """
CREATE TABLE adopted(
    number INTEGER PRIMARY KEY, dataset INTEGER NOT NULL, document TEXT NOT NULL, generation INTEGER NOT NULL,
    at_ms INTEGER NOT NULL);
""",
}
Operation = Literal["put", "drop", "copy"]
Rows = NDArray[np.int64]


class Extra(msgspec.Struct, frozen=True, array_like=True):
    """What most chunks have little of. New fields go to the end and have a default: old chunks lack them."""

    headings: tuple[str, ...] = ()
    positions: tuple[tuple[int, int, int, int, int], ...] = ()
    tags: tuple[str, ...] = ()
    picture: str = ""
    parent_ordinal: int = -1
    parent: str = ""
    contents: tuple[tuple[int, str, int], ...] = ()


NO_EXTRA = Extra()


@dataclass(frozen=True)
class Entry:
    """One entry of the log. A put names its first and last row, which may be gone again; a copy these, and then the
    rows it was made of; a drop every row."""

    sequence: int
    nonce: str
    dataset: int
    operation: Operation
    rows: Rows
    changes: int

    @property
    def span(self) -> tuple[int, int]:
        """First and last row of a put or a copy."""
        return int(self.rows[0]), int(self.rows[1])


NO_ENTRY = Entry(0, "", 0, "put", np.zeros(0, np.int64), 0)
_ENTRY = "SELECT sequence, nonce, dataset, operation, rows, changes FROM log"


@dataclass(frozen=True)
class TextRow:
    """What is indexed of a chunk: words parted by blanks, and what a search filters by."""

    row: int
    dataset: int
    document: str
    terms: str


class Database:
    """Connections to the file, each lent to one thread at a time. Opens nothing before the first use."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._folder_synced = False

    @contextlib.contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """A connection outside any transaction. It is thrown away when the block raises."""
        with self._lock:
            if self._closed:
                raise IndexUnavailable("the index is closed")
            link = self._idle.pop() if self._idle else None
        link, sound = link or self._connect(), False
        try:
            yield link
            sound = True
        finally:
            with self._lock:
                kept = sound and not self._closed
                if kept:
                    self._idle.append(link)
            if not kept:
                link.close()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One view of the file for all statements of the block."""
        with self.connection() as link:
            link.execute("BEGIN")
            yield link
            link.execute("COMMIT")

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is alone. Nothing of it stays when the block raises.

        The file lock comes first: waiting in SQLite alone is unfair and slow among several writers. Threads of one
        process wait for each other before that, without looking at a file again and again."""
        with self.connection() as link, self._alone(), locked(self._folder.write_lock, LOCK_TIMEOUT_S):
            link.execute("BEGIN IMMEDIATE")
            try:
                yield link
                link.execute("COMMIT")
            finally:
                if link.in_transaction:
                    link.rollback()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._turn.acquire(timeout=LOCK_TIMEOUT_S):
            raise IndexUnavailable(f"other writes to the index took over {LOCK_TIMEOUT_S:g} s")
        try:
            yield
        finally:
            self._turn.release()

    def sync(self) -> None:
        """Make every commit so far survive a power cut."""
        # The log file only: closing a second descriptor of the database itself would drop SQLite's own locks.
        # A commit that is in it no longer was synced by the checkpoint that moved it.
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(self._folder.wal, os.O_RDONLY)
            try:
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)
        # The log file stays where it is as long as any connection is open.
        if not self._folder_synced:
            sync_folder(self._folder.root)
            self._folder_synced = True

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for link in idle:
            link.close()

    def _connect(self) -> sqlite3.Connection:
        self._folder.create()
        self._folder_synced = False  # the first connection of all makes the log file
        link = sqlite3.connect(self._folder.database, timeout=10.0, isolation_level=None, check_same_thread=False)
        with contextlib.ExitStack() as on_error:
            on_error.callback(link.close)
            if _version(link) != _VERSION:
                self._create_tables(link)
            link.execute("PRAGMA synchronous = NORMAL")
            link.execute("PRAGMA mmap_size = 268435456")
            link.execute("PRAGMA wal_autocheckpoint = 2048")
            link.execute("PRAGMA journal_size_limit = 67108864")
            on_error.pop_all()
        return link

    def _create_tables(self, link: sqlite3.Connection) -> None:
        with locked(self._folder.write_lock, LOCK_TIMEOUT_S):
            found = _version(link)
            if found > _VERSION:
                raise DatabaseTooNew(f"the index was written by a newer Pagemill (version {found})")
            if found == _VERSION:
                return
            missing = "".join(script for version, script in _SINCE.items() if version > found)
            if not found:
                link.execute("PRAGMA page_size = 8192")  # a page holds several chunks
                link.execute("PRAGMA journal_mode = WAL")
                missing = _SCHEMA + missing
            link.executescript(f"BEGIN IMMEDIATE; {missing} PRAGMA user_version = {_VERSION}; COMMIT;")


def _version(link: sqlite3.Connection) -> int:
    return int(link.execute("PRAGMA user_version").fetchone()[0])


def append(link: sqlite3.Connection, dataset: int, operation: Operation, rows: Rows, now_ms: int) -> int:
    """Write an entry inside the caller's transaction; its sequence number.

    `rows` are all the rows dropped, or for a put the first and the last of rows that follow each other, for a copy also
    those that each of them was made of."""
    count = len(rows) if operation == "drop" else int(rows[1] - rows[0]) + 1
    changes = link.execute("UPDATE state SET changes = changes + ? RETURNING changes", (count,)).fetchone()[0]
    cursor = link.execute(
        "INSERT INTO log(nonce, dataset, operation, rows, changes, written_ms) VALUES (?, ?, ?, ?, ?, ?)",
        (os.urandom(8).hex(), dataset, operation, rows.astype(np.int64).tobytes(), changes, now_ms),
    )
    return int(cursor.lastrowid or 0)


def newest(link: sqlite3.Connection) -> Entry:
    """The last entry. There is one from the first write on: compaction leaves it."""
    found = link.execute(f"{_ENTRY} ORDER BY sequence DESC LIMIT 1").fetchone()
    return _entry(found) if found else NO_ENTRY


def entries_from(link: sqlite3.Connection, sequence: int) -> Iterator[Entry]:
    return map(_entry, link.execute(f"{_ENTRY} WHERE sequence >= ? ORDER BY sequence", (sequence,)))


def entries_of(link: sqlite3.Connection, dataset: int, after: int) -> list[Entry]:
    found = link.execute(f"{_ENTRY} WHERE dataset = ? AND sequence > ? ORDER BY sequence", (dataset, after))
    return [_entry(values) for values in found]


def copies_after(link: sqlite3.Connection, sequence: int) -> list[Entry]:
    """Copies behind an entry, in order."""
    found = link.execute(f"{_ENTRY} WHERE sequence > ? AND operation = 'copy' ORDER BY sequence", (sequence,))
    return [_entry(values) for values in found]


def has_copies(link: sqlite3.Connection, datasets: Sequence[int], sequence: int) -> bool:
    """Whether any into these datasets is behind an entry."""
    found = link.execute(
        f"SELECT 1 FROM log WHERE dataset IN ({', '.join('?' * len(datasets))}) AND sequence > ? AND operation = 'copy'"
        " LIMIT 1",
        (*datasets, sequence),
    )
    return found.fetchone() is not None


def ends(link: sqlite3.Connection) -> tuple[int, int]:
    """(highest number that compaction removed, number of the last entry)."""
    compacted = link.execute("SELECT compacted FROM state").fetchone()[0]
    last = link.execute("SELECT max(sequence) FROM log").fetchone()[0]
    return int(compacted), int(last or 0)


def fits(link: sqlite3.Connection, mark: Mark) -> bool:
    """Whether the log holds the marked entry, and everything after it. It does not after a lost tail, or when
    a backup of one of the two was put back."""
    if mark.sequence == 0:
        return ends(link)[0] == 0
    found = link.execute("SELECT nonce FROM log WHERE sequence = ?", (mark.sequence,)).fetchone()
    return found is not None and found[0] == mark.nonce


def passed(link: sqlite3.Connection, mark: Mark, sequence: int) -> bool:
    """Whether the text index holds this entry of the log that is there now."""
    return sequence <= 0 or (mark.sequence >= sequence and fits(link, mark))


def last_row(link: sqlite3.Connection) -> int:
    """The highest row number given so far."""
    return int(link.execute("SELECT last_row FROM state").fetchone()[0])


def take_rows(link: sqlite3.Connection, count: int) -> range:
    """Row numbers for new chunks, inside the caller's transaction."""
    last = link.execute("UPDATE state SET last_row = last_row + ? RETURNING last_row", (count,)).fetchone()[0]
    return range(last - count + 1, last + 1)


def compactable(link: sqlite3.Connection, below: int, older_than_ms: int) -> bool:
    oldest = link.execute("SELECT sequence, written_ms FROM log ORDER BY sequence LIMIT 1").fetchone()
    return oldest is not None and oldest[0] < below and oldest[1] <= older_than_ms


def compact(link: sqlite3.Connection, below: int, older_than_ms: int, limit: int) -> int:
    """Remove the oldest entries below a number and written before a time; how many. A reader that had not
    read them yet sees from `ends` that it has to load its rows anew."""
    found = link.execute(
        "SELECT sequence FROM log WHERE sequence < ? AND written_ms <= ? ORDER BY sequence LIMIT ?",
        (below, older_than_ms, limit),
    ).fetchall()
    if found:
        last = found[-1][0]
        link.execute("DELETE FROM log WHERE sequence <= ?", (last,))
        link.execute("UPDATE state SET compacted = ?", (last,))
    return len(found)


def _entry(values: tuple[int, str, int, Operation, bytes, int]) -> Entry:
    sequence, nonce, dataset, operation, rows, changes = values
    return Entry(sequence, nonce, dataset, operation, np.frombuffer(rows, np.int64), changes)
