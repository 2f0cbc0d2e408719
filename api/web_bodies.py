"""Bodies that are read while they come, in the web server's threads: how slow they may be, and how many of the threads
may be at it. Who has no thread for that stands in line, without one."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from gunicorn.http.errors import ParseException
from gunicorn.http.unreader import SocketUnreader
from werkzeug.exceptions import RequestTimeout

from common.settings import ServerSettings


class TooSlow(ParseException):  # type: ignore[misc]
    """A request whose rest does not come in time."""


class PacedUnreader(SocketUnreader):  # type: ignore[misc]
    """Reads a connection, and gives it up when too little comes. Only time that is waited counts: a pause of the
    server's own, and a client that is faster than it, cost nobody anything."""

    def __init__(self, parser: Any, server: ServerSettings) -> None:
        super().__init__(parser.unreader.sock)
        self._parser = parser
        self._window_s = server.receive_timeout_s
        self._least_bytes_s = server.least_body_bytes_s
        self.begin()

    def begin(self) -> None:
        """Another request."""
        self._waited_s, self._got_bytes = 0.0, 0

    def chunk(self, size_hint: int | None = None) -> bytes:
        began_s = time.monotonic()
        try:
            data = bytes(super().chunk(size_hint))
        except BlockingIOError as exc:  # the socket's own limit
            raise self._slow(f"nothing came for {self._window_s} s") from exc
        self._waited_s += time.monotonic() - began_s
        self._got_bytes += len(data)
        if self._waited_s >= self._window_s:
            if self._got_bytes < self._least_bytes_s * self._waited_s:
                raise self._slow(f"less than {self._least_bytes_s} bytes a second came")
            self.begin()
        return data

    def _slow(self, message: str) -> TooSlow:
        if self._parser.mesg is not None:
            self._parser.mesg.force_close()
        return TooSlow(message)


class BodyLine:
    """Of the threads all but a quarter may wait for bodies."""

    def __init__(self, threads: int) -> None:
        self._most = max(threads * 3 // 4, 1)
        self._inside: set[Any] = set()
        self._line: deque[Any] = deque()

    def enter(self, conn: Any) -> bool:
        """False: it stands in line."""
        if len(self._inside) >= self._most:
            self._line.append(conn)
            return False
        self._inside.add(conn)
        return True

    def leave(self, conn: Any) -> Any | None:
        """Who goes in instead, if somebody waits; nobody does where `conn` was not inside."""
        if conn not in self._inside:
            return None
        self._inside.remove(conn)
        if not self._line:
            return None
        following = self._line.popleft()
        self._inside.add(following)
        return following


class _Body:
    """A body that breaks the rules of its encoding is, for the app, one that broke off."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def read(self, size: int = -1, /) -> bytes:
        return self._checked(self._body.read, size)

    def readline(self, size: int = -1, /) -> bytes:
        return self._checked(self._body.readline, size)

    @staticmethod
    def _checked(read: Callable[[int], bytes], size: int) -> bytes:
        try:
            return read(size)
        except TooSlow as exc:
            raise RequestTimeout(f"The body came too slowly: {exc}.") from exc
        except ParseException as exc:
            raise OSError(f"the body can't be read: {exc}") from exc


def with_readable_bodies(app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    def called(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        environ["wsgi.input"] = _Body(environ["wsgi.input"])
        return app(environ, start_response)

    return called
