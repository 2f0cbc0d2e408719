"""Clients that send slowly, do not close, or send what is no request: the others are answered as ever, and whoever is
refused is told so in the API's envelope, under an id that the log has."""

from __future__ import annotations

import json
import select
import socket
import time
import urllib.request
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psutil
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


@pytest.fixture(scope="module")
def strict(short_dir: Path) -> Iterator[Instance]:
    """One that loses its patience soon."""
    limits = {"PAGEMILL_SERVER_RECEIVE_TIMEOUT_S": "3", "PAGEMILL_SERVER_SEND_TIMEOUT_S": "3"}
    environ = {**limits, "PAGEMILL_SERVER_THREADS": "2"}
    with running_instance(short_dir / "strict", **environ) as made:
        yield made


def connect(instance: Instance) -> socket.socket:
    host, port = instance.address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=_SOON_S)


def head(path: str, *lines: str) -> bytes:
    """Of a POST."""
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", *lines, "", ""]).encode()


def sent_file(dataset_id: str, key: str, size: int) -> tuple[bytes, bytes]:
    """(the head of an upload, its body)"""
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    body = part + b"word " * (size // 5) + b"\r\n--b--\r\n"
    lines = (f"Authorization: {key}", "Content-Type: multipart/form-data; boundary=b", f"Content-Length: {len(body)}")
    return head(f"/api/v1/datasets/{dataset_id}/documents", *lines), body


def answer(link: socket.socket) -> tuple[int, dict[str, str], Any]:
    """(status, headers, JSON); a client that was told to go on reads on."""
    file = link.makefile("rb")
    status = 100
    while status == 100:
        status = int(file.readline().split()[1])
        headers = dict(line.decode().strip().split(": ", 1) for line in iter(file.readline, b"\r\n"))
    return status, headers, json.loads(file.read(int(headers["Content-Length"])))


def require_answer(instance: Instance) -> None:
    with urllib.request.urlopen(f"{instance.address}/api/v1/system/ping", timeout=_SOON_S) as answer:
        assert answer.read() == b"pong"


@pytest.mark.parametrize("sent", [b"", b"GET /api/v1/system/ping HTTP/1.1\r\nX-Slow: "], ids=["nothing", "half a head"])
def test_heads_that_do_not_come_hold_no_thread(instance: Instance, sent: bytes) -> None:
    with ExitStack() as links:
        for _ in range(40):
            links.enter_context(connect(instance)).sendall(sent)
        require_answer(instance)


_LOGIN = ("/api/v1/auth/login", "Content-Type: application/json")
_CHUNKED = "Transfer-Encoding: chunked"


@pytest.mark.parametrize(
    "sent",
    [
        head(*_LOGIN, "Content-Length: 50") + b'{"email": ',
        head(*_LOGIN, "Content-Length: 50", "Expect: 100-continue"),
        head(*_LOGIN, "Content-Length: 30000000") + b'{"email": "' + b"a" * 50_000,
        head(*_LOGIN, _CHUNKED) + b'a\r\n{"email": \r\n',
        head(*_LOGIN, _CHUNKED) + b"5\r\n0\r\n\r\n\r\n",
        head(*_LOGIN, _CHUNKED) + b"40000\r\n{" + b" " * 50_000,
        head("/api/v1/datasets", "Content-Length: 1000000") + b"{" + b" " * 50_000,
    ],
    ids=["a login", "asks first", "a large login", "in chunks", "a false end", "a large chunk", "no key"],
)
def test_bodies_of_strangers_that_do_not_come_hold_no_thread(instance: Instance, sent: bytes) -> None:
    with ExitStack() as links:
        for _ in range(100):
            links.enter_context(connect(instance)).sendall(sent)
        require_answer(instance)
        dataset_id = instance.dataset(f"beside {zlib.crc32(sent)}")
        begun, body = sent_file(dataset_id, instance.key(), 200_000)
        with connect(instance) as link:
            link.sendall(begun + body)
            assert answer(link)[2]["code"] == 0


def test_large_bodies_leave_threads_to_others_and_are_read_in_turn(instance: Instance) -> None:
    dataset_id = instance.dataset("many at once")
    begun, body = sent_file(dataset_id, instance.key(), 200_000)
    with ExitStack() as stack:
        links = [stack.enter_context(connect(instance)) for _ in range(100)]
        for link in links:
            link.sendall(begun + body[:100_000])
        require_answer(instance)
        for link in links[:10]:
            link.sendall(body[100_000:])
        for link in links[:10]:
            assert answer(link)[2]["code"] == 0


def test_a_body_in_pieces_is_taken(instance: Instance) -> None:
    whole = json.dumps({"email": "nobody@here.org", "password": "x"}).encode()
    with connect(instance) as link:
        link.sendall(head(*_LOGIN, f"Content-Length: {len(whole)}", "Expect: 100-continue"))
        assert link.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        for at in range(len(whole)):
            link.sendall(whole[at : at + 1])
        assert "is not registered" in answer(link)[2]["message"]
        link.sendall(head(*_LOGIN, _CHUNKED))
        for at in range(len(whole)):
            link.sendall(b"1\r\n" + whole[at : at + 1] + b"\r\n")
        link.sendall(b"0\r\n\r\n")
        assert "is not registered" in answer(link)[2]["message"]


@pytest.mark.parametrize("begun", [b"POST /api/v1/auth/login HTTP/1.1\r\n", head(*_LOGIN, "Content-Length: 50") + b"{"])
def test_who_ends_early_costs_nothing(instance: Instance, begun: bytes) -> None:
    """The end of what was sent is no news that is looked at again and again."""
    server = next(one for one in instance.children("api.cli server"))
    spent_before_s = spent_s(server)
    with connect(instance) as link:
        link.sendall(begun)
        time.sleep(0.2)
        link.shutdown(socket.SHUT_WR)
        time.sleep(3.0)
    assert spent_s(server) - spent_before_s < 1.5


def spent_s(process: psutil.Process) -> float:
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def test_a_request_that_does_not_become_whole_is_told_so(strict: Instance) -> None:
    with connect(strict) as link:
        link.sendall(head(*_LOGIN, "Content-Length: 50") + b"{")
        status, headers, told = answer(link)
        assert (status, headers["Connection"], told["code"], told["data"]) == (408, "close", 408, None)
        assert link.recv(1) == b""
    assert headers["X-Request-Id"] in strict.output()


@pytest.mark.parametrize("pause_s", [0.5, 60.0], ids=["drops", "silent"])
def test_a_large_body_that_comes_too_slowly_is_told_so(strict: Instance, pause_s: float) -> None:
    begun, body = sent_file(strict.dataset("slow"), strict.key(), 200_000)
    with connect(strict) as link:
        link.sendall(begun + body[:100_000])
        for at in range(100_000, 100_100):
            if select.select([link], [], [], pause_s)[0]:
                break
            link.sendall(body[at : at + 1])
        status, headers, told = answer(link)
        assert (status, headers["Connection"], told["code"]) == (408, "close", 408)
        assert "too slowly" in told["message"]
    require_answer(strict)


def test_a_large_body_over_a_slow_line_is_taken(strict: Instance) -> None:
    """Twice as fast as it has to be, and for much longer than anybody may be silent."""
    begun, body = sent_file(strict.dataset("patient"), strict.key(), 60_000)
    with connect(strict) as link:
        link.sendall(begun + body[:34_000])
        for at in range(34_000, len(body), 2048):
            time.sleep(1.0)
            link.sendall(body[at : at + 2048])
        assert answer(link)[2]["code"] == 0


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


@pytest.fixture(scope="module")
def large(instance: Instance, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    """(the address of a file, all of it): more than the kernel takes for a connection"""
    path = tmp_path_factory.mktemp("large") / "large.txt"
    path.write_bytes(b"".join(b"%09d\n" % n for n in range(2_000_000)))
    dataset_id = instance.dataset("large")
    return f"/api/v1/documents/{instance.upload(dataset_id, path)}", path.read_bytes()


def slow_reader(instance: Instance, path: str, *lines: str) -> socket.socket:
    host, port = instance.address.removeprefix("http://").split(":")
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    link.settimeout(_SOON_S)
    link.connect((host, int(port)))
    key = f"Authorization: Bearer {instance.key()}"
    link.sendall("\r\n".join([f"GET {path} HTTP/1.1", "Host: x", key, *lines, "", ""]).encode())
    return link


def received(link: socket.socket) -> bytes:
    """The body of an answer that has a length."""
    file = link.makefile("rb")
    head = dict(line.decode().strip().split(": ", 1) for line in iter(file.readline, b"\r\n") if b": " in line)
    return file.read(int(head["Content-Length"]))


def test_who_reads_slowly_holds_no_thread_and_gets_all_of_it(instance: Instance, large: tuple[str, bytes]) -> None:
    path, whole = large
    with ExitStack() as stack:
        files = [stack.enter_context(slow_reader(instance, path)) for _ in range(20)]
        texts = [stack.enter_context(slow_reader(instance, "/api/v1/openapi.json")) for _ in range(20)]
        for _ in range(3):
            require_answer(instance)
            assert all(len(link.recv(100, socket.MSG_PEEK)) for link in (*files, *texts))
        assert received(files[-1]) == whole
        assert json.loads(received(texts[-1]))["openapi"]
        ping = b"GET /api/v1/system/ping HTTP/1.1\r\nHost: x\r\n\r\n"
        for kept in (files[-1], texts[-1]):
            kept.sendall(ping)
            assert received(kept) == b"pong"


def test_parts_of_files_are_read_slowly_without_a_thread(instance: Instance, large: tuple[str, bytes]) -> None:
    path, whole = large
    with ExitStack() as stack:
        links = [stack.enter_context(slow_reader(instance, path, "Range: bytes=1000-15000999")) for _ in range(20)]
        require_answer(instance)
        assert received(links[-1]) == whole[1000:15_001_000]


def test_who_takes_nothing_of_an_answer_is_cut_off(strict: Instance, tmp_path: Path) -> None:
    (tmp_path / "large.txt").write_bytes(b"word " * 4_000_000)
    document_id = strict.upload(strict.dataset("large"), tmp_path / "large.txt")
    with ExitStack() as stack:
        path = f"/api/v1/documents/{document_id}"
        links = [stack.enter_context(slow_reader(strict, path)) for _ in range(4)]
        require_answer(strict)
        time.sleep(12.0)
        for link in links:
            with pytest.raises(ConnectionResetError):
                while link.recv(1 << 20):
                    pass
    require_answer(strict)


@pytest.mark.parametrize("size", [20, 20_000, 100_000])
def test_who_asks_first_is_told_once(instance: Instance, size: int) -> None:
    body = json.dumps({"name": "x" * size}).encode()
    lines = (f"Authorization: Bearer {instance.key()}", "Content-Type: application/json", "Connection: close")
    with connect(instance) as link:
        link.sendall(head("/api/v1/datasets", *lines, f"Content-Length: {len(body)}", "Expect: 100-continue"))
        assert link.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        link.sendall(body)
        assert link.makefile("rb").read().startswith(b"HTTP/1.1 200 OK")


def test_a_connection_that_is_promised_to_be_kept_is_kept_under_load(instance: Instance) -> None:
    """Many at once, so that threads wait for the interpreter between an answer and what follows it."""
    host, port = instance.address.removeprefix("http://").split(":")
    body = b"x" * 60_000

    def ask_often() -> int:
        link = HTTPConnection(host, int(port), timeout=_SOON_S)
        for _ in range(60):
            link.request("POST", "/api/v1/datasets", body, {"Authorization": f"Bearer {key}"})
            with link.getresponse() as answer:
                assert answer.getheader("Connection") == "keep-alive"
                answer.read()
        link.close()
        return 60

    key = instance.key()
    with ThreadPoolExecutor(16) as callers:
        asked = [callers.submit(ask_often) for _ in range(16)]
        assert sum(each.result() for each in asked) == 960
