"""An answer that many ask for at the same time: found once, then kept for a while; longer where it took long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
# So that finding it takes a twentieth of one processor at most.
_KEPT_TIMES = 20


class Kept(Generic[T]):
    """`find` runs in one thread at a time; who comes meanwhile waits for its answer. An error is not kept. Without
    `grows` it is kept for `least_s`, however long it took: for what takes long by waiting only."""

    def __init__(
        self,
        find: Callable[[], T],
        least_s: float,
        clock: Callable[[], float] = time.monotonic,
        *,
        grows: bool = True,
    ) -> None:
        self._find = find
        self._least_s = least_s
        self._times = _KEPT_TIMES if grows else 0
        self._clock = clock
        self._lock = threading.Lock()
        self._until_s = float("-inf")
        self._found: list[T] = []

    def get(self) -> T:
        with self._lock:
            begin_s = self._clock()
            if begin_s >= self._until_s or not self._found:
                self._found = [self._find()]
                end_s = self._clock()
                self._until_s = end_s + max(self._least_s, self._times * (end_s - begin_s))
            return self._found[0]
