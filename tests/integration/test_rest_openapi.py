"""The document at /api/v1/openapi.json and the page that shows it: whole, valid, and held by the routes themselves."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema_rs
import pytest
from flask import Blueprint

from api.apps import api_docs, create_app
from api.apps.openapi.document import api_routes, build, needs_key
from api.apps.openapi.operation import operation_of, why_undescribed
from tests.rest_world import RestWorld, rest_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestWorld]:
    with rest_world(tmp_path_factory.mktemp("openapi")) as opened:
        yield opened


@pytest.fixture(scope="module")
def document(world: RestWorld) -> Any:
    answer = world.client.get("/api/v1/openapi.json")
    assert (answer.status_code, answer.mimetype) == (200, "application/json")
    return answer.get_json()


def test_every_route_is_described_or_says_why_not(world: RestWorld, document: Any) -> None:
    app, described, refusing = world.client.application, 0, 0
    for method, rule in api_routes(app):
        view = app.view_functions[rule.endpoint]
        if operation_of(view) is None:
            assert why_undescribed(view), f"describe {method} {rule.rule}"
            refusing += 1
        else:
            described += 1
    listed = sum(len(methods) for methods in document["paths"].values())
    assert listed == described > 120
    assert refusing < 24


def test_a_route_that_is_not_described_is_noticed(world: RestWorld) -> None:
    app = create_app(world.services)
    stray = Blueprint("stray", __name__)
    stray.add_url_rule("/stray", "stray", lambda: "", methods=["GET"])
    app.register_blueprint(stray, url_prefix="/api/v1")
    with pytest.raises(LookupError, match="GET /api/v1/stray"):
        build(app, world.services.settings.server, "1")


def test_it_is_whole(document: Any) -> None:
    assert document["openapi"] == "3.1.0"
    text = json.dumps(document)
    for part in ("schemas", "responses", "headers"):
        for name in document["components"][part]:
            assert f"#/components/{part}/{name}" in text, f"{name} is used nowhere"
    ids = [one["operationId"] for methods in document["paths"].values() for one in methods.values()]
    assert len(ids) == len(set(ids))
    tags = {tag["name"] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            assert one["summary"] and set(one["tags"]) <= tags, (method, path)
            assert "429" in one["responses"], (method, path)
            assert method == "get" or {"408", "415"} <= one["responses"].keys(), (method, path)
            named = {parameter["name"] for parameter in one.get("parameters", ()) if parameter["in"] == "path"}
            assert named == set(re.findall(r"{([a-z_]+)}", path)), (method, path)


def test_schemas_are_schemas_and_examples_fit_them(document: Any) -> None:
    for name, schema in document["components"]["schemas"].items():
        jsonschema_rs.meta.validate({**schema, "$schema": "https://json-schema.org/draft/2020-12/schema"})
        assert schema.get("type") == "object" or "enum" in schema, name
    examples = 0
    for methods in document["paths"].values():
        for one in methods.values():
            for part in one.get("requestBody", {}).get("content", {}).values():
                if "example" in part:
                    whole = {**part["schema"], "components": document["components"]}
                    jsonschema_rs.Draft202012Validator(whole).validate(part["example"])
                    examples += 1
    assert examples > 10


def test_locks_are_told_as_they_are(world: RestWorld, document: Any) -> None:
    app = world.client.application
    free = {(m, r.rule) for m, r in api_routes(app) if not needs_key(app, r)}
    assert ("GET", "/api/v1/system/ping") in free
    assert ("GET", "/api/v1/datasets") not in free
    assert document["paths"]["/api/v1/datasets"]["get"]["security"]
    assert document["paths"]["/api/v1/auth/login"]["post"]["security"] == []


def test_limits_are_those_of_the_server(document: Any) -> None:
    assert document["x-limits"]["max_ids"] == 30_000
    assert document["x-limits"]["max_body_mb"] == 1024


def test_fields_that_are_not_described_have_no_effect(world: RestWorld) -> None:
    dataset_id = world.dataset("seen")
    document_id = world.document(dataset_id)
    path = f"/datasets/{dataset_id}/documents/{document_id}"
    world.ok("PUT", path, json={"name": "b.txt", "size": 7, "run": "DONE"})
    shown = world.shown(dataset_id, document_id)
    assert (shown["name"], shown["run"]) == ("b.txt", "UNSTART")


def test_the_page_shows_every_operation_and_runs_nothing(world: RestWorld, document: Any) -> None:
    answer = world.client.get("/api/docs")
    page = answer.get_data(as_text=True)
    assert answer.status_code == 200
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            assert f'id="{one["operationId"]}"' in page, (method, path)
    policy = answer.headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy and "unsafe" not in policy
    assert "<style" not in page and "style=" not in page and "http://" not in page.replace("http://localhost", "")
    for source in page.split("<script")[1:]:
        assert source.lstrip().startswith(("src=", 'type="module" src=')), "an inline script"


def test_the_page_shows_words_as_people_write_them(world: RestWorld) -> None:
    page = world.client.get("/api/docs").get_data(as_text=True)
    assert "Only these; <code>metadata_condition</code> is then passed over" in page
    assert "`" not in page
    assert "at least 1 entry" in page and " 1 entries" not in page and " 1 characters" not in page


def test_it_is_made_once_however_many_ask_at_first(world: RestWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    app, made = create_app(world.services), []

    def counted(*args: Any) -> Any:
        made.append(args)
        time.sleep(0.2)
        return build(*args)

    monkeypatch.setattr(api_docs, "build", counted)
    with ThreadPoolExecutor(4) as callers:
        answers = list(callers.map(lambda _: app.test_client().get("/api/v1/openapi.json"), range(4)))
    assert {one.status_code for one in answers} == {200}
    assert len({one.get_data() for one in answers}) == len(made) == 1
