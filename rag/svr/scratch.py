"""Where parser processes put their temporary files: a folder for each, which goes with it however it ended.

The folder around them is locked by who starts the processes. One that nobody has locked was left behind by a process
that was killed, and is removed when the next one starts a parser."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from threading import Lock

from common.errors import ParserNotStarted

_PREFIX = f"pagemill-parsers-{os.getuid()}-"


class Scratch:
    """The folders of one pool. Nothing is made before the first is asked for; close() removes all."""

    def __init__(self) -> None:
        self._one_at_a_time = Lock()
        self._around: Path | None = None
        self._lock = -1
        self._made = 0

    def add(self) -> Path:
        """A new folder, for one process; before the first, what others left behind is removed. Raises ParserNotStarted.

        May be called from several threads."""
        try:
            with self._one_at_a_time:
                if self._around is None:
                    sweep()
                    self._around, self._lock = _make()
                self._made += 1
                folder = self._around / str(self._made)
                folder.mkdir(mode=0o700)
                return folder
        except OSError as exc:
            raise ParserNotStarted(f"the parser process has no folder for temporary files: {exc.strerror}") from exc

    def close(self) -> None:
        if self._around is not None:
            remove(self._around)
            os.close(self._lock)
            self._around = None


def remove(folder: Path) -> None:
    """With whatever is in it. What a program that was left running still writes there goes with a later sweep."""
    shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Remove the folders that nobody holds any more."""
    with os.scandir(tempfile.gettempdir()) as entries:
        found = [entry for entry in entries if entry.name.startswith(_PREFIX)]
    for entry in found:
        # Links, and folders that others gave such a name, are no business of ours.
        if entry.is_dir(follow_symlinks=False) and _owner(entry) == os.getuid():
            _remove_if_left(Path(entry.path))


def _owner(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_uid
    except FileNotFoundError:  # somebody else has removed it
        return -1


def _remove_if_left(folder: Path) -> None:
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(folder)
    except BlockingIOError:
        pass  # it is in use
    finally:
        os.close(lock)


def _make() -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Another's sweep may have met it before it was locked.
        if folder.exists():
            return folder, lock
        os.close(lock)
