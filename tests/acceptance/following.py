"""Jobs of a running instance, begun and followed as clients do it: by an event stream or by a WebSocket."""

from __future__ import annotations

import contextlib
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.acceptance.instance import Instance
from tests.pdfs import CATALOG, HELVETICA, pdf_of
from tests.waiting import PATIENCE_S


class Stream:
    """An event stream read by hand, as a client without a library would."""

    def __init__(self, instance: Instance, path: str, headers: dict[str, str] | None = None, key: str = "") -> None:
        place = urlsplit(instance.address)
        self.sock = socket.create_connection((place.hostname, place.port), timeout=PATIENCE_S)
        lines = {"Host": "x", "Authorization": f"Bearer {key or instance.key()}", **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.sock.sendall(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
        self._file = self.sock.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        self.headers = dict(line.decode().rstrip().split(": ", 1) for line in iter(self._file.readline, b"\r\n"))
        self.last_id = ""
        self.said: list[str] = []

    def events(self) -> Iterator[dict[str, Any]]:
        """Until the server ends the stream."""
        for line in self._file:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "id":
                self.last_id = value
            elif name == "data":
                yield json.loads(value)
            elif line.strip():
                self.said.append(line.decode().strip())

    def close(self) -> None:
        self._file.close()
        self.sock.close()


@contextlib.contextmanager
def followed(instance: Instance, path: str, **options: Any) -> Iterator[Stream]:
    stream = Stream(instance, path, **options)
    try:
        yield stream
    finally:
        stream.close()


def begin(instance: Instance, path: Path, **fields: str) -> dict[str, Any]:
    parts = [
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()
    ]
    head = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{path.name}"\r\n\r\n'
    body = "".join([*parts, head]).encode() + path.read_bytes() + b"\r\n--b--\r\n"
    request = urllib.request.Request(f"{instance.address}/api/v1/jobs", body)
    request.add_header("Authorization", f"Bearer {instance.key()}")
    request.add_header("Content-Type", "multipart/form-data; boundary=b")
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        assert answer.status == 202
        shown: dict[str, Any] = json.loads(answer.read())
        assert answer.headers["Location"] == f"/api/v1/jobs/{shown['job_id']}"
    return shown


def write_long(path: Path, pages: int) -> Path:
    """A PDF whose pages are all the same: quickly made, and long in work."""
    lines = b"".join(b"0 -14 Td (Line %d tells how the lighthouse was kept.) Tj " % n for n in range(40))
    content = b"BT /F1 10 Tf 50 760 Td %bET" % lines
    parts = b"/MediaBox [0 0 612 792] /Contents 3 0 R /Resources << /Font << /F1 4 0 R >> >>"
    page = b"<< /Type /Page /Parent 2 0 R %b >>" % parts
    kids = b" ".join(b"%d 0 R" % (5 + n) for n in range(pages))
    tree = b"<< /Type /Pages /Kids [%b] /Count %d >>" % (kids, pages)
    stream = b"<< /Length %d >>\nstream\n%b\nendstream" % (len(content), content)
    path.write_bytes(pdf_of([CATALOG, tree, stream, HELVETICA, *[page] * pages]))
    return path


def opened_socket(instance: Instance, job_id: str, query: str = "", key: str | None = None) -> ClientConnection:
    address = f"{instance.address.replace('http', 'ws')}/ws/jobs/{job_id}{query}"
    headers = {} if key == "" else {"Authorization": f"Bearer {key or instance.key()}"}
    return connect(address, additional_headers=headers, open_timeout=PATIENCE_S, compression=None)


def heard(follower: ClientConnection) -> tuple[list[dict[str, Any]], int | None]:
    """Every state until the server closes, and the code that it closes with."""
    states = []
    while True:
        try:
            states.append(json.loads(follower.recv(timeout=PATIENCE_S)))
        except ConnectionClosed as exc:
            return states, exc.rcvd.code if exc.rcvd else None
