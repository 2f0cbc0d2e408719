"""`pagemill reload`: the web server's worker is replaced while it is hammered, and nobody sees a request refused or
broken; uploads end, followers come back, new settings hold, and a reload that can't be done changes nothing."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from tests.acceptance.following import begin, followed, write_long
from tests.acceptance.instance import Instance, made_instance
from tests.processes import alive, children
from tests.waiting import PATIENCE_S, wait_for, wait_until

pytestmark = pytest.mark.timeout(600)
_HAMMERS = 6


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    folder = tmp_path_factory.mktemp("reload")
    (folder / "conf").mkdir()
    environ = {"PAGEMILL_CONF": str(folder / "conf"), "PAGEMILL_SERVER_RECEIVE_TIMEOUT_S": "300"}
    with made_instance(folder / "data", **environ) as made:
        made.start()
        made.key()
        yield made


def connection(instance: Instance) -> http.client.HTTPConnection:
    place = urlsplit(instance.address)
    return http.client.HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE_S)


class Hammer(threading.Thread):
    """Asks again and again on a connection that it keeps as long as the server promised to, and never tries twice."""

    def __init__(self, instance: Instance, ask: Callable[[http.client.HTTPConnection, int], int]) -> None:
        super().__init__(daemon=True)
        self._link = connection(instance)
        self._ask = ask
        self._stop_asked = threading.Event()
        self.answered = 0
        self.broken: list[str] = []

    def run(self) -> None:
        while not self._stop_asked.is_set():
            try:
                status = self._ask(self._link, self.answered)
                if status != 200:
                    self.broken.append(f"status {status}")
                self.answered += 1
            except (OSError, http.client.HTTPException) as exc:
                self.broken.append(repr(exc))
                self._link.close()

    def stop(self) -> None:
        self._stop_asked.set()
        self.join(PATIENCE_S)
        self._link.close()


def worker(instance: Instance) -> psutil.Process | None:
    """The newest one of the web server."""
    (server,) = instance.children("api.cli server")
    return max(alive(children(server.pid)), key=lambda process: process.create_time(), default=None)


def reload(instance: Instance) -> psutil.Process:
    """The worker that has retired."""
    old, before = worker(instance), instance.output().count("serves now")
    assert old is not None
    instance.run("reload")
    wait_until(lambda: instance.output().count("serves now") > before, what="the new worker")
    return old


def test_nobody_notices_a_reload(instance: Instance) -> None:
    dataset_id = instance.dataset("hammered")
    headers = {"Authorization": f"Bearer {instance.key()}"}

    def read(link: http.client.HTTPConnection, number: int) -> int:
        link.request("GET", f"/api/v1/datasets/{dataset_id}/documents", headers=headers)
        answer = link.getresponse()
        answer.read()
        return answer.status

    def upload(link: http.client.HTTPConnection, number: int) -> int:
        named = f'Content-Disposition: form-data; name="file"; filename="{number}.txt"'
        part = f"--b\r\n{named}\r\n\r\n{number}\r\n--b--\r\n"
        more = headers | {"Content-Type": "multipart/form-data; boundary=b"}
        link.request("POST", f"/api/v1/datasets/{dataset_id}/documents", part.encode(), more)
        answer = link.getresponse()
        assert json.loads(answer.read())["code"] == 0
        return answer.status

    hammers = [Hammer(instance, read) for _ in range(_HAMMERS - 2)] + [Hammer(instance, upload) for _ in range(2)]
    for hammer in hammers:
        hammer.start()
    try:
        for _ in range(2):
            counts = [hammer.answered for hammer in hammers]
            old = reload(instance)
            wait_until(
                lambda counts=counts: all(h.answered > n + 5 for h, n in zip(hammers, counts, strict=True)),
                what="answers of the new worker",
            )
            wait_until(lambda old=old: not alive([old]), what="the old worker's end")
    finally:
        for hammer in hammers:
            hammer.stop()
    assert [hammer.broken for hammer in hammers] == [[]] * _HAMMERS
    uploaded = sum(hammer.answered for hammer in hammers[-2:])
    assert instance.call("GET", f"/datasets/{dataset_id}/documents")["data"]["total"] == uploaded


@pytest.mark.parametrize(("lines", "connection"), [(5000, "keep-alive"), (1000, "close")], ids=["read", "waited for"])
def test_what_is_under_way_ends_and_followers_come_back(
    instance: Instance, tmp_path: Path, lines: int, connection: str
) -> None:
    """A large body is being read, and its connection kept; a small one is waited for, and nothing was promised."""
    dataset_id = instance.dataset(f"slow {lines}")
    job = begin(instance, write_long(tmp_path / "long.pdf", 3000), priority="bulk")
    place = urlsplit(instance.address)
    content = b"a line about herons\n" * lines
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="slow.txt"\r\n\r\n'
    body = head + content + b"\r\n--b--\r\n"
    with (
        socket.create_connection((place.hostname, place.port), timeout=PATIENCE_S) as slow,
        followed(instance, job["links"]["events"]) as stream,
    ):
        events = stream.events()
        next(events)
        slow.sendall(
            f"POST /api/v1/datasets/{dataset_id}/documents HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {instance.key()}\r\nContent-Type: multipart/form-data; boundary=b\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body[:500]
        )
        old = reload(instance)
        assert not any(state["is_final"] for state in events)
        assert stream.said[-2:] == ["retry: 1000", ": the server is stopping: connect again"]
        with followed(instance, job["links"]["events"], headers={"Last-Event-ID": stream.last_id}) as again:
            assert again.status == 200 and next(again.events())["job_id"] == job["job_id"]
            assert alive([old])  # it still waits for the rest of the upload
            slow.sendall(body[500:])
            answer = http.client.HTTPResponse(slow)
            answer.begin()
            assert (answer.status, answer.getheader("Connection")) == (200, connection)
            document = json.loads(answer.read())["data"][0]
            assert (document["name"], document["size"]) == ("slow.txt", len(content))
    wait_until(lambda: not alive([old]), what="the old worker's end")
    instance.call("DELETE", f"/jobs/{job['job_id']}")


def test_new_settings_hold_and_wrong_ones_change_nothing(instance: Instance) -> None:
    conf = Path(instance.environ["PAGEMILL_CONF"]) / "service_conf.yaml"
    conf.write_text("server:\n  max_ids: 2\n")
    reload(instance)

    def refusal() -> str:
        return str(instance.call("DELETE", "/datasets", {"ids": ["0" * 32] * 3})["message"])

    wait_until(lambda: "at most 2" in refusal(), what="the new limit")
    serving = worker(instance)
    conf.write_text("server:\n  max_ids: many\n")
    instance.run("reload", check=False)
    (server,) = instance.children("api.cli server")
    server.send_signal(signal.SIGHUP)
    wait_for(lambda: "the web server goes on as it was" in instance.output(), what="the refusal")
    assert worker(instance) == serving and serving is not None and alive([serving])
    assert instance.call("GET", "/datasets")["code"] == 0
    conf.unlink()
    began_s = time.monotonic()
    assert instance.stop() == 0
    assert time.monotonic() - began_s < PATIENCE_S
