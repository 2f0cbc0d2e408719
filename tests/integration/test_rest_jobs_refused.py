"""What the routes of jobs refuse: with a status that says what it is, and a problem that names the field."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import TestResponse

from api.apps import create_app
from api.db.models import Document, Knowledgebase
from api.db.services.parse_service import Doorbell, ParseService
from api.db.services.task_plan import ModelTraits
from common.errors import QueueUnavailable
from common.settings import ServerSettings, TaskSettings
from tests.rest_jobs import begun, job, post, problem
from tests.rest_world import RestWorld, new_caller, rest_world


def wrong_fields(answer: TestResponse, status: int = 422) -> list[str]:
    return [one["field"] for one in problem(answer, status, "invalid_field")["errors"]]


def stranger(world: RestWorld) -> str:
    return world.services.accounts.create_token(new_caller(world.rows, "Eve"), "k")


def test_another_tenants_jobs_are_not_there(world: RestWorld) -> None:
    job_id, key = begun(world), stranger(world)
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/events")):
        problem(world.call(method, f"/jobs/{job_id}{path}", key=key), 404, "not_found")
    assert world.call("GET", "/jobs", key=key).get_json()["total"] == 0
    dataset_id = job(world, job_id)["dataset_id"]
    problem(world.call("GET", f"/datasets/{dataset_id}/events", key=key), 404, "not_found")
    data = {"file": (io.BytesIO(b"x"), "a.txt"), "dataset_id": dataset_id}
    problem(world.call("POST", "/jobs", key=key, data=data), 404, "not_found")
    assert job(world, job_id)["status"] == "queued"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"priority": "high"}, ["priority"]),
        ({"chunk_method": "odd"}, ["chunk_method"]),
        ({"name": "a.pptx", "chunk_method": "book"}, ["chunk_method"]),
        ({"parser_config": "{"}, ["parser_config"]),
        ({"parser_config": "[1]"}, ["parser_config"]),
        ({"parser_config": '{"chunk_token_num": 0, "odd": 1}'}, ["parser_config.chunk_token_num", "parser_config.odd"]),
        ({"name": "a.xyz"}, ["file"]),
        ({"name": "x" * 300 + ".txt"}, ["file"]),
        ({"colour": "red"}, ["colour"]),
        ({"priority": "", "chunk_method": "odd", "colour": "red"}, ["colour", "chunk_method"]),
    ],
)
def test_a_wrong_form_is_refused_field_by_field(world: RestWorld, fields: dict[str, Any], named: list[str]) -> None:
    assert wrong_fields(post(world, **fields)) == named
    assert Document.select().count() == Knowledgebase.select().count() == 0


def test_a_form_without_its_file_is_refused(world: RestWorld) -> None:
    assert wrong_fields(world.call("POST", "/jobs", data={"file": (io.BytesIO(b""), "")})) == ["file"]
    two = {"file": [(io.BytesIO(b"a"), "a.txt"), (io.BytesIO(b"b"), "b.txt")]}
    assert wrong_fields(world.call("POST", "/jobs", data=two)) == ["file"]
    problem(world.call("POST", "/jobs", json={"file": "x"}), 415, "unsupported_media_type")
    problem(world.call("POST", "/jobs"), 415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("page=0", ["page"]),
        ("page_size=1000", ["page_size"]),
        ("page=" + "9" * 5000, ["page"]),
        ("status=odd", ["status"]),
        ("state=done", ["state"]),
    ],
)
def test_a_wrong_query_is_refused(world: RestWorld, query: str, named: list[str]) -> None:
    assert wrong_fields(world.call("GET", f"/jobs?{query}"), 400) == named


def test_a_wrong_event_id_is_refused(world: RestWorld) -> None:
    job_id = begun(world)
    dataset_id = job(world, job_id)["dataset_id"]
    for path in (f"/jobs/{job_id}/events", f"/datasets/{dataset_id}/events"):
        for given in ("x", "-1", "9" * 40, "٣"):
            assert wrong_fields(world.call("GET", path, query_string={"last_event_id": given}), 400) == [
                "last_event_id"
            ]
    assert wrong_fields(world.call("GET", path, headers={"Last-Event-ID": "x"}), 400) == ["last_event_id"]


def test_requests_without_a_key_and_of_other_kinds(world: RestWorld) -> None:
    for path in ("/jobs", "/jobs/x", "/jobs/x/events", "/worker-pool-status", "/datasets/x/events?token=odd"):
        answer = world.client.get(f"/api/v1{path}")
        problem(answer, 401, "unauthorized")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    answer = world.call("PUT", "/jobs")
    problem(answer, 405, "method_not_allowed")
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS", "POST"}
    problem(world.call("POST", "/jobs/x"), 405, "method_not_allowed")
    problem(world.client.get("/ws/jobs/x"), 426, "upgrade_required")
    answer = world.client.head(f"/api/v1/jobs/{begun(world)}/events", headers={"Authorization": f"Bearer {world.key}"})
    assert (answer.status_code, answer.mimetype) == (200, "text/event-stream")


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with rest_world(tmp_path, ServerSettings(max_body_mb=1)) as world:
        body = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n' + b"x" * 2_000_000
        kind = "multipart/form-data; boundary=b"
        answer = world.call("POST", "/jobs", data=body + b"\r\n--b--\r\n", content_type=kind)
        problem(answer, 413, "request_entity_too_large")
        assert Document.select().count() == 0


def test_a_job_that_can_not_be_taken_leaves_nothing(world: RestWorld) -> None:
    parsing = ParseService(world.rows, TaskSettings(max_backlog=1), ModelTraits(256), Doorbell(lambda: None, print))
    crowded = replace(world, client=create_app(replace(world.services, parsing=parsing)).test_client())
    for name in ("a.txt", "b.txt"):
        begun(crowded, name=name)
    answer = post(crowded, name="c.txt")
    problem(answer, 429, "backlogged")
    assert answer.headers["Retry-After"] == "30"
    assert Document.select().count() == 2


def test_an_outage_is_told_as_one(world: RestWorld) -> None:
    def away() -> Any:
        raise QueueUnavailable("Redis does not answer")

    client = create_app(replace(world.services, executor_beats=away)).test_client()
    answer = replace(world, client=client).call("GET", "/worker-pool-status")
    problem(answer, 503, "queue_unavailable")
    assert answer.headers["Retry-After"] == "2"
