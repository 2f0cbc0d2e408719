"""How far a request has come, seen without reading it: a thread is given to those that are whole, so that nobody holds
one by sending slowly. Only a body that is too large to be waited for here is read while it comes (web_bodies.py).

And what is told to whoever sends no request: the web server refuses it itself, in the envelope of the API, under an id
that its log has."""

from __future__ import annotations

import json
import re
import socket
from dataclasses import dataclass
from enum import Enum

from gunicorn.http import errors
from werkzeug.http import HTTP_STATUS_CODES

from api.web_bodies import TooSlow

# Less than what the kernel keeps of a connection that nobody reads.
MOST_BYTES = 32 * 1024
_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*(?:\r|$)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)
_CHUNK = re.compile(rb"([0-9a-f]{1,8})(?:;[^\r\n]*)?\r\n", re.IGNORECASE)
_EXPECTS = re.compile(rb" HTTP/1\.1\r\n(?:.*\r\n)?expect:[ \t]*100-continue[ \t]*(?:\r|$)", re.IGNORECASE | re.DOTALL)
_MAX_SHOWN = 200
_STATUSES = (
    ((errors.InvalidResponseHeader, errors.InvalidResponseHeaderName), 500),  # the app's own fault
    (TooSlow, 408),
    (errors.LimitRequestLine, 414),
    (errors.ExpectationFailed, 417),
    (errors.LimitRequestHeaders, 431),
    (errors.UnsupportedTransferCoding, 501),
    (errors.ParseException, 400),
)


class Come(Enum):
    """STREAMED has its head, and a body that is read as it comes."""

    WHOLE = "whole"
    STREAMED = "streamed"
    PARTIAL = "partial"
    TOO_LARGE = "too large"
    NO_HTTP = "no HTTP"


@dataclass(frozen=True)
class Look:
    """`size` is how much was there, `wanted` how much there has to be before another look is worth it. Who
    `expects_leave` sends its body only when it is told to."""

    come: Come
    size: int = 0
    wanted: int = 0
    expects_leave: bool = False


def look_at(sock: socket.socket, held: bytes, before: int = -1) -> Look:
    """`held` was read earlier. After PARTIAL the socket is readable only when enough has come, or nothing will: what
    has not grown since the look that saw `before` has ended. Without an end it counts as whole: whoever reads it meets
    that."""
    try:
        peeked = sock.recv(MOST_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        peeked = b""
    except OSError:
        return Look(Come.WHOLE)
    else:
        if not peeked:
            return Look(Come.WHOLE)
    seen = held + peeked
    look = Look(Come.WHOLE) if len(seen) <= before else judged(seen)
    wanted = look.wanted - len(held) if look.come is Come.PARTIAL else 1
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wanted)
    return look


def judged(seen: bytes) -> Look:
    words = seen.lstrip(b"\r\n")
    if words and not words[:1].isalpha():
        return Look(Come.NO_HTTP)
    head, end, body = words.partition(_END)
    if not end:
        return _awaited(seen, len(seen) + 1, otherwise=Come.TOO_LARGE)
    expects_leave = _EXPECTS.search(head) is not None
    if _CHUNKED.search(head):
        missing = _missing_of_chunks(body)
    else:
        length = _LENGTH.search(head)
        missing = int(length[1]) - len(body) if length else 0
    if missing <= 0:
        return Look(Come.WHOLE)
    return _awaited(seen, len(seen) + missing, otherwise=Come.STREAMED, expects_leave=expects_leave)


def _awaited(seen: bytes, wanted: int, *, otherwise: Come, expects_leave: bool = False) -> Look:
    come = Come.PARTIAL if wanted <= MOST_BYTES else otherwise
    return Look(come, len(seen), wanted, expects_leave)


def _missing_of_chunks(body: bytes) -> int:
    """At least so many bytes are to come; more than are waited for where it is not told as it should be."""
    at = 0
    while (told := _CHUNK.match(body, at)) is not None:
        size = int(told[1], 16)
        if not size:
            return 0 if body.find(_END, told.end() - 2) >= 0 else 1
        at = told.end() + size + 2
    if b"\r\n" in body[at:]:
        return MOST_BYTES
    return max(at - len(body), 0) + 1


def objection(come: Come) -> Exception | None:
    """What keeps a thread from reading it; None where nothing does."""
    found: Exception | None = None
    if come is Come.TOO_LARGE:
        found = errors.LimitRequestHeaders(f"the head of a request has at most {MOST_BYTES} bytes")
    elif come is Come.NO_HTTP:
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
