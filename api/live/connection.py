"""One follower's connection: what waits to be written to it, and since when. Only the hub's thread touches it; others
may look at `waiting_bytes`."""

from __future__ import annotations

import socket
from collections.abc import Callable

from api.live.framing import Ending, Event, Framing

_PIECE_BYTES = 16 * 1024


class Connection:
    def __init__(self, sock: socket.socket, framing: Framing, on_gone: Callable[[Connection], None]) -> None:
        self.sock = sock
        self.on_gone = on_gone
        self.is_ending = False
        self.end_by_s = 0.0
        self.opened_s = 0.0
        self.told_s = 0.0
        self.moved_s = 0.0
        self._framing = framing
        self._out = bytearray()

    @property
    def waiting_bytes(self) -> int:
        return len(self._out)

    def open(self, head: bytes, now_s: float) -> None:
        self.opened_s = self.told_s = self.moved_s = now_s
        self._add(head + self._framing.opening(), now_s)

    def tell(self, event: Event, now_s: float) -> None:
        if not self.is_ending:
            self._add(self._framing.event(event), now_s)

    def beat(self, now_s: float) -> None:
        if not self.is_ending:
            self._add(self._framing.heartbeat(), now_s)

    def end(self, why: Ending, now_s: float, grace_s: float) -> None:
        """Nothing is told after it; the peer has a little time to take what still waits."""
        if not self.is_ending:
            self._add(self._framing.ending(why), now_s)
            self.is_ending = True
            self.end_by_s = now_s + grace_s

    @property
    def is_over(self) -> bool:
        """Whether all was written and nothing is waited for."""
        return self.is_ending and not self._out and not self._framing.waits_for_peer

    def write(self, now_s: float) -> None:
        """As much as the peer takes now. Raises OSError where it is gone."""
        while self._out:
            try:
                sent = self.sock.send(memoryview(self._out)[:_PIECE_BYTES])
            except BlockingIOError:
                return
            del self._out[:sent]
            self.moved_s = now_s

    def read(self, now_s: float) -> bool:
        """Take what the peer sent. False where it has gone, or said that it is over. Raises OSError."""
        try:
            data = self.sock.recv(_PIECE_BYTES)
        except BlockingIOError:
            return True
        if not data:
            return False
        received = self._framing.received(data)
        if received.answer:
            self._add(received.answer, now_s)
            self.write(now_s)
        return not received.is_over

    def _add(self, data: bytes, now_s: float) -> None:
        if data and not self._out:
            self.moved_s = now_s
        self._out += data
        self.told_s = now_s
