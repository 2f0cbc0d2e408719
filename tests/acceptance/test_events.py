"""Jobs followed on a running instance: Server-Sent Events and WebSocket, to the end, after a loss, and by hundreds."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from api.db.database import open_rows
from api.db.services.account_service import AccountService
from rag.utils.embedder import PackagedEmbedder
from tests.acceptance.following import Stream, begin, followed, heard, opened_socket, write_long
from tests.acceptance.instance import Instance, made_instance, running_instance
from tests.pdfs import write_pages
from tests.waiting import PATIENCE_S, wait_for, wait_until

_FOLLOWERS = 300
# So many that followers, who are told four times a second, see some of them in work.
_PAGES = 2500


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    folder = tmp_path_factory.mktemp("events")
    with running_instance(folder / "data", PAGEMILL_SERVER_THREADS="4") as started:
        yield started


def require_told(states: list[dict[str, Any]]) -> None:
    """Of a PDF with several ranges, from the start to the end."""
    assert len(states) >= 3
    assert all(state.keys() >= {"status", "progress", "message", "step", "ranges"} for state in states)
    progress = [state["progress"] for state in states]
    assert progress == sorted(progress)
    assert (states[-1]["status"], progress[-1], states[-1]["is_final"]) == ("done", 1.0, True)
    assert not any(state["is_final"] for state in states[:-1])
    in_work = [r for state in states for r in state["ranges"]]
    assert in_work and all(r["unit"] == "page" and 1 <= r["first"] <= r["last"] for r in in_work)
    assert any(state["message"].startswith("reading pages") for state in states)


def test_a_pdf_is_followed_from_its_start_to_its_end(instance: Instance, tmp_path: Path) -> None:
    job = begin(instance, write_long(tmp_path / "long.pdf", _PAGES))
    with followed(instance, job["links"]["events"]) as stream:
        assert (stream.status, stream.headers["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
        assert stream.headers["X-Request-Id"]
        states = list(stream.events())
    require_told(states)
    assert stream.said[0] == "retry: 2000"
    assert states[-1]["result"]["chunk_count"] >= _PAGES
    assert states[-1] == instance.call("GET", f"/jobs/{job['job_id']}")
    with followed(instance, job["links"]["events"], headers={"Last-Event-ID": stream.last_id}) as again:
        assert again.status == 204  # the end has been heard: nothing more comes


def test_a_stream_that_broke_goes_on(instance: Instance, tmp_path: Path) -> None:
    job = begin(instance, write_long(tmp_path / "broken.pdf", _PAGES + 1))
    with followed(instance, job["links"]["events"]) as stream:
        first = next(stream.events())
    with followed(instance, f"{job['links']['events']}?last_event_id={stream.last_id}") as stream_again:
        rest = list(stream_again.events())
    assert int(stream_again.last_id) >= int(stream.last_id)
    require_told([first, *rest])


def test_a_pdf_is_followed_by_a_socket(instance: Instance, tmp_path: Path) -> None:
    job = begin(instance, write_long(tmp_path / "socket.pdf", _PAGES + 2))
    with opened_socket(instance, job["job_id"]) as follower:
        pong = follower.ping()
        states, code = heard(follower)
        assert pong.wait(PATIENCE_S)
    require_told(states)
    ids = [int(state["id"]) for state in states]
    assert (code, ids) == (1000, sorted(ids))
    # By parameter, as browsers must; what has ended is told once more, and closed.
    with opened_socket(instance, job["job_id"], f"?token={instance.key()}&last_event_id={ids[0]}", key="") as follower:
        states, code = heard(follower)
    assert ([state["status"] for state in states], code) == (["done"], 1000)


def test_sockets_that_are_refused_are_told_why(instance: Instance, tmp_path: Path) -> None:
    job_id = begin(instance, write_pages(tmp_path / "refused.pdf", 1))["job_id"]
    for job, query, key, code in (
        (job_id, "", "", 4401),
        (job_id, "?token=wrong", "", 4401),
        ("0" * 32, "", None, 4404),
        (job_id, "?last_event_id=x", None, 4400),
        (job_id, "", stranger(instance), 4404),
    ):
        with opened_socket(instance, job, query, key) as follower:
            assert heard(follower) == ([], code)


def stranger(instance: Instance) -> str:
    """A key of another tenant."""
    rows = open_rows(f"sqlite:///{instance.data / 'pagemill.db'}")
    accounts = AccountService(rows, PackagedEmbedder.name)
    email = f"u{time.monotonic_ns()}@pagemill.test"
    accounts.create_user(email, "Eve", "a long enough password")
    key = accounts.create_token(accounts.sign_in(email, "a long enough password"), "k")
    rows.close_connection()
    return key


def test_another_tenants_job_is_not_there(instance: Instance, tmp_path: Path) -> None:
    job = begin(instance, write_pages(tmp_path / "mine.pdf", 1))
    with followed(instance, job["links"]["events"], key=stranger(instance)) as stream:
        assert (stream.status, stream.headers["Content-Type"]) == (404, "application/problem+json")
    with followed(instance, f"/api/v1/datasets/{job['dataset_id']}/events", key=stranger(instance)) as stream:
        assert stream.status == 404


def test_a_cancel_is_shown(instance: Instance, tmp_path: Path) -> None:
    job = begin(instance, write_long(tmp_path / "cancelled.pdf", 3000))
    with followed(instance, job["links"]["events"]) as stream, opened_socket(instance, job["job_id"]) as follower:
        events = stream.events()
        next(events)
        assert instance.call("DELETE", f"/jobs/{job['job_id']}")["status"] == "cancelled"
        last, (states, code) = list(events)[-1], heard(follower)
    assert last["status"] == states[-1]["status"] == "cancelled"
    assert last["message"].startswith("stopped by the user")
    assert code == 1000
    refused = instance.call("DELETE", f"/jobs/{job['job_id']}")
    assert (refused["status"], refused["code"]) == (409, "conflict")


def test_a_dataset_is_followed(instance: Instance, tmp_path: Path) -> None:
    dataset_id = instance.dataset("followed")
    path = f"/api/v1/datasets/{dataset_id}/events"
    with followed(instance, path) as stream:
        events = stream.events()
        jobs = [begin(instance, write_pages(tmp_path / f"{n}.pdf", 2), dataset_id=dataset_id) for n in range(3)]
        ended: set[str] = set()
        while len(ended) < 3:
            state = next(events)
            if state["is_final"]:
                ended.add(state["job_id"])
        assert ended == {job["job_id"] for job in jobs}
        heard_until = stream.last_id
        gone = jobs[0]["job_id"]
        instance.call("DELETE", f"/datasets/{dataset_id}/documents", {"ids": [gone]})
        assert [(e["job_id"], e["status"]) for e in [next(events)]] == [(gone, "deleted")]
    with followed(instance, path, headers={"Last-Event-ID": heard_until}) as stream:
        missed = next(state for state in stream.events() if state["job_id"] == gone)
    assert missed["status"] == "deleted"


def test_hundreds_follow_and_nobody_waits(instance: Instance, tmp_path: Path) -> None:
    """The server has four threads: followers hold none of them."""
    job = begin(instance, write_long(tmp_path / "crowd.pdf", 3000), priority="bulk")
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(followed(instance, job["links"]["events"])) for _ in range(_FOLLOWERS)]
        assert {stream.status for stream in streams} == {200}
        assert {next(stream.events())["job_id"] for stream in streams} == {job["job_id"]}
        took_s = []
        for _ in range(20):
            begin_s = time.monotonic()
            assert instance.call("GET", f"/jobs/{job['job_id']}")["status"] in ("running", "queued")
            took_s.append(time.monotonic() - begin_s)
        assert sorted(took_s)[10] < 1.0, took_s
        instance.call("DELETE", f"/jobs/{job['job_id']}")
        assert {list(stream.events())[-1]["status"] for stream in streams} == {"cancelled"}


def upload_many(instance: Instance, dataset_id: str, count: int) -> None:
    part = '--b\r\nContent-Disposition: form-data; name="file"; filename="small.txt"\r\n\r\na heron\r\n'
    request = urllib.request.Request(f"{instance.address}/api/v1/datasets/{dataset_id}/documents")
    request.data = (part * count + "--b--\r\n").encode()
    request.add_header("Authorization", f"Bearer {instance.key()}")
    request.add_header("Content-Type", "multipart/form-data; boundary=b")
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        assert len(json.loads(answer.read())["data"]) == count


def test_one_that_never_reads_is_cut_off(instance: Instance) -> None:
    dataset_id = instance.dataset("unread")
    upload_many(instance, dataset_id, 250)
    place = urlsplit(instance.address)
    with socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        lazy.connect((place.hostname, place.port))
        head = f"Host: x\r\nAuthorization: Bearer {instance.key()}\r\nLast-Event-ID: 1"
        lazy.sendall(f"GET /api/v1/datasets/{dataset_id}/events HTTP/1.1\r\n{head}\r\n\r\n".encode())
        wait_until(lambda: "too slow was cut off" in instance.output(), what="the cut")
        lazy.settimeout(PATIENCE_S)
        with contextlib.suppress(ConnectionResetError):
            while lazy.recv(65536):
                pass  # what the kernel still had for it; then it ends, in order or not
    assert instance.call("GET", "/jobs?page_size=1")["total"] > 0


def test_a_stop_is_told_and_followers_come_back(tmp_path: Path) -> None:
    with made_instance(tmp_path / "data") as instance:
        instance.start()
        job = begin(instance, write_long(tmp_path / "stop.pdf", 3000))
        with followed(instance, job["links"]["events"]) as stream, opened_socket(instance, job["job_id"]) as follower:
            events = stream.events()
            next(events)
            (server,) = instance.children("api.cli server")
            server.send_signal(signal.SIGTERM)
            assert not any(state["is_final"] for state in events)
            assert heard(follower)[1] == 1012
        assert stream.said[-2:] == ["retry: 1000", ": the server is stopping: connect again"]
        back = wait_for(lambda: _opened(instance, job["links"]["events"], stream.last_id), what="the server to be back")
        with contextlib.closing(back):
            assert next(back.events())["status"] in ("running", "queued")


def _opened(instance: Instance, path: str, last_id: str) -> Stream | None:
    try:
        return Stream(instance, path, headers={"Last-Event-ID": last_id})
    except (OSError, IndexError):
        return None
