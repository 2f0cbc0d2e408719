"""The data folder: made where it is missing, checked, and held by one running instance at a time."""

from __future__ import annotations

import fcntl
import json
import os
import time
from typing import Any

import psutil

from common.errors import Conflict, SettingsError
from common.settings import Settings

# Children of an instance that was killed hold the lock until they have drained.
_WAIT_FOR_OLD_CHILDREN_S = 30.0


class DataFolder:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._note = settings.run_dir / "up.json"

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
            probe.unlink()
        except OSError as exc:
            raise SettingsError(
                f"the data folder {self._settings.data_dir} can't be used: {exc.strerror}; "
                "make it writable, or choose another with --data"
            ) from exc

    def lock(self) -> int:
        """Take the folder for this instance. Returns the lock's file descriptor, for children to inherit.

        Raises Conflict where another instance runs on it; the children of one that was killed are waited for."""
        fd = os.open(self._settings.run_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline_s = time.monotonic() + _WAIT_FOR_OLD_CHILDREN_S
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return fd
            except BlockingIOError:
                pid = int(self.read_note().get("pid", 0))
                if (pid and psutil.pid_exists(pid)) or time.monotonic() > deadline_s:
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
        try:
            note: dict[str, Any] = json.loads(self._note.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return note

    def remove_note(self) -> None:
        self._note.unlink(missing_ok=True)
