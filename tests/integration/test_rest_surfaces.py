"""What a client's author meets at the edges: every address has one shape of error, whatever the method; text that is
none is refused by name; ids and times in the spellings that RAGFlow takes."""

from __future__ import annotations

import gzip
import json
import socket
import uuid
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from api.apps import job_events
from api.apps.openapi.document import api_routes
from api.apps.openapi.operation import Surface, operation_of
from common.settings import ServerSettings
from tests.rest_world import RestWorld, rest_world

HALF_A_PAIR = json.loads('"\\ud800"')


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestWorld]:
    with rest_world(tmp_path_factory.mktemp("surfaces")) as made:
        yield made


def sent(body: dict[str, Any]) -> dict[str, str]:
    """As plain ASCII, in which half a pair can be written."""
    return {"data": json.dumps(body), "content_type": "application/json"}


def test_a_wrong_method_is_refused_in_the_shape_of_its_address(world: RestWorld) -> None:
    app, asked = world.client.application, 0
    for _, rule in api_routes(app):
        operation = operation_of(app.view_functions[rule.endpoint])
        if operation is None:
            continue
        path = rule.rule.replace("<int:page>", "1").replace("<", "").replace(">", "")
        got = world.client.open(path, method="PROPFIND", headers={"Authorization": world.key})
        told = got.get_json()
        if operation.surface is Surface.PROBLEM:
            assert (got.status_code, told["code"]) == (405, "method_not_allowed"), (rule.rule, told)
            assert got.content_type == "application/problem+json" and got.headers["Allow"], rule.rule
        else:
            assert (got.status_code, told["code"]) == (200, 100), (rule.rule, told)
            assert "<MethodNotAllowed '405:" in told["message"]
        asked += 1
    assert asked > 140


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "/datasets", {"name": "n", "parser_config": {"ext": {"a": [HALF_A_PAIR]}}}, "parser_config.ext.a.0"),
        ("POST", "/datasets", {"name": "n", "parser_config": {"ext": {HALF_A_PAIR: 1}}}, "parser_config.ext"),
        ("DELETE", "/datasets/{dataset}/documents", {"ids": [HALF_A_PAIR]}, "ids.0"),
        ("PUT", "/datasets/{dataset}/metadata/config", {"metadata": [{"key": HALF_A_PAIR}]}, "metadata.0.key"),
    ],
)
def test_half_a_surrogate_pair_is_refused_by_name(
    world: RestWorld, method: str, path: str, body: dict[str, Any], field: str
) -> None:
    code, message = world.refused(method, path.format(dataset=world.dataset()), **sent(body))
    assert (code, f"Field: <{field}>" in message) == (101, True), message


def test_half_a_surrogate_pair_in_the_config_of_a_document_or_a_job(world: RestWorld) -> None:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id)
    config = {"ext": {"a": HALF_A_PAIR}}
    path = f"/datasets/{dataset_id}/documents/{document_id}"
    code, message = world.refused("PUT", path, **sent({"parser_config": config}))
    assert (code, "ext.a" in message) == (102, True), message
    with (Path(__file__)).open("rb") as file:
        form = {"file": (file, "a.txt"), "parser_config": json.dumps(config)}
        got = world.call("POST", "/jobs", data=form, content_type="multipart/form-data")
    assert got.status_code == 422
    assert got.get_json()["errors"][0]["field"] == "parser_config.ext.a"


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "/datasets", b'{"name": "n", "parser_config": {"ext": {"a": [1e999]}}}', "<parser_config.ext.a.0>"),
        ("PUT", "/datasets/{dataset}", b'{"parser_config": {"ext": {"a": -1e999}}}', "<parser_config.ext.a>"),
        ("PUT", "/datasets/{dataset}/metadata/config", b'{"metadata": [{"key": "k", "x": 1e999}]}', "<metadata.0.x>"),
        ("PUT", "/datasets/{dataset}/documents/{document}", b'{"parser_config": {"ext": {"a": 1e999}}}', "ext.a"),
        ("PUT", "/datasets/{dataset}/documents/{document}", b'{"meta_fields": {"size": [1, 1e999]}}', "size"),
        (
            "POST",
            "/datasets/{dataset}/metadata/update",
            b'{"selector": {"document_ids": ["{document}"]}, "updates": [{"key": "size", "value": 1e999}]}',
            "size",
        ),
    ],
)
def test_a_number_without_an_end_is_refused_by_name(
    world: RestWorld, method: str, path: str, body: bytes, field: str
) -> None:
    """It would be shown as Infinity, and no JSON be left of the lists that show it."""
    dataset_id = world.dataset()
    document_id = world.document(dataset_id)
    places = {"dataset": dataset_id, "document": document_id}
    data = body.replace(b"{document}", document_id.encode())
    message = world.refused(method, path.format(**places), data=data, content_type="application/json")[1]
    assert "Input should be a finite number" in message and field in message
    for shown in ("/datasets", f"/datasets/{dataset_id}/documents"):
        assert b"Infinity" not in world.call("GET", shown).data


@pytest.mark.parametrize("number", ["1e999", "NaN", "-Infinity"])
def test_a_number_without_an_end_in_the_config_of_a_job(world: RestWorld, number: str) -> None:
    form = {"file": (BytesIO(b"text"), "a.txt"), "parser_config": f'{{"ext": {{"a": {number}}}}}'}
    got = world.call("POST", "/jobs", data=form, content_type="multipart/form-data")
    assert (got.status_code, got.get_json()["errors"][0]["field"]) == (422, "parser_config.ext.a")


def test_what_is_no_object_is_told_without_the_names_of_our_models(world: RestWorld) -> None:
    no_object = "Input should be a valid dictionary"
    refused = world.refused("GET", "/datasets", query_string={"ext": "[]"})
    assert refused == (101, f"Field: <ext> - Message: <{no_object}> - Value: <[]>")
    refused = world.refused("POST", "/datasets", json={"name": "n", "parser_config": []})
    assert refused == (101, f"Field: <parser_config> - Message: <{no_object}> - Value: <[]>")
    form = {"file": (BytesIO(b"text"), "a.txt"), "parser_config": "[]"}
    job = world.call("POST", "/jobs", data=form, content_type="multipart/form-data")
    assert job.get_json()["errors"] == [{"field": "parser_config", "message": no_object}]
    webhook = world.call("POST", "/webhooks", json=[])
    assert webhook.get_json()["errors"] == [{"field": "body", "message": no_object}]


def test_a_dataset_is_changed_by_its_id_with_dashes_too(world: RestWorld) -> None:
    dataset_id = world.dataset()
    changed = world.ok("PUT", f"/datasets/{uuid.UUID(dataset_id)}", json={"description": "dashed"})
    assert (changed["id"], changed["description"]) == (dataset_id, "dashed")


def test_a_time_that_is_no_number_is_told_with_code_100(world: RestWorld) -> None:
    query = {"create_time_from": "yesterday"}
    code, message = world.refused("GET", f"/datasets/{world.dataset()}/documents", query_string=query)
    assert (code, "create_time_from" in message) == (100, True)


def test_the_description_gives_no_default_that_would_be_refused(world: RestWorld) -> None:
    document = world.client.get("/api/v1/openapi.json").get_json()
    for name, schema in document["components"]["schemas"].items():
        for key, field in schema.get("properties", {}).items():
            if field.get("type") == "string" and "default" in field:
                assert len(field["default"]) >= field.get("minLength", 0), (name, key)


@pytest.mark.parametrize(
    ("path", "is_problem"),
    [
        ("/admin/executors/a%0Ab/restart", True),
        ("/admin/executors/%2F/resume", True),
        ("/jobs/a/b/c", True),
        ("/webhooks/a/b/c", True),
        ("/datasets/a/nothing", False),
        ("/nothing", False),
    ],
)
def test_an_address_that_is_none_has_the_shape_of_its_neighbours(world: RestWorld, path: str, is_problem: bool) -> None:
    got = world.client.post(f"/api/v1{path}", headers={"Authorization": world.key})
    shape = "application/problem+json" if is_problem else "application/json"
    assert (got.status_code, got.content_type) == (404, shape)
    assert got.get_json()["code"] == ("not_found" if is_problem else 404)


@pytest.mark.parametrize("path", ["//api/v1/datasets", "/api//v1///datasets", "///api/v1/datasets/"])
def test_a_slash_too_many_is_none(world: RestWorld, path: str) -> None:
    got = world.client.get(environ_overrides={"PATH_INFO": path}, headers={"Authorization": world.key})
    assert (got.status_code, got.get_json()["code"]) == (200, 0)


def test_slashes_alone_are_the_first_page(world: RestWorld) -> None:
    paths = ("/", "//", "////")
    first, *others = (world.client.get(environ_overrides={"PATH_INFO": path}) for path in paths)
    assert {(one.status_code, one.headers.get("Location")) for one in others} == {
        (first.status_code, first.headers.get("Location"))
    }
    assert first.status_code != 308


@pytest.mark.parametrize("path", ["/datasets", "/auth/login", "/retrieval", "/jobs", "/webhooks"])
def test_a_body_that_is_packed_is_refused_as_such(world: RestWorld, path: str) -> None:
    headers = {"Authorization": world.key, "Content-Encoding": "gzip", "Content-Type": "application/json"}
    got = world.client.post(f"/api/v1{path}", data=gzip.compress(b'{"name": "a"}'), headers=headers)
    told = got.get_json()
    assert (got.status_code, got.headers["Accept-Encoding"]) == (415, "identity")
    assert "Content-Encoding is not supported" in (told.get("message") or told["detail"])
    plain = world.client.post(f"/api/v1{path}", json={}, headers={"Content-Encoding": "identity"})
    assert plain.status_code != 415


def test_a_packed_body_that_nobody_reads_is_none(world: RestWorld) -> None:
    headers = {"Authorization": world.key, "Content-Encoding": "gzip"}
    got = world.client.get("/api/v1/datasets", data=gzip.compress(b"{}"), headers=headers)
    assert (got.status_code, got.get_json()["code"]) == (200, 0)


@pytest.mark.parametrize(
    ("content_type", "disposition", "named"),
    [
        ("multipart/form-data; boundary=b", b'form-data; name="file"; filename="\xff\xfe.txt"', "no UTF-8"),
        ("multipart/form-data", b'form-data; name="file"; filename="a.txt"', "Missing boundary"),
    ],
)
def test_a_form_that_cannot_be_read_is_told_why(
    world: RestWorld, content_type: str, disposition: bytes, named: str
) -> None:
    body = b"--b\r\nContent-Disposition: " + disposition + b"\r\n\r\nwords\r\n--b--\r\n"
    for path in (f"/datasets/{world.dataset()}/documents", "/jobs"):
        headers = {"Authorization": world.key, "Content-Type": content_type}
        told = world.client.post(f"/api/v1{path}", data=body, headers=headers).get_json()
        assert named in (told.get("message") or told["detail"])


def test_a_stranger_sends_no_more_than_a_password_needs(world: RestWorld) -> None:
    told = world.client.post("/api/v1/auth/login", json={"email": "a@b.org", "password": "x" * 20_000}).get_json()
    assert (told["code"], "at most 16384 bytes" in told["message"]) == (101, True)


def test_a_wrong_key_in_the_address_of_a_socket_counts(tmp_path: Path) -> None:
    with rest_world(tmp_path, ServerSettings(failed_logins_per_minute=3)) as world:
        upgrade = {
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "eA==", "Sec-WebSocket-Version": "13",
        }  # fmt: skip
        for n in range(3):
            ours, theirs = socket.socketpair()
            with ours, theirs, pytest.raises(StopIteration):  # the connection was handed over
                environ = {"gunicorn.socket": theirs}
                world.client.get(
                    f"/ws/jobs/{'0' * 32}?token=wrong{n}",
                    headers=upgrade,
                    environ_base=environ,
                    base_url="ws://localhost",
                )
        got = world.client.get("/api/v1/datasets", headers={"Authorization": "ragflow-wrong"})
        assert got.status_code == 429
        job_events.close(world.client.application)
