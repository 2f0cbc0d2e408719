"""One delivery of a webhook: a signed POST to an address that a user gave. Nothing of the answer counts but its status;
redirects are not followed.

Connects to the very addresses that were checked (public_address.py), and is over in time however slowly the other side
speaks: urllib3's own timeouts begin anew with every byte."""

from __future__ import annotations

import hashlib
import hmac
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from common.errors import InvalidInput, Outage
from common.settings import WebhookSettings
from common.version import VERSION
from rag.utils.public_address import Target, addresses_of, target_of

SIGNATURE = "X-Pagemill-Signature"
DELIVERY = "X-Pagemill-Delivery"
EVENT = "X-Pagemill-Event"
_CONNECT_S = 5.0


@dataclass(frozen=True)
class Message:
    url: str
    secret: str
    delivery_id: str
    event: str
    body: bytes


@dataclass(frozen=True)
class Answer:
    """`status` is 0 where there was no answer; `problem` is empty where it was accepted."""

    status: int
    problem: str

    @property
    def is_accepted(self) -> bool:
        return not self.problem


def signature(secret: str, at_s: int, body: bytes) -> str:
    """What the header says: the receiver makes the same from what it got, and compares."""
    made = hmac.new(secret.encode(), f"{at_s}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at_s},v1={made}"


class WebhookClient:
    """Thread-safe. A connection is used once: the next delivery may go elsewhere."""

    def __init__(self, settings: WebhookSettings) -> None:
        self._settings = settings

    def post(self, message: Message) -> Answer:
        """Whatever goes wrong on the way is an answer too: the log of deliveries says it."""
        deadline_s = time.monotonic() + self._settings.timeout_s
        try:
            target = target_of(message.url)
            addresses = addresses_of(target, allow_private=self._settings.allow_private)
            status = self._ask(target, addresses, message, deadline_s)
        except (InvalidInput, Outage) as exc:
            return Answer(0, exc.public_message)
        except (HTTPError, HTTPException, OSError) as exc:
            return Answer(0, self._cause(exc, deadline_s))
        return Answer(status, _refusal(status))

    def _ask(self, target: Target, addresses: Sequence[str], message: Message, deadline_s: float) -> int:
        at_s = int(time.time())
        headers = {
            "Host": target.authority,
            "Content-Type": "application/json",
            "User-Agent": f"pagemill/{VERSION}",
            DELIVERY: message.delivery_id,
            EVENT: message.event,
            SIGNATURE: signature(message.secret, at_s, message.body),
        }
        connection = _connected(target, addresses, deadline_s)
        try:
            with _cut_off(connection, deadline_s):
                connection.request("POST", target.path, body=message.body, headers=headers, preload_content=False)
                with closing(connection.getresponse()) as response:
                    if time.monotonic() >= deadline_s:
                        raise TimeoutError  # cut off within the headers, which then look complete
                    return response.status
        finally:
            connection.close()

    def _cause(self, exc: Exception, deadline_s: float) -> str:
        if isinstance(exc, NewConnectionError):  # a kind of timeout to urllib3
            reason = exc.__cause__.strerror if isinstance(exc.__cause__, OSError) else None
            return f"can't be reached: {reason or 'no connection'}"
        if time.monotonic() >= deadline_s or isinstance(exc, TimeoutError | ConnectTimeoutError):
            return f"did not answer within {self._settings.timeout_s:g} s"
        if isinstance(exc, ssl.SSLCertVerificationError):
            return f"can't be trusted: {exc.verify_message}"
        if isinstance(exc, ssl.SSLError):
            return "can't be trusted: no secure connection was made"
        if isinstance(exc, OSError):
            return "closed the connection before it answered"
        return f"gave an answer that can't be read ({type(exc).__name__})"


def _connected(target: Target, addresses: Sequence[str], deadline_s: float) -> HTTPConnection:
    """To the first address that takes it; raises what the last one said."""
    for address in addresses[:-1]:
        with suppress(NewConnectionError, ConnectTimeoutError):
            return _connect(target, address, deadline_s)
    return _connect(target, addresses[-1], deadline_s)


def _connect(target: Target, address: str, deadline_s: float) -> HTTPConnection:
    left_s = deadline_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    timeout_s = min(_CONNECT_S, left_s)
    connection: HTTPConnection
    if target.is_https:
        # The certificate must be the name's, not the number's.
        connection = HTTPSConnection(address, target.port, timeout=timeout_s, server_hostname=target.host)
    else:
        connection = HTTPConnection(address, target.port, timeout=timeout_s)
    with ExitStack() as undo:
        undo.callback(connection.close)
        connection.connect()
        undo.pop_all()
    return connection


@contextmanager
def _cut_off(connection: HTTPConnection, deadline_s: float) -> Iterator[None]:
    """Whatever waits for this connection ends with an error at the deadline."""
    left_s = max(0.01, deadline_s - time.monotonic())
    connection.timeout = left_s
    timer = threading.Timer(left_s, _shut, (connection.sock,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _shut(open_socket: socket.socket) -> None:
    """Below TLS, whose own way to shut is not for another thread than the one that reads."""
    with suppress(OSError):  # closed just now
        socket.socket.shutdown(open_socket, socket.SHUT_RDWR)


def _refusal(status: int) -> str:
    if 200 <= status < 300:
        return ""
    return f"answered {status}" + ("; redirects are not followed" if 300 <= status < 400 else "")
