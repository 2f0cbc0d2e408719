"""Jobs over REST for tests: begun, asked for, and the shape that every refusal has."""

from __future__ import annotations

import io
from typing import Any

from werkzeug.test import TestResponse

from tests.rest_world import RestWorld


def post(world: RestWorld, name: str = "a.txt", content: bytes = b"hello", **fields: Any) -> TestResponse:
    headers = fields.pop("headers", {})
    data = {"file": (io.BytesIO(content), name)} | fields
    return world.call("POST", "/jobs", data=data, headers=headers)


def begun(world: RestWorld, **fields: Any) -> str:
    answer = post(world, **fields)
    assert answer.status_code == 202, answer.get_json()
    return str(answer.get_json()["job_id"])


def job(world: RestWorld, job_id: str) -> Any:
    answer = world.call("GET", f"/jobs/{job_id}")
    assert answer.status_code == 200, answer.get_json()
    return answer.get_json()


def problem(answer: TestResponse, status: int, code: str) -> Any:
    assert answer.content_type == "application/problem+json"
    body = answer.get_json()
    assert (answer.status_code, body["status"], body["code"]) == (status, status, code), body
    assert body["type"] == f"urn:pagemill:problem:{code}"
    assert body["request_id"] == answer.headers["X-Request-Id"]
    assert body["instance"].startswith(("/api/v1/", "/ws/"))
    assert body["title"] and body["detail"]
    return body
