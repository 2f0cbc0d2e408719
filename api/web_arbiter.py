"""The process above the web server's worker, gunicorn's arbiter, with a reload that nobody notices: a new worker is
started with the settings as they are now, and when it serves, the old one is told to retire. A reload that can't be
done changes nothing."""

from __future__ import annotations

import logging
import os
import select
import signal
from contextlib import suppress
from typing import Any

from gunicorn.arbiter import Arbiter

from common.errors import SettingsError

log = logging.getLogger(__name__)
_START_S = 120.0
READY = b"!"


class ReloadingArbiter(Arbiter):  # type: ignore[misc]
    def __init__(self, app: Any) -> None:
        super().__init__(app)
        self._retired: set[int] = set()

    def reload(self) -> None:
        """On SIGHUP. What it waits for, the start of a worker, is as long as any start; signals wait for it."""
        former = self.app.settings
        try:
            self.app.reload()
        except SettingsError as exc:
            log.error("the web server goes on as it was: %s", exc.public_message)
            return
        self.setup(self.app)
        old = list(self.WORKERS)
        pid, is_ready = self._spawn_and_wait()
        if is_ready:
            log.info("worker %d serves now; %s ends what it has begun", pid, ", ".join(map(str, old)) or "nobody")
            self._retire(old)
        else:
            log.error("the web server goes on as it was: its new worker did not start")
            self._discard(pid)
            self.app.settings = former

    def stop(self, graceful: bool = True) -> None:
        for pid in self._retired:
            _send(pid, signal.SIGTERM)
        super().stop(graceful)

    def _spawn_and_wait(self) -> tuple[int, bool]:
        """The new worker holds the only other end of a pipe: it writes when it serves, or is gone."""
        read_fd, write_fd = os.pipe()
        self.app.ready_fd = write_fd
        pid = self.spawn_worker()  # the worker itself does not come back from here
        self.app.ready_fd = None
        os.close(write_fd)
        try:
            is_told = select.select([read_fd], [], [], _START_S)[0]
            return pid, bool(is_told) and os.read(read_fd, 1) == READY
        finally:
            os.close(read_fd)

    def _retire(self, pids: list[int]) -> None:
        """They are nobody's workers any more: none is started in their place, and no count has them."""
        self._retired = {pid for pid in self._retired if _send(pid, 0)} | set(pids)
        for pid in pids:
            self.WORKERS.pop(pid).tmp.close()
            _send(pid, signal.SIGUSR2)

    def _discard(self, pid: int) -> None:
        worker = self.WORKERS.pop(pid, None)
        if worker is not None:
            worker.tmp.close()
        _send(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _send(pid: int, signum: int) -> bool:
    """False where it is gone."""
    try:
        os.kill(pid, signum)
    except ProcessLookupError:
        return False
    return True
