"""Bad input on every route that answers with problems (jobs, events, webhooks, team, administration): a status below
500, a problem with a stable code and the request's id, and nothing is changed."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from werkzeug.routing import Rule
from werkzeug.serving import make_server
from werkzeug.test import TestResponse

from api.apps.openapi.document import api_routes
from api.db.models import Document, Knowledgebase, User
from common.settings import ServerSettings
from tests.integration.test_rest_bad_input import BODIES, QUERIES, SYNTAX
from tests.rest_jobs import begun, problem
from tests.rest_world import RestWorld, rest_world, speaks_ragflow

NO_BODY_NEEDED = ("/drain", "/resume", "/restart", "/password", "/replay", "/discard", "/redeliver", "/jobs/<job_id>")
TABLES = ("webhook", "webhook_delivery", "team_member", "api_token")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestWorld]:
    with rest_world(tmp_path_factory.mktemp("problems"), ServerSettings(max_body_mb=1)) as opened:
        opened.rows.write(User.update(is_superuser=1).where(User.id == opened.caller.user_id).execute)
        begun(opened)
        yield opened


@pytest.fixture(scope="module")
def ids(world: RestWorld) -> dict[str, str]:
    document = Document.select().first()
    webhook = world.call("POST", "/webhooks", json={"url": "https://example.com/x"}).get_json()
    return {
        "dataset_id": document.kb_id,
        "job_id": document.id,
        "webhook_id": webhook["webhook_id"],
        "delivery_id": "0" * 32,
        "user_id": "0" * 32,
        "tenant_id": "0" * 32,
        "group": "x",
        "path:name": "x",
    }


def state(world: RestWorld) -> list[Any]:
    counts = [world.rows.rows(f"SELECT COUNT(*) FROM {table}") for table in TABLES]
    rows = [(row.id, row.name, row.run) for row in Document.select()]
    return [counts, rows, Knowledgebase.select().count(), User.select().count()]


def every_route(world: RestWorld) -> list[tuple[str, Rule]]:
    """But the streams, which need a socket: what they refuse is in test_rest_jobs_refused.py."""
    app = world.client.application
    return [
        (method, rule)
        for method, rule in api_routes(app)
        if not speaks_ragflow(world, rule) and not rule.rule.startswith("/ws") and not rule.rule.endswith("/events")
    ]


def path_of(rule: Rule, ids: dict[str, str]) -> str:
    path = rule.rule.removeprefix("/api/v1")
    for name, value in ids.items():
        path = path.replace(f"<{name}>", value)
    assert "<" not in path, f"say what stands for the id in {rule.rule}"
    return path


def require_problem(got: TestResponse, what: object) -> None:
    assert got.status_code < 500, (what, got.get_data(as_text=True))
    if got.status_code >= 400:
        told = problem(got, got.status_code, got.get_json()["code"])
        if told["code"] == "invalid_field":
            assert told["errors"] and all(one["field"] for one in told["errors"]), (what, told)


@pytest.mark.parametrize("kind", BODIES)
def test_bodies_that_are_none(world: RestWorld, ids: dict[str, str], kind: str) -> None:
    before, asked = state(world), 0
    for method, rule in every_route(world):
        if method == "GET" or rule.rule.endswith(NO_BODY_NEEDED):
            continue
        path = path_of(rule, ids | {"webhook_id": "0" * 32})
        got = world.call(method, path, data=BODIES[kind], content_type="application/json")
        require_problem(got, (method, rule.rule, kind))
        assert got.status_code >= 400, (method, rule.rule, kind)
        asked += 1
    assert asked > 5
    assert state(world) == before


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_queries_that_are_none(world: RestWorld, ids: dict[str, str], query: dict[str, str]) -> None:
    sent = {key: value.encode("utf-8", "surrogatepass") for key, value in query.items()}
    before = state(world)
    for method, rule in every_route(world):
        if method == "GET":
            require_problem(world.call("GET", path_of(rule, ids), query_string=sent), (rule.rule, query))
    assert state(world) == before


@pytest.mark.parametrize("words", SYNTAX, ids=range(len(SYNTAX)))
def test_the_language_of_databases_is_text(world: RestWorld, words: str) -> None:
    before = state(world)
    problem(world.call("POST", "/team/members", json={"email": words[:255] or "x"}), *_refusal(words))
    got = world.call("GET", "/jobs", query_string={"dataset_id": words[:1000].encode("utf-8", "surrogatepass")})
    assert got.status_code == 200 and got.get_json()["total"] == 0
    data = {"file": (io.BytesIO(b"x"), "a.txt"), "dataset_id": words[:1000]}
    got = world.call("POST", "/jobs", data=data)
    assert got.status_code in (202, 404), got.get_json()
    if got.status_code == 404:  # blanks alone name no dataset, and so the caller's own
        assert state(world) == before


def _refusal(words: str) -> tuple[int, str]:
    return (422, "invalid_field") if len(words) < 3 else (404, "not_found")


def test_a_file_of_no_bytes_is_a_job_that_says_so(world: RestWorld) -> None:
    got = world.call("POST", "/jobs", data={"file": (io.BytesIO(b""), "empty.txt")})
    assert got.status_code == 202
    assert got.get_json()["size_bytes"] == 0


def test_a_file_that_is_too_large_leaves_nothing(world: RestWorld) -> None:
    before = state(world)
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="big.txt"\r\n\r\n'
    body = head + b"x" * 2**21 + b"\r\n--b--\r\n"
    got = world.call("POST", "/jobs", data=body, content_type="multipart/form-data; boundary=b")
    problem(got, 413, "request_entity_too_large")
    assert state(world) == before


def test_a_job_whose_upload_breaks_off_leaves_nothing(world: RestWorld) -> None:
    """The client promises more than it sends, and is gone."""
    before = state(world)
    server = make_server("127.0.0.1", 0, world.client.application, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    head = (
        f"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: {world.key}\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n\r\n"
        '--b\r\nContent-Disposition: form-data; name="file"; filename="half.txt"\r\n\r\nhalf of it'
    )
    try:
        with socket.create_connection(("127.0.0.1", server.server_port)) as link:
            link.sendall(head.encode())
            link.shutdown(socket.SHUT_WR)
            told = link.makefile("rb").read()
        assert b"202" not in told.partition(b"\r\n")[0]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert state(world) == before
    assert list((world.services.settings.store_dir / "incoming").glob("*")) == []
