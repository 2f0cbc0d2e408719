"""Who follows what: kept under a lock, since requests come, connections go and the watch looks, each in its thread."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field

from api.live.connection import Connection


@dataclass(eq=False)
class Follower:
    """Of one job or, where that is "", of a dataset. `owed` are documents whose state it must still be told whether it
    changes or not. `since_ms` is where it goes on from if it is lost before it has got all of these."""

    connection: Connection
    job_id: str = ""
    dataset_id: str = ""
    since_ms: int | None = None
    owed: deque[str] = field(default_factory=deque)
    is_known: bool = False
    told_id: int = 0

    def next_id(self, caught_up_ms: int) -> int:
        """Ids never go back, whatever the clock does."""
        from_ms = self.since_ms if self.owed and self.since_ms is not None else caught_up_ms
        self.told_id = max(self.told_id, from_ms)
        return self.told_id


class Followers:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: dict[Connection, Follower] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, follower: Follower) -> None:
        with self._lock:
            self._all[follower.connection] = follower

    def remove(self, connection: Connection) -> None:
        """Nothing happens where it is gone already."""
        with self._lock:
            self._all.pop(connection, None)

    def now(self) -> list[Follower]:
        with self._lock:
            return list(self._all.values())
