"""Answers on their way out. What a client does not take at once is kept, and sent by the worker's loop as it takes it:
nobody holds a thread by reading slowly. A file is not kept, only where in it to go on.

Kept is so much of one answer, and so much of all; past that a thread waits for its client, as long as it takes
anything."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import selectors
import socket
import struct
import termios
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

_MOST_OF_ONE_BYTES = 1 << 20
_MOST_OF_ALL_BYTES = 64 << 20
# So much of a file goes out in one go, then others have their turn.
_FILE_PIECE_BYTES = 256 * 1024
_CUT_OFF = struct.pack("ii", 1, 0)


class Room:
    """What all connections may keep. Thread-safe."""

    def __init__(self, most_bytes: int = _MOST_OF_ALL_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._used_bytes = 0

    @property
    def is_full(self) -> bool:
        return self._used_bytes >= self._most_bytes

    def change(self, by_bytes: int) -> None:
        with self._lock:
            self._used_bytes += by_bytes


@dataclass
class _FilePart:
    fd: int
    offset: int
    left: int


class AnsweringSocket(socket.socket):
    """A connection whose `sendall` and `sendfile` keep what can't be sent now. For one thread at a time."""

    def __init__(self, sock: socket.socket, room: Room, silent_s: float) -> None:
        is_blocking = sock.getblocking()
        super().__init__(fileno=sock.detach())
        self.setblocking(is_blocking)
        self._room = room
        self._silent_s = silent_s
        self._kept: deque[memoryview | _FilePart] = deque()
        self._kept_bytes = 0

    @property
    def has_kept(self) -> bool:
        return bool(self._kept)

    @property
    def left_bytes(self) -> int:
        """What the client has not taken yet, here and in the kernel."""
        files = sum(part.left for part in self._kept if isinstance(part, _FilePart))
        return self._kept_bytes + files + int.from_bytes(fcntl.ioctl(self, termios.TIOCOUTQ, bytes(4)), "little")

    def sendall(self, data: Any, flags: int = 0, /) -> None:
        self._keep(memoryview(data))
        self.send_kept()
        while self._keeps_too_much:
            self._wait()
            self.send_kept()

    def sendfile(self, file: IO[bytes], offset: int = 0, count: int | None = None) -> int:  # type: ignore[override]
        size = os.fstat(file.fileno()).st_size - offset if count is None else count
        self._kept.append(_FilePart(os.dup(file.fileno()), offset, size))
        self.send_kept()
        return size

    def dup(self) -> socket.socket:  # type: ignore[override]
        """An ordinary one."""
        return socket.socket(fileno=os.dup(self.fileno()))

    def send_kept(self) -> None:
        """As much as goes out now. Raises OSError where the client is gone."""
        with contextlib.suppress(BlockingIOError):
            while self._kept:
                first = self._kept[0]
                if isinstance(first, _FilePart):
                    if not self._send_file(first):
                        return
                else:
                    self._send_bytes(first)

    def forget(self) -> None:
        while self._kept:
            part = self._kept.popleft()
            if isinstance(part, _FilePart):
                os.close(part.fd)
        self._count(-self._kept_bytes)

    def close(self) -> None:
        self.forget()
        super().close()

    def cut_off(self) -> None:
        """Closed such that the client knows there was more."""
        with contextlib.suppress(OSError):
            self.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _CUT_OFF)

    @property
    def _keeps_too_much(self) -> bool:
        """The first piece does not count: most answers are one piece, which is in memory anyway. Of those that are made
        while they are sent there is time to make the next."""
        if not self._kept:
            return False
        first = self._kept[0]
        behind_bytes = self._kept_bytes - (len(first) if isinstance(first, memoryview) else 0)
        return behind_bytes > _MOST_OF_ONE_BYTES or self._room.is_full

    def _keep(self, data: memoryview) -> None:
        if data:
            self._kept.append(data)
            self._count(len(data))

    def _count(self, by_bytes: int) -> None:
        self._kept_bytes += by_bytes
        self._room.change(by_bytes)

    def _send_bytes(self, data: memoryview) -> None:
        sent = self.send(data, socket.MSG_DONTWAIT)
        self._count(-sent)
        if sent == len(data):
            self._kept.popleft()
        else:
            self._kept[0] = data[sent:]

    def _send_file(self, part: _FilePart) -> bool:
        """False: there is more of it, for another time."""
        was_blocking = os.get_blocking(self.fileno())
        os.set_blocking(self.fileno(), False)
        try:
            sent = os.sendfile(self.fileno(), part.fd, part.offset, min(part.left, _FILE_PIECE_BYTES))
        finally:
            os.set_blocking(self.fileno(), was_blocking)
        part.offset += sent
        part.left -= sent
        if part.left and sent:
            return False
        if part.left:
            raise BrokenPipeError(errno.EPIPE, "the file has become shorter")
        os.close(part.fd)
        self._kept.popleft()
        return True

    def _wait(self) -> None:
        with selectors.PollSelector() as ready:
            ready.register(self, selectors.EVENT_WRITE)
            if not ready.select(self._silent_s):
                self.cut_off()
                raise BrokenPipeError(errno.EPIPE, "the client takes nothing of its answer")


@dataclass(eq=False)
class _Reader:
    conn: Any
    then: Callable[[], None]
    until_s: float
    left_bytes: int


class SlowReaders:
    """In the loop: connections of which the thread has done its part. Who takes nothing for too long is cut off."""

    def __init__(self, silent_s: float, on_gone: Callable[[Any], None]) -> None:
        self._silent_s = silent_s
        self._on_gone = on_gone
        self._line: deque[_Reader] = deque()

    def add(self, poller: selectors.BaseSelector, conn: Any, then: Callable[[], None]) -> None:
        """`then` is called when all is sent."""
        reader = _Reader(conn, then, time.monotonic() + self._silent_s, conn.sock.left_bytes)
        conn.sock.setblocking(False)
        poller.register(conn.sock, selectors.EVENT_WRITE, partial(self._send, poller, reader))
        self._line.append(reader)

    def look(self, poller: selectors.BaseSelector) -> None:
        now_s = time.monotonic()
        while self._line and self._line[0].until_s <= now_s:
            reader = self._line[0]
            left_bytes = reader.conn.sock.left_bytes
            if left_bytes < reader.left_bytes:
                reader.left_bytes, reader.until_s = left_bytes, now_s + self._silent_s
                self._line.rotate(-1)
            else:
                reader.conn.sock.cut_off()
                self._leave(poller, reader)
                self._on_gone(reader.conn)

    def _send(self, poller: selectors.BaseSelector, reader: _Reader, sock: AnsweringSocket) -> None:
        try:
            sock.send_kept()
        except OSError:
            self._leave(poller, reader)
            self._on_gone(reader.conn)
            return
        if not sock.has_kept:
            self._leave(poller, reader)
            reader.then()

    def _leave(self, poller: selectors.BaseSelector, reader: _Reader) -> None:
        poller.unregister(reader.conn.sock)
        self._line.remove(reader)
