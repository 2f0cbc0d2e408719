"""A real receiver of webhooks on a port of its own, which misbehaves on demand and remembers what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    content: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.content)

    @property
    def delivery_id(self) -> str:
        return self.headers["x-pagemill-delivery"]


class WebhookReceiver:
    """`always` is how it answers from now on; `next_moods` are used up before, one a call."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.always: Mood = answers(204)
        self.next_moods: list[Mood] = []
        self.stopping = threading.Event()
        receiver = self

        class Handler(_Handler):
            served = receiver

        self._server = _Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?to=me"

    def stop(self) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def webhook_receiver() -> Iterator[WebhookReceiver]:
    receiver = WebhookReceiver()
    try:
        yield receiver
    finally:
        receiver.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever sent has hung up, or was killed: that is part of some tests."""


class _Handler(BaseHTTPRequestHandler):
    served: WebhookReceiver
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.served.received.append(Received(self.path, headers, content))
        mood = self.served.next_moods.pop(0) if self.served.next_moods else self.served.always
        mood(self)

    def log_message(self, format: str, *args: Any) -> None:
        """Tests look at `received`."""


Mood = Callable[[_Handler], None]


def answers(status: int, **headers: str) -> Mood:
    def mood(handler: _Handler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return mood


def hangs(handler: _Handler) -> None:
    """Never answers."""
    handler.served.stopping.wait()
    handler.close_connection = True


def drips(handler: _Handler) -> None:
    """Begins its answer, and goes on with it a byte at a time without an end: the headers are never complete."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while not handler.served.stopping.wait(0.02):
        handler.wfile.write(b"x")


def never_ends(handler: _Handler) -> None:
    """Accepts, and then talks without end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n")
    while not handler.served.stopping.is_set():
        handler.wfile.write(b"x" * 65536)


def hangs_up(handler: _Handler) -> None:
    handler.close_connection = True
