"""An HTTP server between a client and a real one: passes on what it hears, and can be told to answer in its place, to
change an answer, or to be away."""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_PASSED_BACK = ("content-type", "x-elastic-product", "warning")
_PATIENCE_S = 120


@dataclass(frozen=True)
class Heard:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


class Meddler:
    """`answer` may answer in the server's place (None: the server does); `change` gets the server's answer."""

    def __init__(self, target: str, tls: ssl.SSLContext | None = None) -> None:
        self.heard: list[Heard] = []
        self.away = False
        self.answer: Callable[[Heard], Answer | None] = lambda heard: None
        self.change: Callable[[Heard, Answer], Answer] = lambda heard, answer: answer
        self._target = urlsplit(target)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def paths(self, ending: str) -> list[Heard]:
        """What was heard for paths that end so."""
        return [heard for heard in self.heard if heard.path.partition("?")[0].endswith(ending)]

    def respond(self, heard: Heard) -> Answer | None:
        """None: the connection ends without an answer."""
        if self.away:
            return None
        self.heard.append(heard)
        answer = self.answer(heard)
        return self.change(heard, self.pass_on(heard)) if answer is None else answer

    def pass_on(self, heard: Heard) -> Answer:
        assert self._target.hostname is not None
        link = http.client.HTTPConnection(self._target.hostname, self._target.port, timeout=_PATIENCE_S)
        try:
            sent = {name: value for name, value in heard.headers.items() if name.lower() not in ("host", "connection")}
            link.request(heard.method, heard.path, heard.body or None, sent)
            told = link.getresponse()
            kept = {name: value for name, value in told.getheaders() if name.lower() in _PASSED_BACK}
            return Answer(told.status, told.read(), kept)
        finally:
            link.close()


def _handler(meddler: Meddler) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            answer = meddler.respond(Heard(self.command, self.path, dict(self.headers), body))
            if answer is None:
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = handle_any

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is said."""

    return Handler


@contextmanager
def meddling(target: str, tls: ssl.SSLContext | None = None) -> Iterator[Meddler]:
    made = Meddler(target, tls)
    try:
        yield made
    finally:
        made.close()
