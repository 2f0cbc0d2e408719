"""The embedded index's folder: where its files stand, the lock writers take, and the mark of how far the indexer
came.

What is in the files is known to embedded_log.py (SQLite) and embedded_text.py (tantivy)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from common.errors import IndexUnavailable

_MAX_PAUSE_S = 0.004


@dataclass(frozen=True)
class Folder:
    """Paths below the index's folder. Making one touches nothing."""

    root: Path

    @property
    def database(self) -> Path:
        return self.root / "chunks.db"

    @property
    def wal(self) -> Path:
        return self.root / "chunks.db-wal"

    @property
    def text(self) -> Path:
        return self.root / "text"

    @property
    def mark(self) -> Path:
        return self.text / "mark.json"

    @property
    def bell(self) -> Path:
        return self.root / "bell"

    @property
    def write_lock(self) -> Path:
        return self.root / "write.lock"

    @property
    def indexer_lock(self) -> Path:
        return self.root / "indexer.lock"

    def create(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)


class Mark(msgspec.Struct, frozen=True):
    """What the text index holds: every log entry up to `sequence`, whose random id is `nonce`.

    `folder` is the part of text/ that holds it; `changes` counts the chunks they wrote or deleted."""

    version: int
    folder: str
    sequence: int
    nonce: str
    changes: int


NO_MARK = Mark(version=0, folder="", sequence=0, nonce="", changes=0)


def read_mark(folder: Folder) -> Mark:
    """The mark as last stored; NO_MARK where there is none that can be read."""
    try:
        return msgspec.json.decode(folder.mark.read_bytes(), type=Mark)
    except (FileNotFoundError, NotADirectoryError, msgspec.MsgspecError):
        return NO_MARK


def mark_stamp(folder: Folder) -> tuple[int, int]:
    """Another one with every mark that is stored, and cheaper to ask for."""
    try:
        found = folder.mark.stat()
    except (FileNotFoundError, NotADirectoryError):
        return 0, 0
    return found.st_mtime_ns, found.st_ino


def store_mark(folder: Folder, mark: Mark) -> None:
    """Replace the mark at once and durably: whoever reads meanwhile gets the old one or the new one."""
    temporary = folder.mark.with_suffix(".tmp")
    with temporary.open("wb") as file:
        file.write(msgspec.json.encode(mark))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder.mark)
    sync_folder(folder.text)


def sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(path: Path, timeout_s: float) -> Iterator[None]:
    """Hold the lock file alone, among processes and threads; a killed holder lets go of it.

    Raises IndexUnavailable when somebody else holds it for longer than `timeout_s`."""
    # A file opened for this call alone: flock belongs to it, so threads shut each other out too.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        deadline, pause_s = time.monotonic() + timeout_s, 0.0002
        while not try_lock(descriptor):
            if time.monotonic() > deadline:
                raise IndexUnavailable(f"the index is locked by another process for over {timeout_s:g} s")
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, _MAX_PAUSE_S)
        yield
    finally:
        # Unlocked by name: closing would not do while a process forked meanwhile holds a copy.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
