"""The one thread that writes to all followers and reads from them, with a selector. Nobody waits for a slow one: it is
cut off when too much waits for it, or when it takes nothing for too long."""

from __future__ import annotations

import logging
import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from api.live.connection import Connection
from api.live.framing import Ending, Event

log = logging.getLogger(__name__)
_TICK_S = 0.5


@dataclass(frozen=True)
class HubConfig:
    heartbeat_s: float = 15.0
    max_waiting_bytes: int = 512 * 1024
    max_stall_s: float = 20.0
    max_connections: int = 4096
    # A key may have been revoked meanwhile: whoever comes back has to show it again.
    max_age_s: float = 3600.0
    end_grace_s: float = 2.0

    def __post_init__(self) -> None:
        if min(self.heartbeat_s, self.max_stall_s, self.max_waiting_bytes, self.max_connections, self.max_age_s) <= 0:
            raise ValueError("every limit of the hub is above zero")


class HubLoop:
    """Only `order`, `count` and `is_over` are for other threads."""

    def __init__(self, config: HubConfig) -> None:
        self._config = config
        self._orders: deque[Callable[[], None]] = deque()
        self._selector = selectors.DefaultSelector()
        self._bell, self._ring = socket.socketpair()
        self._bell.setblocking(False)
        self._ring.setblocking(False)
        self._connections: set[Connection] = set()
        self._is_stopping = False
        self.is_over = False

    @property
    def count(self) -> int:
        return len(self._connections)

    def order(self, order: Callable[[], None]) -> None:
        """Have it done by the thread, after the orders before."""
        self._orders.append(order)
        try:
            self._ring.send(b"!")
        except BlockingIOError:
            pass  # it has been rung often enough
        except OSError:
            log.debug("an order came after the end")

    def run(self) -> None:
        """Until stopped. Also after an error that nobody foresaw no connection is left open: followers come again."""
        try:
            self._run()
        finally:
            self.is_over = True
            for connection in list(self._connections):
                self._drop(connection)
            for part in (self._selector, self._bell, self._ring):
                part.close()

    def _run(self) -> None:
        self._selector.register(self._bell, selectors.EVENT_READ, None)
        ticked_s = time.monotonic()
        while not self._is_stopping or self._connections:
            for key, mask in self._selector.select(_TICK_S):
                if key.data is None:
                    self._bell.recv(4096)
                else:
                    self._serve(key.data, mask)
            while self._orders:
                self._orders.popleft()()
            if time.monotonic() - ticked_s >= _TICK_S:
                ticked_s = time.monotonic()
                self._look_after_all()

    def open(self, connection: Connection, head: bytes) -> None:
        self._connections.add(connection)
        self._selector.register(connection.sock, selectors.EVENT_READ, connection)
        connection.open(head, time.monotonic())
        if self._is_stopping:
            connection.end(Ending.STOPPING, time.monotonic(), self._config.end_grace_s)
        self._push(connection)

    def tell(self, told: Sequence[tuple[Connection, Event]]) -> None:
        for connection, event in told:
            if connection in self._connections:
                connection.tell(event, time.monotonic())
                self._push(connection)

    def end(self, connection: Connection, why: Ending) -> None:
        if connection in self._connections:
            connection.end(why, time.monotonic(), self._config.end_grace_s)
            self._push(connection)

    def stop(self) -> None:
        self._is_stopping = True
        for connection in list(self._connections):
            self.end(connection, Ending.STOPPING)

    def _serve(self, connection: Connection, mask: int) -> None:
        if connection not in self._connections:
            return
        try:
            is_there = not mask & selectors.EVENT_READ or connection.read(time.monotonic())
        except OSError:
            is_there = False
        if is_there:
            self._push(connection)
        else:
            self._drop(connection)

    def _push(self, connection: Connection) -> None:
        """Write what can be written, and be woken for the rest."""
        try:
            connection.write(time.monotonic())
        except OSError:
            self._drop(connection)
            return
        if connection.is_over:
            self._drop(connection)
        elif connection.waiting_bytes > self._config.max_waiting_bytes:
            self._cut_off(connection, f"{connection.waiting_bytes} bytes wait for it")
        else:
            write = selectors.EVENT_WRITE if connection.waiting_bytes else 0
            self._selector.modify(connection.sock, selectors.EVENT_READ | write, connection)

    def _look_after_all(self) -> None:
        now_s = time.monotonic()
        for connection in list(self._connections):
            if connection.is_ending and now_s >= connection.end_by_s:
                self._drop(connection)
            elif connection.waiting_bytes and now_s - connection.moved_s >= self._config.max_stall_s:
                self._cut_off(connection, f"it took nothing for {self._config.max_stall_s:.0f} s")
            elif now_s - connection.opened_s >= self._config.max_age_s:
                self.end(connection, Ending.EXPIRED)
            elif now_s - connection.told_s >= self._config.heartbeat_s:
                connection.beat(now_s)
                self._push(connection)

    def _cut_off(self, connection: Connection, why: str) -> None:
        log.info("a follower that is too slow was cut off: %s", why)
        # A reset, at once: what the kernel still has for it may not get through, nor then the end behind it.
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._selector.unregister(connection.sock)
        connection.sock.close()
        connection.on_gone(connection)
