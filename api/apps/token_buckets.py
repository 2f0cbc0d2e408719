"""Token buckets, one for each name: so many a minute flow in, up to a burst. In memory, and never more than a bound."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], float]
_MOST_NAMES = 10_000
_ROUNDING = 1e-6


@dataclass
class _Bucket:
    level: float
    seen_s: float


class TokenBuckets:
    """For all threads. A bucket begins full. Where there are too many names, the one that was not heard of for longest
    is forgotten, and begins anew. With `per_minute` 0 names are kept and nothing is limited."""

    def __init__(self, per_minute: int, burst: int, clock: Clock = time.monotonic, most: int = _MOST_NAMES) -> None:
        self._per_s = per_minute / 60
        self._burst = burst
        self._clock = clock
        self._most = most
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def knows(self, name: str) -> bool:
        return name in self._buckets

    def wait_s(self, name: str) -> float:
        """Until there is one to take; 0 where there is. Nothing is taken, and a name that is not known stays so."""
        with self._lock:
            return self._missing_s(self._filled(name)) if name in self._buckets else 0.0

    def take(self, name: str) -> float:
        """One, and 0 is returned; where there is none nothing is taken, and the seconds until there is are returned."""
        with self._lock:
            bucket = self._filled(name)
            missing_s = self._missing_s(bucket)
            if not missing_s:
                bucket.level -= 1
            return missing_s

    def owe(self, name: str) -> None:
        """Take one, also where there is none: many that began at once are paid for afterwards, by up to a burst."""
        with self._lock:
            bucket = self._filled(name)
            bucket.level = max(bucket.level - 1, -float(self._burst))

    def forget(self, name: str) -> None:
        with self._lock:
            self._buckets.pop(name, None)

    def _filled(self, name: str) -> _Bucket:
        now_s = self._clock()
        bucket = self._buckets.setdefault(name, _Bucket(self._burst, now_s))
        self._buckets.move_to_end(name)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        bucket.level = min(float(self._burst), bucket.level + (now_s - bucket.seen_s) * self._per_s)
        bucket.seen_s = now_s
        return bucket

    def _missing_s(self, bucket: _Bucket) -> float:
        if not self._per_s or bucket.level >= 1 - _ROUNDING:
            return 0.0
        return (1 - bucket.level) / self._per_s
