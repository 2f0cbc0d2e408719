"""Limits over REST: how often a caller may ask and be wrong, and how much one call may hold."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import TestResponse

from api.apps import limits
from common.settings import ServerSettings
from tests.rest_jobs import problem
from tests.rest_world import RestWorld, rest_world

ANN = ("ann@example.com", "s3same")


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@contextmanager
def limited(folder: Path, **settings: int) -> Iterator[tuple[RestWorld, Clock]]:
    server, clock = ServerSettings(**settings), Clock()
    with rest_world(folder, server) as world:
        world.client.application.extensions[limits.KEY] = limits.Limits(server, clock)
        yield world, clock


def other_key(world: RestWorld) -> str:
    return world.services.accounts.create_token(world.caller, "other")


def login(world: RestWorld, email: str, password: str, path: str = "/api/v1/auth/login", **more: Any) -> TestResponse:
    return world.client.post(path, json={"email": email, "password": password}, **more)


def at(address: str) -> dict[str, Any]:
    return {"environ_overrides": {"REMOTE_ADDR": address}}


def require_limited(answer: TestResponse, after_s: int, phrase: str) -> None:
    """In RAGFlow's envelope."""
    body = answer.get_json()
    assert (answer.status_code, body["code"], body["data"]) == (429, 429, None)
    assert phrase in body["message"]
    assert answer.headers["Retry-After"] == str(after_s)
    assert "Retry-After" in answer.headers["Access-Control-Expose-Headers"]


def test_a_key_has_a_burst_and_then_a_rate(tmp_path: Path) -> None:
    with limited(tmp_path, requests_per_minute=30, request_burst=5) as (world, clock):
        for _ in range(5):
            world.ok("GET", "/datasets")
        require_limited(world.call("GET", "/datasets"), 2, "more than 30 requests a minute")
        refused = world.call("GET", "/jobs")
        assert problem(refused, 429, "rate_limited")["detail"].startswith("more than 30 requests a minute")
        assert refused.headers["Retry-After"] == "2"
        world.ok("GET", "/datasets", key=other_key(world))
        assert world.client.get("/api/v1/system/ping").status_code == 200
        clock.now_s += 2
        world.ok("GET", "/datasets")
        require_limited(world.call("GET", "/datasets"), 2, "requests a minute")
        clock.now_s += 3600
        for _ in range(5):
            world.ok("GET", "/datasets")
        assert world.call("GET", "/datasets").status_code == 429


def test_a_login_and_a_password_have_a_rate_too(tmp_path: Path) -> None:
    with limited(tmp_path, requests_per_minute=60, request_burst=2) as (world, _):
        world.services.accounts.create_user(ANN[0], "Ann", ANN[1])
        first, second = (login(world, *ANN).headers["Authorization"] for _ in range(2))
        for _ in range(2):
            world.ok("GET", "/users/me", key=first)
            assert world.client.get("/api/v1/users/me", auth=ANN).get_json()["code"] == 0
        require_limited(world.call("GET", "/users/me", key=first), 1, "requests a minute")
        require_limited(world.client.get("/api/v1/users/me", auth=ANN), 1, "requests a minute")
        world.ok("GET", "/users/me", key=second)


def test_nothing_is_limited_where_the_settings_say_so(tmp_path: Path) -> None:
    with limited(tmp_path, requests_per_minute=0, request_burst=1, failed_logins_per_minute=0) as (world, _):
        for _ in range(20):
            world.ok("GET", "/datasets")
            assert world.call("GET", "/datasets", key="wrong").status_code == 401


def test_a_caller_who_is_refused_may_send_to_the_end(tmp_path: Path) -> None:
    with limited(tmp_path, requests_per_minute=1, request_burst=1) as (world, _):
        world.ok("GET", "/datasets")
        body = io.BytesIO(b"x" * 300_000)
        environ = {"wsgi.input": body, "CONTENT_LENGTH": "300000", "CONTENT_TYPE": "multipart/form-data; boundary=b"}
        answer = world.call("POST", f"/datasets/{'0' * 32}/documents", environ_overrides=environ)
        require_limited(answer, 60, "requests a minute")
        assert body.tell() == 300_000  # or the client, still sending, would not see the answer


def test_wrong_passwords_of_one_email_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with limited(tmp_path, failed_logins_per_minute=3) as (world, clock):
        accounts = world.services.accounts
        accounts.create_user(ANN[0], "Ann", ANN[1])
        assert world.client.get("/api/v1/datasets", auth=(ANN[0], "no"), **at("192.0.2.1")).status_code == 401
        assert login(world, " ANN@example.com", "no", **at("192.0.2.2")).get_json()["code"] == 109
        assert login(world, ANN[0], "no", "/v1/user/login", **at("192.0.2.3")).get_json()["code"] == 109
        with monkeypatch.context() as patched:
            patched.setattr(accounts, "sign_in", lambda *_: pytest.fail("the password was looked at"))
            require_limited(login(world, *ANN, **at("192.0.2.4")), 20, "wrong keys or passwords")
            require_limited(login(world, *ANN, "/v1/user/login", **at("192.0.2.5")), 20, "wrong keys or passwords")
            basic = world.client.get("/api/v1/datasets", auth=ANN, **at("192.0.2.6"))
            require_limited(basic, 20, "wrong keys or passwords")
            job = world.client.get("/api/v1/jobs", auth=ANN, **at("192.0.2.7"))
            problem(job, 429, "too_many_failed_logins")
            assert job.headers["Retry-After"] == "20"
        clock.now_s += 20
        assert login(world, *ANN).headers["Authorization"]


def test_wrong_passwords_from_one_address_for_anybody(tmp_path: Path) -> None:
    with limited(tmp_path, failed_logins_per_minute=3) as (world, clock):
        world.services.accounts.create_user(ANN[0], "Ann", ANN[1])
        for number in range(3):
            assert login(world, f"{number}@example.com", "no", **at("2001:db8::1")).get_json()["code"] == 109
        require_limited(login(world, *ANN, **at("2001:db8::ffff")), 20, "from this address")
        assert login(world, *ANN, **at("2001:db8:1::1")).headers["Authorization"]
        clock.now_s += 20
        assert login(world, *ANN, **at("2001:db8::2")).headers["Authorization"]


def test_an_ipv4_address_is_the_same_in_ipv6(tmp_path: Path) -> None:
    with limited(tmp_path, failed_logins_per_minute=1) as (world, _):
        assert world.call("GET", "/datasets", key="wrong", **at("::ffff:192.0.2.1")).status_code == 401
        assert world.call("GET", "/datasets", key="wrong", **at("192.0.2.1")).status_code == 429
        assert world.call("GET", "/datasets", key="wrong", **at("192.0.2.2")).status_code == 401


def test_wrong_keys_hold_up_no_client_whose_key_was_right(tmp_path: Path) -> None:
    with limited(tmp_path, failed_logins_per_minute=4) as (world, clock):
        new = other_key(world)
        world.ok("GET", "/datasets")
        assert world.call("GET", "/datasets", key="ragflow-wrong").status_code == 401
        assert world.call("GET", "/jobs", key="wrong").status_code == 401
        for path in ("/jobs/x/events", "/datasets/x/events"):
            assert world.client.get(f"/api/v1{path}?token=wrong").status_code == 401
        require_limited(world.call("GET", "/datasets", key="wrong"), 15, "wrong keys or passwords")
        for answer in (world.call("GET", "/jobs", key="wrong"), world.client.get("/api/v1/jobs/x/events?token=wrong")):
            problem(answer, 429, "too_many_failed_logins")
        require_limited(world.call("GET", "/datasets", key=new), 15, "wrong keys or passwords")
        world.ok("GET", "/datasets")
        clock.now_s += 15
        world.ok("GET", "/datasets", key=new)


def test_a_key_that_was_right_and_is_revoked_is_a_wrong_one(tmp_path: Path) -> None:
    with limited(tmp_path, failed_logins_per_minute=2) as (world, _):
        key = other_key(world)
        world.ok("GET", "/datasets", key=key)
        assert world.ok("DELETE", "/system/tokens/other") is True
        statuses = [world.call("GET", "/datasets", key=key).status_code for _ in range(4)]
        assert statuses == [401, 401, 429, 429]


def test_who_shows_nothing_has_guessed_nothing(tmp_path: Path) -> None:
    with limited(tmp_path, failed_logins_per_minute=1) as (world, _):
        for _ in range(5):
            assert world.client.get("/api/v1/datasets").status_code == 401
            assert (
                world.client.post("/api/v1/auth/login", data=b"{", content_type="application/json").status_code == 200
            )
            assert world.client.options("/api/v1/datasets", headers={"Authorization": "wrong"}).status_code == 200
        world.ok("GET", "/datasets")


def test_how_long_a_page_may_be(tmp_path: Path) -> None:
    with limited(tmp_path, max_page_size=2) as (world, _):
        dataset_id = world.dataset()
        for name in ("a.txt", "b.txt", "c.txt"):
            world.document(dataset_id, name)
        assert len(world.ok("GET", f"/datasets/{dataset_id}/documents?page_size=100")["docs"]) == 2
        code, message = world.refused("GET", "/datasets?page_size=3")
        assert code == 101 and "less than or equal to 2" in message
        assert world.call("GET", "/jobs?page_size=3").status_code == 400
        assert len(world.call("GET", "/jobs").get_json()["jobs"]) == 2
        told = world.client.get("/api/v1/openapi.json").get_json()["paths"]["/api/v1/datasets"]["get"]["parameters"]
        assert [one["schema"]["maximum"] for one in told if one["name"] == "page_size"] == [2]


def test_what_one_call_may_hold(tmp_path: Path) -> None:
    with limited(tmp_path, max_json_mb=1, max_ids=3, max_question_chars=20) as (world, _):
        dataset_id = world.dataset()
        ids = [f"{n:032x}" for n in range(4)]
        asked = {"dataset_ids": [dataset_id], "question": "x" * 20}
        assert world.ok("POST", "/retrieval", json=asked)["total"] == 0
        for method, path, body, named in (
            ("DELETE", "/datasets", {"ids": ids}, "`ids` has 4 entries; at most 3"),
            ("POST", "/tasks/replay", {"task_ids": ids}, "`task_ids` has 4 entries; at most 3"),
            ("POST", "/datasets/search", {"dataset_ids": ids, "question": "a"}, "`dataset_ids` has 4 entries"),
            ("POST", f"/datasets/{dataset_id}/search", {"doc_ids": ids, "question": "a"}, "`doc_ids` has 4 entries"),
            ("POST", "/retrieval", asked | {"question": "x" * 21}, "`question` has 21 characters; at most 20"),
            ("POST", f"/datasets/{dataset_id}/search", {"question": "x" * 21}, "`question` has 21 characters"),
        ):
            code, message = world.refused(method, path, json=body)
            assert code == 101 and named in message, (path, message)
        assert "lacks permission" in world.refused("DELETE", "/datasets", json={"ids": ids[:3]})[1]
        for path in ("/datasets", "/retrieval"):
            code, message = world.refused("POST", path, json={"name": "x" * 1024 * 1024})
            assert code in (100, 101) and "413" in message, message
