"""A gate that every no-op task of a bench passes, in whatever process it runs: it counts them, stamps the time, and can
hold all of them back until every worker is up. A shared page of memory; passing it costs about a microsecond."""

from __future__ import annotations

import asyncio
import fcntl
import mmap
import os
import threading
import time
from pathlib import Path

ENV = "BENCH_GATE"
_PROCESSES = 64
# Cells of 64 bits: whether it is open, then (pid, passed, moment of the last one) of each process.
_CELLS = 1 + 3 * _PROCESSES
_LOOK_S = 0.005


class Gate:
    """Thread-safe, and safe to use on both sides of a fork."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("r+b")
        self._cells = memoryview(mmap.mmap(self._file.fileno(), 8 * _CELLS)).cast("q")
        self._lock = threading.Lock()
        self._pid = 0
        self._place = 0

    @staticmethod
    def make(path: Path) -> Gate:
        path.write_bytes(bytes(8 * _CELLS))
        return Gate(path)

    @staticmethod
    def of_environment() -> Gate:
        return Gate(Path(os.environ[ENV]))

    # The workers' side

    def pass_through(self) -> None:
        """Wait until it is open, then count."""
        self.arrive()
        while not self.is_open:
            time.sleep(_LOOK_S)
        self.count()

    async def pass_through_asyncio(self) -> None:
        self.arrive()
        while not self.is_open:
            await asyncio.sleep(_LOOK_S)
        self.count()

    def arrive(self) -> None:
        """Say that this process has a task in its hands."""
        if self._pid == os.getpid():
            return
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            places = range(1, _CELLS, 3)
            self._place = next(p for p in places if not self._cells[p])
            self._cells[self._place] = self._pid = os.getpid()
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    def count(self) -> None:
        with self._lock:
            self._cells[self._place + 1] += 1
            self._cells[self._place + 2] = time.monotonic_ns()

    # Both sides

    @property
    def is_open(self) -> bool:
        return bool(self._cells[0])

    # The side of the bench

    def open(self) -> None:
        self._cells[0] = 1

    def close(self) -> None:
        self._cells[0] = 0

    @property
    def arrived(self) -> int:
        """Processes that have had a task in their hands."""
        return sum(1 for place in range(1, _CELLS, 3) if self._cells[place])

    @property
    def passed(self) -> int:
        return sum(self._cells[p + 1] for p in range(1, _CELLS, 3))

    @property
    def last_ns(self) -> int:
        """When the last one passed, on the clock of time.monotonic_ns."""
        return max(self._cells[p + 2] for p in range(1, _CELLS, 3))
