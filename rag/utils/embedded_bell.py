"""The bell that wakes the indexer of the embedded index: a named pipe in its folder. Whoever wrote rings it, and
whoever waits until a write is findable rings it loudly."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import time

from rag.utils.embedded_folder import Folder

# How long the indexer may miss a write where there is no bell.
_LOOK_UNCALLED_S = 0.1
_WRITTEN = b"."
_AWAITED = b"!"


def ring(folder: Folder, *, awaited: bool = False) -> None:
    """Wake the indexer. Nobody hears it when none runs; it looks at the log when it starts."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder.bell, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(descriptor, _AWAITED if awaited else _WRITTEN)
        finally:
            os.close(descriptor)


class Bell:
    """The indexer's end. Silent where the file system has no pipes: then it has to look by itself."""

    def __init__(self, folder: Folder) -> None:
        self._descriptor = _open(folder)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def wait_rung(self, timeout_s: float) -> None:
        """Until somebody rings."""
        if self._descriptor is None:
            time.sleep(min(timeout_s, _LOOK_UNCALLED_S))
        else:
            self._heard(timeout_s)

    def wait_awaited(self, timeout_s: float) -> bool:
        """Until somebody waits for what was written; False where nobody does within the time."""
        if self._descriptor is None:
            time.sleep(max(0.0, timeout_s))
            return False
        deadline_s = time.monotonic() + timeout_s
        while (left_s := deadline_s - time.monotonic()) > 0:
            if _AWAITED in self._heard(left_s):
                return True
        return False

    def _heard(self, timeout_s: float) -> bytes:
        assert self._descriptor is not None
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        if poll.poll(timeout_s * 1000):
            with contextlib.suppress(BlockingIOError):
                return os.read(self._descriptor, 65536)
        return b""


def _open(folder: Folder) -> int | None:
    try:
        if folder.bell.exists() and not stat.S_ISFIFO(folder.bell.stat().st_mode):
            folder.bell.unlink()
        with contextlib.suppress(FileExistsError):
            os.mkfifo(folder.bell, 0o600)
        # Open for writing too, or the pipe would report its end whenever the last writer closes it.
        return os.open(folder.bell, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
