"""Child processes under supervision: started so that none outlives its supervisor, started again with backoff when
one dies, stopped in order."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from common.process import die_with_parent

log = logging.getLogger(__name__)
_BACKOFF_S = (0.2, 0.5, 1.0, 2.0, 5.0)
# A child that ran for this long was healthy: its next death starts the backoff anew.
_HEALTHY_S = 10.0


@dataclass
class Child:
    """`argv` is asked for at every start, so that each boot can carry a name of its own. `on_death` is told
    how of every death that was not asked for."""

    name: str
    argv: Callable[[], Sequence[str]]
    pass_fds: tuple[int, ...] = ()
    on_death: Callable[[str], None] | None = None
    stop_timeout_s: float = 20.0
    process: subprocess.Popen[bytes] | None = None
    started_s: float = 0.0
    deaths: int = 0
    start_due_s: float = 0.0
    stopping: bool = field(default=False)

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.argv(),
            stdin=subprocess.DEVNULL,
            pass_fds=self.pass_fds,
            # A session of its own: Ctrl-C reaches the supervisor alone, which then stops all in order.
            start_new_session=True,
            preexec_fn=partial(die_with_parent, signal.SIGTERM, os.getpid()),
        )
        self.started_s = time.monotonic()

    def look(self) -> None:
        """Notice a death and plan the next start; start when that is due."""
        if self.process is not None and self.process.poll() is not None and not self.stopping:
            self._died(self.process.returncode)
        if self.process is None and not self.stopping and time.monotonic() >= self.start_due_s:
            self.start()
            log.info("%s started again, pid %d", self.name, self.pid)

    @property
    def pid(self) -> int:
        return self.process.pid if self.process else 0

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def ask_to_stop(self) -> None:
        self.stopping = True
        if self.is_alive and self.process is not None:
            self.process.terminate()

    def wait_stopped(self) -> None:
        """Kill it if it does not stop in its time."""
        if self.process is None:
            return
        try:
            self.process.wait(self.stop_timeout_s)
        except subprocess.TimeoutExpired:
            log.warning("%s did not stop in %.0f s and is killed", self.name, self.stop_timeout_s)
            self.kill()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def _died(self, code: int) -> None:
        lived_s = time.monotonic() - self.started_s
        self.deaths = 1 if lived_s > _HEALTHY_S else self.deaths + 1
        delay_s = _BACKOFF_S[min(self.deaths, len(_BACKOFF_S)) - 1]
        log.warning("%s (pid %d) %s; starting again in %.1f s", self.name, self.pid, _why(code), delay_s)
        self.process = None
        self.start_due_s = time.monotonic() + delay_s
        if self.on_death is not None:
            self.on_death(_why(code))


def _why(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


def stop_in_order(groups: Sequence[Sequence[Child]]) -> None:
    """Stop the children of each group together, one group after the other."""
    for group in groups:
        for child in group:
            child.ask_to_stop()
        for child in group:
            child.wait_stopped()
