"""A real OpenAI-compatible endpoint on a port of its own, which misbehaves on demand and remembers what it was asked.

Its vectors are sums of one vector per word, so texts that share words are near each other; they are not of length 1,
and come in the reverse order of the texts, as an endpoint may send them."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Asked:
    """One call."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        return list(self.body["input"])


class EmbeddingEndpoint:
    """`always` is how it answers from now on; `next_moods` are used up before, one a call."""

    def __init__(self, dimension: int = 16) -> None:
        self.dimension = dimension
        self.asked: list[Asked] = []
        self.connections = 0
        self.at_once = 0
        self.most_at_once = 0
        self._counting = threading.Lock()
        self.always: Mood = well
        self.next_moods: list[Mood] = []
        self.stopping = threading.Event()
        endpoint = self

        class Handler(_Handler):
            served = endpoint

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{self.address}/v1"

    @property
    def texts(self) -> list[str]:
        """Every text it was ever sent."""
        return [text for asked in self.asked for text in asked.texts]

    @contextmanager
    def counted(self) -> Iterator[None]:
        with self._counting:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            yield
        finally:
            with self._counting:
                self.at_once -= 1

    def stop(self) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()

    def vector(self, text: str) -> list[float]:
        words = [_word(word, self.dimension) for word in text.lower().split()] or [np.zeros(self.dimension)]
        return [float(number) for number in np.sum(words, axis=0)]

    def rows(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        rows = [{"object": "embedding", "index": n, "embedding": self.vector(text)} for n, text in enumerate(texts)]
        return rows[::-1]


@contextmanager
def embedding_endpoint(dimension: int = 16) -> Iterator[EmbeddingEndpoint]:
    endpoint = EmbeddingEndpoint(dimension)
    try:
        yield endpoint
    finally:
        endpoint.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked has hung up: that is part of some tests."""


class _Handler(BaseHTTPRequestHandler):
    served: EmbeddingEndpoint
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.served.connections += 1

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
        self.served.asked.append(asked)
        mood = self.served.next_moods.pop(0) if self.served.next_moods else self.served.always
        with self.served.counted():
            mood(self, asked)

    def send(self, status: int, content: object, **headers: str) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Tests look at `asked`."""


Mood = Callable[[_Handler, Asked], None]


def well(handler: _Handler, asked: Asked) -> None:
    handler.send(200, {"object": "list", "data": handler.served.rows(asked.texts)})


def refuses(status: int, message: str = "no", **headers: str) -> Mood:
    """With an error as OpenAI words it."""

    def mood(handler: _Handler, asked: Asked) -> None:
        handler.send(status, {"error": {"message": message, "type": "test"}}, **headers)

    return mood


def says(status: int, content: bytes) -> Mood:
    """These bytes, whatever was asked."""

    def mood(handler: _Handler, asked: Asked) -> None:
        handler.send(status, content)

    return mood


def echoes_its_headers(handler: _Handler, asked: Asked) -> None:
    """Refuses, and repeats all it was sent, the key included."""
    handler.send(401, {"error": {"message": f"wrong: {asked.headers}"}})


def hangs(handler: _Handler, asked: Asked) -> None:
    """Never answers."""
    handler.served.stopping.wait()
    handler.close_connection = True


def drips(every_s: float) -> Mood:
    """A byte at a time, without end."""

    def mood(handler: _Handler, asked: Asked) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        while not handler.served.stopping.wait(every_s):
            handler.wfile.write(b" ")

    return mood


def slow(seconds: float) -> Mood:
    def mood(handler: _Handler, asked: Asked) -> None:
        handler.served.stopping.wait(seconds)
        well(handler, asked)

    return mood


def hangs_up(handler: _Handler, asked: Asked) -> None:
    """Closes the connection without a word."""
    handler.close_connection = True


def hangs_up_midway(handler: _Handler, asked: Asked) -> None:
    """Closes the connection in the middle of its answer."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.wfile.write(b'{"data": [')
    handler.close_connection = True


def forgets_one(handler: _Handler, asked: Asked) -> None:
    handler.send(200, {"data": handler.served.rows(asked.texts)[1:]})


def gives(number: object) -> Mood:
    """This in the place of the first number of the first vector; NaN as Python writes it, which is no JSON."""

    def mood(handler: _Handler, asked: Asked) -> None:
        rows = handler.served.rows(asked.texts)
        rows[0]["embedding"][0] = number
        handler.send(200, {"data": rows})

    return mood


def gives_dimension(dimension: int) -> Mood:
    def mood(handler: _Handler, asked: Asked) -> None:
        rows = [{"index": n, "embedding": [1.0] * dimension} for n in range(len(asked.texts))]
        handler.send(200, {"data": rows})

    return mood


def takes_texts(most: int) -> Mood:
    """413 for more texts in one call."""

    def mood(handler: _Handler, asked: Asked) -> None:
        if len(asked.texts) > most:
            handler.send(413, b"Payload Too Large")
        else:
            well(handler, asked)

    return mood


def takes_words(most: int, status: int = 400, message: str = "This model's maximum context length is 8 tokens") -> Mood:
    """Refuses a text of more words."""

    def mood(handler: _Handler, asked: Asked) -> None:
        if any(len(text.split()) > most for text in asked.texts):
            handler.send(status, {"error": {"message": message}})
        else:
            well(handler, asked)

    return mood


def dislikes(word: str) -> Mood:
    """400 for every call in which a text has this word."""

    def mood(handler: _Handler, asked: Asked) -> None:
        if any(word in text for text in asked.texts):
            handler.send(400, {"error": {"message": f"the text has {word}"}})
        else:
            well(handler, asked)

    return mood


def _word(word: str, dimension: int) -> Any:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(dimension)
