"""What a system's processes cost while it works: CPU time and memory of whole process trees."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType

import psutil

from tests.processes import descendants

_LOOK_S = 0.2


class Meter:
    """A context manager around the work. Memory is sampled, and shared pages are counted once per process."""

    def __init__(self, roots: Sequence[int]) -> None:
        self._roots = roots
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look_forever, daemon=True)
        self._before_s = 0.0
        self.cpu_s = 0.0
        self.peak_mb = 0

    def __enter__(self) -> Meter:
        self._before_s = self._cpu_so_far_s()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cpu_s = self._cpu_so_far_s() - self._before_s
        self._stop.set()
        self._thread.join()
        self._look()  # work may be shorter than the pause between two looks

    def _look_forever(self) -> None:
        while not self._stop.wait(_LOOK_S):
            self._look()

    def _look(self) -> None:
        self.peak_mb = max(self.peak_mb, sum(map(_memory_bytes, self._processes())) >> 20)

    def _processes(self) -> list[psutil.Process]:
        found = []
        for pid in self._roots:
            with suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(pid))
            found += descendants(pid)
        return found

    def _cpu_so_far_s(self) -> float:
        return sum(map(_cpu_s, self._processes()))


def _cpu_s(process: psutil.Process) -> float:
    """With that of its children that have ended."""
    with suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)
    return 0.0


def _memory_bytes(process: psutil.Process) -> int:
    with suppress(psutil.NoSuchProcess):
        return int(process.memory_info().rss)
    return 0
