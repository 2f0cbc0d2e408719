"""The thread-safe front of all followers' connections: take one, tell some, end one, end all. Each call leaves an order
for the one thread that does the work (hub_loop.py) and returns at once. The thread starts with the first connection."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from api.live.connection import Connection
from api.live.framing import Ending, Event
from api.live.hub_loop import HubConfig, HubLoop


class Hub:
    def __init__(self, config: HubConfig | None = None) -> None:
        self._config = config or HubConfig()
        self._lock = threading.Lock()
        self._loop: HubLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False

    @property
    def connections(self) -> int:
        return self._loop.count if self._loop else 0

    @property
    def has_room(self) -> bool:
        return self.connections < self._config.max_connections and not self._is_closed

    def adopt(self, connection: Connection, head: bytes) -> None:
        """Own this connection from now on; its `on_gone` is called once, by the hub's thread, when it is no more."""
        if self._is_closed:
            connection.sock.close()
            connection.on_gone(connection)
            return
        loop = self._started()
        loop.order(lambda: loop.open(connection, head))

    def tell(self, told: Sequence[tuple[Connection, Event]]) -> None:
        loop = self._loop
        if loop is not None and told:
            loop.order(lambda: loop.tell(told))

    def end(self, connection: Connection, why: Ending) -> None:
        loop = self._loop
        if loop is not None:
            loop.order(lambda: loop.end(connection, why))

    def close(self) -> None:
        """Tell everybody that the server stops, and return when they have been told or the grace is over."""
        with self._lock:
            self._is_closed = True
            loop, thread = self._loop, self._thread
        if loop is not None and thread is not None:
            loop.order(loop.stop)
            thread.join(self._config.end_grace_s * 2)

    def _started(self) -> HubLoop:
        with self._lock:
            if self._loop is None or self._loop.is_over:
                self._loop = HubLoop(self._config)
                self._thread = threading.Thread(target=self._loop.run, name="live-hub", daemon=True)
                self._thread.start()
            return self._loop
