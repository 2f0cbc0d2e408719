"""Clients that send slowly, do not close, or send what is no request: the others are answered as ever, and whoever is
refused is told so in the API's envelope, under an id that the log has."""

from __future__ import annotations

import json
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.acceptance.instance import Instance, running_instance

pytestmark = pytest.mark.timeout(600)
# Far less than what the slow ones would hold all threads for.
_SOON_S = 20.0


@pytest.fixture(scope="module")
def instance(short_dir: Path) -> Iterator[Instance]:
    environ = {"PAGEMILL_SERVER_RECEIVE_TIMEOUT_S": "60", "PAGEMILL_SERVER_THREADS": "4"}
    with running_instance(short_dir / "slow", **environ) as made:
        yield made
        assert made.stop() == 0


def connect(instance: Instance) -> socket.socket:
    host, port = instance.address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=_SOON_S)


def require_answer(instance: Instance) -> None:
    with urllib.request.urlopen(f"{instance.address}/api/v1/system/ping", timeout=_SOON_S) as answer:
        assert answer.read() == b"pong"


@pytest.mark.parametrize("sent", [b"", b"GET /api/v1/system/ping HTTP/1.1\r\nX-Slow: "], ids=["nothing", "half a head"])
def test_heads_that_do_not_come_hold_no_thread(instance: Instance, sent: bytes) -> None:
    with ExitStack() as links:
        for _ in range(40):
            links.enter_context(connect(instance)).sendall(sent)
        require_answer(instance)


def test_a_head_in_pieces_and_requests_in_one_piece_are_answered(instance: Instance) -> None:
    whole = b"GET /api/v1/system/ping HTTP/1.1\r\nHost: x\r\n\r\n"
    with connect(instance) as link:
        for at in range(len(whole)):
            link.sendall(whole[at : at + 1])
        link.sendall(whole + whole[:-2])
        link.sendall(whole[-2:])
        got = b""
        while got.count(b"pong") < 3:
            got += link.recv(65536)
    assert got.count(b"200 OK") == 3


def test_clients_that_do_not_close_are_not_waited_for(instance: Instance) -> None:
    with ExitStack() as links:
        for _ in range(40):
            links.enter_context(connect(instance)).sendall(b"GET /api/v1/system/ping HTTP/1.0\r\n\r\n")
        require_answer(instance)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01", 400),
        (b"GET /\r\n\r\n", 400),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nX-Large: " + b"a" * 9000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 200 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"X: aaaaaaaaaaaaaaaaaaa\r\n" * 4000, 431),
        (b"GET / HTTP/1.1\r\nExpect: the best\r\n\r\n", 417),
    ],
)
def test_what_is_no_request_is_refused_in_the_envelope(instance: Instance, sent: bytes, status: int) -> None:
    with connect(instance) as link:
        link.sendall(sent)
        head, _, body = link.makefile("rb").read().partition(b"\r\n\r\n")
    told = json.loads(body)
    assert (told["code"], told["data"], bool(told["message"])) == (status, None, True)
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    assert headers["Content-Type"] == "application/json"
    assert headers["X-Request-Id"] in instance.output()


def test_a_body_that_breaks_its_encoding_is_no_error_of_the_server(instance: Instance) -> None:
    with connect(instance) as link:
        link.sendall(
            f"POST /api/v1/retrieval HTTP/1.1\r\nHost: x\r\nAuthorization: {instance.key()}\r\nConnection: close\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n".encode()
        )
        told = json.loads(link.makefile("rb").read().partition(b"\r\n\r\n")[2])
    assert (told["code"], "400: Bad Request" in told["message"]) == (100, True)


def test_an_address_may_name_a_hundred_ids_and_more(instance: Instance) -> None:
    ids = "&".join(f"ids={n:032x}" for n in range(100))
    path = f"/datasets/{instance.dataset('many')}/documents?{ids}&metadata_condition=%7B%7D&keywords={'a' * 500}"
    assert "don't own the document" in instance.call("GET", path)["message"]
