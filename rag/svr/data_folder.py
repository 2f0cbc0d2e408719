"""The data folder: made where it is missing, checked, and held by one running instance at a time."""

from __future__ import annotations

import fcntl
import json
import os
import time
from typing import Any

import psutil

from common.errors import Conflict, NotFound, SettingsError
from common.settings import Settings

# Children of an instance that was killed hold the lock until they have drained.
_WAIT_FOR_OLD_CHILDREN_S = 30.0


class DataFolder:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._note = settings.run_dir / "up.json"
        self._lock = settings.run_dir / "lock"

    def make(self) -> None:
        """Raises SettingsError where the folder can't be made or written."""
        try:
            for folder in (
                self._settings.data_dir,
                self._settings.run_dir,
                self._settings.queue_dir,
                self._settings.queue_socket.parent,
            ):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            probe = self._settings.run_dir / "probe"
            probe.write_bytes(b"")
            probe.unlink(missing_ok=True)  # children that start together probe together
        except OSError as exc:
            raise self._unusable(exc.strerror) from exc

    def check(self) -> None:
        """Look without making anything. Raises NotFound where there is no folder yet, SettingsError where it can't be
        used."""
        folder = self._settings.data_dir
        try:
            exists = folder.exists()
        except OSError as exc:
            raise self._unusable(exc.strerror) from exc
        if not exists:
            raise NotFound(f"the data folder {folder} does not exist yet")
        if not folder.is_dir():
            raise self._unusable("Not a directory")
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise self._unusable("Permission denied")

    def lock(self) -> int:
        """Take the folder for this instance. Returns the lock's file descriptor, for children to inherit.

        Raises Conflict where another instance runs on it; the children of one that was killed are waited for."""
        try:
            fd = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise self._unusable(f"{self._lock}: {exc.strerror}") from exc
        deadline_s = time.monotonic() + _WAIT_FOR_OLD_CHILDREN_S
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return fd
            except BlockingIOError:
                pid = self.read_note().get("pid", 0)
                if _is_alive(pid) or time.monotonic() > deadline_s:
                    os.close(fd)
                    raise Conflict(
                        f"another Pagemill (pid {pid}) is running on {self._settings.data_dir}; "
                        "stop it, or choose another folder with --data"
                    ) from None
                time.sleep(0.1)

    def write_note(self, note: dict[str, Any]) -> None:
        """Leave word of the running instance for the other commands."""
        partial = self._note.with_suffix(".partial")
        partial.write_text(json.dumps(note), encoding="utf-8")
        partial.replace(self._note)

    def read_note(self) -> dict[str, Any]:
        """As it was left; {} where there is none. Its writer may have been killed since: see `address`."""
        try:
            note = json.loads(self._note.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return note if isinstance(note, dict) else {}

    def remove_note(self) -> None:
        self._note.unlink(missing_ok=True)

    def address(self) -> str | None:
        """Where the instance that runs on this folder now answers; None where none does."""
        note = self.read_note()
        # Another program may have the pid by now, and children of a killed instance hold the lock for a while.
        return note.get("address") if _is_alive(note.get("pid", 0)) and self._is_locked() else None

    def supervisor_pid(self) -> int:
        """Of the instance that runs on this folder now. Raises NotFound where none does."""
        if self.address() is None:
            raise NotFound(f"no Pagemill is running on {self._settings.data_dir}: start one with `pagemill up`")
        return int(self.read_note()["pid"])

    def _is_locked(self) -> bool:
        try:
            fd = os.open(self._lock, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def _unusable(self, why: str | None) -> SettingsError:
        return SettingsError(
            f"the data folder {self._settings.data_dir} can't be used: {why}; "
            "make it writable, or choose another with --data"
        )


def _is_alive(pid: object) -> bool:
    if not isinstance(pid, int) or pid < 1:
        return False
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
