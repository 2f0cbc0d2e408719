"""What an operator sees of an executor: sent to Redis every second by a thread that no work can block."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import psutil

from common.errors import QueueUnavailable
from rag.utils.redis_conn import Queue

log = logging.getLogger(__name__)
# What an executor counts since its boot.
_COUNTED = ("done", "failed", "retried", "cancelled", "embedding_cache_hits", "embedding_cache_misses")


@dataclass(frozen=True)
class CurrentTask:
    id: str
    document_id: str
    task_type: str
    from_page: int
    to_page: int
    stage: str
    age_s: float


@dataclass(frozen=True)
class ExecutorState:
    """What the executor says of itself at one moment."""

    slots: int
    slots_used: int
    current: tuple[CurrentTask, ...]
    counts: dict[str, int]
    draining: bool
    drained: bool
    parsers: int


class Heartbeat:
    """`last` is what it would have said, also where nobody could hear it."""

    def __init__(
        self,
        messages: Queue,
        name: str,
        version: str,
        every_s: float,
        state: Callable[[], ExecutorState],
        owner: str,
    ) -> None:
        self._messages = messages
        self._name = name
        self._every_s = every_s
        self._state = state
        self._process = psutil.Process()
        self._fixed = {
            "name": name,
            "owner": owner,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "version": version,
            "boot_at": time.time(),
        }
        self.last: dict[str, Any] = dict(self._fixed)

    def run(self, stop: threading.Event) -> None:
        """Until stopped; then the executor leaves the registry, since it ended in order."""
        while True:
            try:
                self.run_once()
            except QueueUnavailable as exc:
                log.debug("no heartbeat: %s", exc)
            if stop.wait(self._every_s):
                break
        try:
            self._messages.forget_executor(self._name)
        except QueueUnavailable as exc:
            log.debug("could not leave the registry: %s", exc)

    def run_once(self) -> None:
        self.last = self._beat()
        self._messages.beat(self._name, {**self.last, "now": self._messages.now_s()})

    def _beat(self) -> dict[str, Any]:
        state = self._state()
        with self._process.oneshot():
            measured = {
                "rss_bytes": self._process.memory_info().rss,
                "cpu_percent": self._process.cpu_percent(),
            }
        return {
            **self._fixed,
            **measured,
            "slots": state.slots,
            "slots_used": state.slots_used,
            "draining": state.draining,
            "drained": state.drained,
            "parsers": state.parsers,
            "current": [asdict(task) for task in state.current],
            **{kind: state.counts.get(kind, 0) for kind in _COUNTED},
        }
