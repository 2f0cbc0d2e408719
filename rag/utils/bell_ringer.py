"""Rings for those who must not wait for the queue. One thread rings: what is asked for while it is at it is one more
ring, however often it is asked."""

from __future__ import annotations

import threading
from collections.abc import Callable


class BellRinger:
    """`ring` must not raise, and may be lost with this process: the relay looks by itself every second."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._asked = threading.Event()
        self._start = threading.Lock()
        self._thread: threading.Thread | None = None

    def __call__(self) -> None:
        """From any thread; returns at once."""
        self._asked.set()
        if self._thread is None:
            with self._start:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="bell", daemon=True)
                    self._thread.start()

    def _run(self) -> None:
        while self._asked.wait():
            self._asked.clear()  # before the ring: a task that is committed meanwhile is rung for once more
            self._ring()
