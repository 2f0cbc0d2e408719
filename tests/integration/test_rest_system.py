"""What every answer has in common: keys, envelopes, request ids, health, and the page at `/`."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from api.apps import create_app
from common.errors import QueueUnavailable
from tests.rest_world import RestWorld

UNAUTHORIZED = {"code": 401, "message": "<Unauthorized '401: Unauthorized'>", "data": None}


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Bearer nope", "nope", "Basic eDp5", "ragflow-ü"])
def test_no_or_unknown_keys_are_refused(world: RestWorld, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    routes = [
        ("GET", "/api/v1/datasets"),
        ("POST", "/api/v1/datasets"),
        ("POST", f"/api/v1/datasets/{'0' * 32}/documents"),
        ("POST", "/api/v1/retrieval"),
        ("GET", "/api/v1/system/tokens"),
    ]
    for method, path in routes:
        response = world.client.open(path, method=method, headers=headers)
        assert (response.status_code, response.get_json()) == (401, UNAUTHORIZED)


FREE = {
    ("GET", "/api/v1/system/ping"),
    ("GET", "/api/v1/system/version"),
    ("GET", "/api/v1/system/healthz"),
    ("GET", "/api/v1/openapi.json"),
    ("GET", "/api/docs"),
    ("POST", "/api/v1/auth/login"),
    ("POST", "/api/v1/users"),
    ("GET", "/v1/system/ping"),
    ("GET", "/v1/system/healthz"),
    ("POST", "/v1/user/login"),
    ("POST", "/v1/user/register"),
}


def test_every_other_api_route_needs_a_key(world: RestWorld) -> None:
    asked = 0
    for rule in world.client.application.url_map.iter_rules():
        if not rule.rule.startswith(("/api/", "/v1/")):
            continue
        for method in (rule.methods or set()) - {"OPTIONS", "HEAD"}:
            if (method, rule.rule) in FREE:
                continue
            path = rule.rule.replace("<path:token>", "t").replace("<int:page>", "1")
            assert world.client.open(path, method=method).status_code == 401, (method, rule.rule)
            asked += 1
    assert asked > 80


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER  ", ""])
def test_the_scheme_may_be_in_any_case_or_missing(world: RestWorld, scheme: str) -> None:
    response = world.client.get("/api/v1/datasets", headers={"Authorization": f"{scheme}{world.key}"})
    assert response.get_json()["code"] == 0


def test_unknown_addresses_and_methods(world: RestWorld) -> None:
    response = world.call("GET", "/nothing")
    assert response.status_code == 404
    assert response.get_json() == {
        "code": 404,
        "message": "Not Found: /api/v1/nothing",
        "data": None,
        "error": "Not Found",
    }
    response = world.call("PATCH", "/datasets")
    assert response.status_code == 200
    assert response.get_json() == {"code": 100, "message": "<MethodNotAllowed '405: Method Not Allowed'>"}


def test_an_uncaught_error_shows_its_request_id_and_nothing_else(
    world: RestWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def surprise(*_: object) -> None:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr(world.services.datasets, "page", surprise)
    response = world.call("GET", "/datasets", headers={"X-Request-Id": "trace-1"})
    answer = response.get_json()
    assert (response.status_code, answer["code"]) == (200, 100)
    assert "trace-1" in answer["message"] and "hunter2" not in answer["message"]
    assert response.headers["X-Request-Id"] == "trace-1"
    assert "trace-1" in caplog.text and "hunter2" in caplog.text


def test_every_answer_has_a_request_id_and_the_log_no_key(world: RestWorld, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for path in ("/", "/healthz", "/static/css/base.css", "/nothing", "/api/v1/datasets"):
        response = world.client.get(path)
        assert len(response.headers["X-Request-Id"]) == 32
        response.close()
    bad = world.client.get("/healthz", headers={"X-Request-Id": "a b<script>"})
    assert bad.headers["X-Request-Id"] != "a b<script>"
    world.call("DELETE", f"/system/tokens/{world.key}")
    assert "DELETE /api/v1/system/tokens/<path:token> -> 200" in caplog.text
    assert world.key not in caplog.text


def test_browsers_of_other_origins_may_ask(world: RestWorld) -> None:
    response = world.client.options("/api/v1/datasets")
    assert response.status_code == 200
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert "Authorization" in response.headers["Access-Control-Allow-Headers"]


def test_ping_and_version(world: RestWorld) -> None:
    assert world.client.get("/api/v1/system/ping").text == "pong"
    assert world.client.get("/api/v1/system/version/").get_json() == {
        "code": 0,
        "message": "success",
        "data": "1.2.3",
    }


def test_health_names_each_part(world: RestWorld) -> None:
    assert world.client.get("/healthz").get_json() == {"status": "ok"}
    response = world.client.get("/readyz")
    assert response.status_code == 200
    assert response.get_json() == {
        "status": "ready",
        "parts": {"database": "ok", "queue": "ok", "index": "ok", "store": "ok"},
    }
    answer = world.client.get("/api/v1/system/healthz").get_json()
    parts = ("db", "redis", "doc_engine", "storage", "status")
    assert {part: answer[part] for part in parts} == dict.fromkeys(parts, "ok")
    assert set(answer["_meta"]["redis"]) == {"elapsed", "error"}


def test_health_tells_what_is_away(world: RestWorld) -> None:
    def away() -> None:
        raise QueueUnavailable("the queue does not answer")

    health = {**world.services.health, "queue": away}
    client = create_app(replace(world.services, health=health)).test_client()
    response = client.get("/readyz")
    assert response.status_code == 503
    parts = response.get_json()["parts"]
    assert parts["queue"] == "the queue does not answer"
    assert (parts["database"], parts["index"], parts["store"]) == ("ok", "ok", "ok")
    response = client.get("/api/v1/system/healthz")
    assert (response.status_code, response.get_json()["redis"], response.get_json()["db"]) == (500, "nok", "ok")
    assert client.get("/healthz").status_code == 200


def test_a_check_that_breaks_is_never_taken_for_ready(world: RestWorld) -> None:
    def broken() -> None:
        raise KeyError("secret")

    client = create_app(replace(world.services, health={"store": broken})).test_client()
    response = client.get("/readyz")
    assert response.status_code == 500
    assert "secret" not in response.text


def test_the_administrators_login_makes_a_first_key(world: RestWorld) -> None:
    world.services.accounts.create_user("ann@example.com", "ann", "s3same")
    path = "/api/v1/system/tokens"
    made = world.client.post(path, auth=("ann@example.com", "s3same")).get_json()
    assert made["code"] == 0
    assert world.ok("GET", "/datasets", key=made["data"]["token"]) == []
    assert world.client.post(path, auth=("ann@example.com", "wrong")).status_code == 401
    assert world.client.post(path, auth=("bob@example.com", "s3same")).status_code == 401


def test_a_key_is_revoked_by_itself(world: RestWorld) -> None:
    key = world.ok("POST", "/system/tokens")["token"]
    assert world.ok("DELETE", f"/system/tokens/{key}") is True
    assert world.call("GET", "/datasets", key=key).status_code == 401


def test_keys_are_made_listed_and_revoked(world: RestWorld) -> None:
    made = world.ok("POST", "/system/tokens")
    assert set(made) >= {"tenant_id", "token", "beta", "create_time", "create_date", "update_time", "update_date"}
    assert made["token"].startswith("ragflow-") and len(made["token"]) == 51
    assert world.ok("GET", "/datasets", key=made["token"]) == []
    listed = world.ok("GET", "/system/tokens")
    assert len(listed) == 2
    assert made["token"] not in str(listed)
    (row,) = [token for token in listed if token["name"] == "API key"]
    assert world.ok("DELETE", f"/system/tokens/{row['id']}") is True
    assert world.call("GET", "/datasets", key=made["token"]).status_code == 401
    assert world.ok("DELETE", "/system/tokens/none") is True
