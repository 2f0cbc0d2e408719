"""The web server's log over REST: every line carries the request it belongs to, and no key."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from common import logs
from common.settings import LogSettings
from tests.rest_world import RestWorld


@pytest.fixture
def out(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    form: Literal["text", "json"] = getattr(request, "param", "json")
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.addFilter(logs.AddIds())
    handler.setFormatter(logs.formatter(LogSettings(format=form), "server"))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield written
    root.removeHandler(handler)
    root.setLevel(level)


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_carries_its_request_and_its_document(world: RestWorld, out: io.StringIO) -> None:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id)
    path = f"/datasets/{dataset_id}/documents/{document_id}/chunks"
    answer = world.call("GET", path)
    world.call("GET", f"/jobs/{document_id}", headers={"X-Request-Id": "trace-1"})
    world.call("PATCH", f"/tasks/{'a' * 32}", json={})
    logging.getLogger("pagemill.tests").info("between requests")
    chunks, job, task, between = lines(out)[-4:]
    assert chunks["request_id"] == answer.headers["X-Request-Id"]
    assert (chunks["document_id"], chunks["status"], chunks["method"]) == (document_id, 200, "GET")
    assert chunks["route"] == "/api/v1/datasets/<dataset_id>/documents/<document_id>/chunks"
    assert (job["request_id"], job["document_id"]) == ("trace-1", document_id)
    assert task["task_id"] == "a" * 32 and "document_id" not in task
    assert not {"request_id", "document_id", "task_id"} & between.keys()


def test_an_id_in_the_path_that_is_none_is_not_logged(world: RestWorld, out: io.StringIO) -> None:
    world.call("GET", "/jobs/a%0A12:00:00%20forged")
    (line,) = lines(out)
    assert line["route"] == "/api/v1/jobs/<job_id>" and "document_id" not in line
    assert "forged" not in out.getvalue()


@pytest.mark.parametrize("out", ["text", "json"], indirect=True)
def test_what_goes_wrong_is_logged_under_its_request_and_without_secrets(
    world: RestWorld, out: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def surprise(*_: object) -> None:
        raise RuntimeError(f"Bearer {world.key} password=hunter2")

    monkeypatch.setattr(world.services.datasets, "page", surprise)
    world.call("GET", "/datasets", headers={"X-Request-Id": "trace-1"})
    world.client.post("/api/v1/auth/login", json={"email": "a@b.cd", "password": "hunter2"})
    world.client.get("/api/v1/datasets", auth=("a@b.cd", "hunter2"))
    world.client.get(f"/api/v1/jobs/x/events?token={world.key}")
    told = out.getvalue()
    assert "RuntimeError" in told and "surprise" in told
    assert "hunter2" not in told and world.key not in told
    failed = next(line for line in told.splitlines() if "failed" in line)
    assert "request_id=trace-1" in failed or json.loads(failed)["request_id"] == "trace-1"
