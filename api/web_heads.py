"""How far the head of a request has come, seen without reading it: a thread is given to those that are whole, so that
nobody holds one by sending slowly. And what is told to whoever sends no request: the web server refuses it itself,
in the envelope of the API, under an id that its log has."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from gunicorn.http import errors
from werkzeug.http import HTTP_STATUS_CODES

# Less than what the kernel keeps of a connection that nobody reads.
MOST_BYTES = 32 * 1024
_END = b"\r\n\r\n"
_MAX_SHOWN = 200
_STATUSES = (
    ((errors.InvalidResponseHeader, errors.InvalidResponseHeaderName), 500),  # the app's own fault
    (errors.LimitRequestLine, 414),
    (errors.ExpectationFailed, 417),
    (errors.LimitRequestHeaders, 431),
    (errors.UnsupportedTransferCoding, 501),
    (errors.ParseException, 400),
)


class Head(Enum):
    WHOLE = "whole"
    PARTIAL = "partial"
    TOO_LARGE = "too large"
    NO_HTTP = "no HTTP"


def head_of(sock: socket.socket, held: bytes) -> Head:
    """`held` was read before. After PARTIAL the socket is readable only when more has come. What ends without an end
    counts as whole: whoever reads it meets that."""
    try:
        peeked = sock.recv(MOST_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        peeked = b""
    except OSError:
        return Head.WHOLE
    else:
        if not peeked:
            return Head.WHOLE
    seen = held + peeked
    words = seen.lstrip(b"\r\n")
    if words and not words[:1].isalpha():
        found = Head.NO_HTTP
    elif _END in seen:
        found = Head.WHOLE
    else:
        found = Head.PARTIAL if len(seen) < MOST_BYTES else Head.TOO_LARGE
    wanted = len(peeked) + 1 if found is Head.PARTIAL else 1
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wanted)
    return found


def objection(head: Head) -> Exception | None:
    """What keeps a thread from reading it; None where nothing does."""
    found: Exception | None = None
    if head is Head.TOO_LARGE:
        found = errors.LimitRequestHeaders(f"the head of a request has at most {MOST_BYTES} bytes")
    elif head is Head.NO_HTTP:
        found = errors.InvalidRequestLine("this is no HTTP")
    return found


def refusal(error: BaseException, request_id: str) -> tuple[int, bytes]:
    """(status, the whole answer) for what is no request, or for an error of the server's own."""
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    reason = HTTP_STATUS_CODES[status]
    message = f"{reason}: {str(error)[:_MAX_SHOWN]}" if status != 500 else f"Internal error: request {request_id}"
    body = json.dumps({"code": status, "message": message, "data": None}).encode() + b"\n"
    head = (
        f"HTTP/1.1 {status} {reason}\r\nConnection: close\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nX-Request-Id: {request_id}\r\n\r\n"
    )
    return status, head.encode("latin-1") + body


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
        except errors.ParseException as exc:
            raise OSError(f"the body can't be read: {exc}") from exc


def with_readable_bodies(app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    def called(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        environ["wsgi.input"] = _Body(environ["wsgi.input"])
        return app(environ, start_response)

    return called
