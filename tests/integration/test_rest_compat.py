"""Routes that clients of other versions know: raw search, ingest and tasks, models, tags, graphs, files, logs, /v1."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from api.apps import create_app
from api.db.models import Task
from common.errors import QueueUnavailable
from tests.rest_world import RestWorld

TEXTS = ("The Danube flows through Vienna.", "Bread is baked with flour.")


@pytest.fixture
def place(world: RestWorld) -> tuple[str, str]:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id)
    world.ingest(dataset_id, document_id, *([text] for text in TEXTS))
    return dataset_id, document_id


def test_a_raw_search_of_one_and_of_many(world: RestWorld, place: tuple[str, str]) -> None:
    dataset_id, document_id = place
    one = world.ok("POST", f"/datasets/{dataset_id}/search", json={"question": "Danube", "size": "1", "unknown": 1})
    many = world.ok("POST", "/datasets/search", json={"question": "Danube", "dataset_ids": [dataset_id], "size": 1})
    assert one == many
    assert (one["total"], one["labels"]) == (1, [])
    chunk = one["chunks"][0]
    assert (chunk["content_with_weight"], chunk["doc_id"], chunk["kb_id"]) == (TEXTS[0], document_id, dataset_id)
    assert {"chunk_id", "docnm_kwd", "important_kwd", "similarity", "position_int", "img_id"} <= set(chunk)
    body = {"question": "Danube bread", "doc_ids": [document_id]}
    all_of_it = world.ok("POST", f"/datasets/{dataset_id}/search", json=body)
    assert all_of_it["total"] == 2


@pytest.mark.parametrize(
    ("body", "code", "phrase"),
    [
        ({}, 101, "Field: <question> - Message: <Field required>"),
        ({"question": ""}, 101, "at least 1 character"),
        ({"question": "a", "size": 0}, 101, "greater than or equal to 1"),
        ({"question": "a", "page": -1}, 101, "<page>"),
        ({"question": "a", "top_k": 0}, 101, "<top_k>"),
        ({"question": "a", "similarity_threshold": 2}, 101, "<similarity_threshold>"),
        ({"question": "a", "vector_similarity_weight": "x"}, 101, "<vector_similarity_weight>"),
        ({"question": "a", "doc_ids": ["nope"]}, 102, "don't own the document"),
        ({"question": "a", "use_kg": True}, 102, "chat model"),
        ({"question": "a", "rerank_id": "x"}, 100, "`rerank_id`"),
        ({"question": "a", "search_id": "x"}, 102, "`search_id`"),
        ({"question": "a", "meta_data_filter": {"conditions": 1}}, 102, "conditions"),
    ],
)
def test_raw_searches_that_cannot_be(
    world: RestWorld, place: tuple[str, str], body: dict[str, Any], code: int, phrase: str
) -> None:
    got, message = world.refused("POST", f"/datasets/{place[0]}/search", json=body)
    assert got == code and phrase in message


def test_a_raw_search_is_the_owners(world: RestWorld) -> None:
    code, message = world.refused("POST", f"/datasets/{'0' * 32}/search", json={"question": "a"})
    assert code == 102 and "Only owner of dataset" in message
    assert world.refused("POST", "/datasets/search", json={"question": "a", "dataset_ids": []})[0] == 101


@pytest.mark.parametrize("path", ["/api/v1/documents/ingest", "/v1/document/run"])
def test_documents_are_started_and_stopped_without_their_dataset(
    world: RestWorld, place: tuple[str, str], path: str
) -> None:
    def run(**body: Any) -> Any:
        return world.client.post(path, json=body, headers={"Authorization": world.key}).get_json()

    dataset_id, document_id = place
    assert run(doc_ids=[document_id], run="1") == {"code": 0, "message": "success", "data": True}
    assert world.shown(dataset_id, document_id)["run"] == "RUNNING"
    assert run(doc_ids=[document_id], run=2)["data"] is True
    assert world.shown(dataset_id, document_id)["run"] == "CANCEL"
    refused = run(doc_ids=[document_id], run=2)
    assert (refused["code"], refused["data"]) == (102, None)
    assert "Cannot cancel a task that is not in RUNNING status" in refused["message"]
    refused = run(doc_ids=[document_id, "0" * 32], run=1)
    assert refused["code"] == 109 and "no authorization" in refused["message"].lower()
    assert world.shown(dataset_id, document_id)["run"] == "CANCEL"
    assert run(run=1) == {"code": 100, "message": "`doc_ids` is required", "data": None}
    assert run(doc_ids=[document_id], run=7)["code"] == 101


def test_a_document_takes_over_its_datasets_configuration(world: RestWorld, place: tuple[str, str]) -> None:
    dataset_id, document_id = place
    world.ok("PUT", f"/datasets/{dataset_id}", json={"parser_config": {"chunk_token_num": 77}})
    world.ok("POST", "/documents/ingest", json={"doc_ids": [document_id], "run": 1, "apply_kb": True})
    assert world.shown(dataset_id, document_id)["parser_config"]["chunk_token_num"] == 77


def test_a_task_is_stopped_with_its_document(world: RestWorld, place: tuple[str, str]) -> None:
    dataset_id, document_id = place
    old = Task.select().where(Task.doc_id == document_id).first()
    world.ok("POST", f"/datasets/{dataset_id}/chunks", json={"document_ids": [document_id]})
    task = Task.select().where(Task.doc_id == document_id).order_by(Task.generation.desc()).first()
    assert world.ok("POST", "/tasks/nope/cancel") is True
    assert world.ok("POST", f"/tasks/{old.id}/cancel") is True
    assert world.shown(dataset_id, document_id)["run"] == "RUNNING"
    code, message = world.refused("PATCH", f"/tasks/{task.id}", json={"action": "start"})
    assert code == 101 and "Only 'stop' is supported" in message
    assert world.ok("PATCH", f"/tasks/{task.id}", json={"action": "stop"}) is True
    assert world.shown(dataset_id, document_id)["run"] == "CANCEL"


def test_the_models_of_this_server(world: RestWorld) -> None:
    (model,) = world.ok("GET", "/models?type=embedding")
    assert (model["model_id"], model["name"], model["provider_name"], model["model_type"]) == (
        "potion-base-8M@Builtin", "potion-base-8M", "Builtin", ["embedding"],
    )  # fmt: skip
    assert world.ok("GET", "/models?type=chat") == []
    assert world.ok("GET", "/models/default") == {"models": [model]}
    listed = world.client.get("/v1/llm/list", headers={"Authorization": world.key}).get_json()
    assert listed["data"]["Builtin"][0]["llm_name"] == "potion-base-8M"


def test_tags_are_counted(world: RestWorld, place: tuple[str, str]) -> None:
    dataset_id, document_id = place
    path = f"/datasets/{dataset_id}/documents/{document_id}/chunks"
    for n, tags in enumerate((["x", "y"], ["y"])):
        world.ok("POST", path, json={"content": f"tagged {n}", "tag_kwd": tags})
    expected = [{"value": "y", "count": 2}, {"value": "x", "count": 1}]
    assert world.ok("GET", f"/datasets/{dataset_id}/tags") == expected
    assert world.ok("GET", f"/datasets/tags/aggregation?dataset_ids={dataset_id}") == expected
    assert "can't be changed" in world.refused("DELETE", f"/datasets/{dataset_id}/tags", json={"tags": ["x"]})[1]
    assert "dataset_ids" in world.refused("GET", "/datasets/tags/aggregation")[1]


def test_graphs_are_told_to_be_none(world: RestWorld, place: tuple[str, str]) -> None:
    path = f"/datasets/{place[0]}"
    for name in ("graph", "knowledge_graph"):
        assert world.ok("GET", f"{path}/{name}") == {"graph": {}, "mind_map": {}}
    assert world.ok("DELETE", f"{path}/graph") == {}
    assert world.ok("DELETE", f"{path}/knowledge_graph") is True
    assert world.ok("GET", f"{path}/index?type=raptor") == {}
    assert world.ok("DELETE", f"{path}/index?type=graph") == {}
    for name in ("trace_graphrag", "trace_raptor"):
        assert world.ok("GET", f"{path}/{name}") == {}
    for name in ("index?type=graph", "index?type=mindmap", "run_graphrag", "run_raptor"):
        code, message = world.refused("POST", f"{path}/{name}")
        assert code == 102 and "is not available" in message and "chat model" in message
    assert "No documents in Dataset" in world.refused("POST", f"/datasets/{world.dataset('e')}/run_raptor")[1]
    for method, code in (("POST", 102), ("GET", 102), ("DELETE", 101)):
        assert world.refused(method, f"{path}/index?type=odd")[0] == code
    assert world.refused("GET", f"/datasets/{'0' * 32}/graph") == (109, "No authorization.")
    assert world.refused("POST", f"/datasets/{'0' * 32}/index?type=graph") == (102, "No authorization.")


def test_files_outside_of_datasets_are_told_to_be_none(world: RestWorld) -> None:
    for method, path in (("GET", "/files"), ("POST", "/files/move"), ("GET", "/file/list"), ("GET", "/file/get/x")):
        answer = world.call(method, path).get_json()
        assert (answer["code"], answer["data"]) == (102, None)
        assert "not available" in answer["message"]


def test_logs_of_ingestion(world: RestWorld, place: tuple[str, str]) -> None:
    dataset_id, document_id = place
    logs = world.ok("GET", f"/datasets/{dataset_id}/ingestions?page_size=1")
    assert logs["total"] == 1
    (log,) = logs["logs"]
    assert (log["document_id"], log["operation_status"], log["progress"]) == (document_id, "3", 1.0)
    assert world.ok("GET", f"/datasets/{dataset_id}/ingestions/{log['id']}") == log
    told = world.ok("GET", f"/datasets/{dataset_id}/ingestions/summary")
    assert (told["doc_num"], told["chunk_num"], told["status"]) == (1, 2, {"done": 1})
    assert "not found" in world.refused("GET", f"/datasets/{dataset_id}/ingestions/nope")[1]


def test_a_preview_runs_nothing(world: RestWorld) -> None:
    dataset_id = world.dataset()
    html = world.document(dataset_id, "page.html", b"<script>alert(1)</script>")
    with world.call("GET", f"/documents/{html}/preview") as response:
        assert response.data == b"<script>alert(1)</script>"
        assert response.mimetype == "text/plain"
        assert "sandbox" in response.headers["Content-Security-Policy"]
        assert response.headers["Content-Disposition"].startswith("inline")
    pdf = world.document(dataset_id, "a.pdf", b"%PDF-1.4")
    with world.call("GET", f"/documents/{pdf}/preview") as response:
        assert response.mimetype == "application/pdf"
    assert world.refused("GET", "/documents/nope/preview") == (102, "Document not found!")
    assert world.ok("GET", f"/thumbnails?doc_ids={pdf},nope") == {pdf: ""}
    assert "doc_ids" in world.refused("GET", "/thumbnails")[1]


@pytest.mark.parametrize(
    ("form", "code", "phrase"),
    [
        ({}, 101, 'Lack of "name"'),
        ({"name": "a"}, 101, 'Lack of "url"'),
        ({"name": "a", "url": "file:///etc/passwd"}, 101, "URL format is invalid"),
        ({"name": "a", "url": "http://[bad"}, 101, "URL format is invalid"),
        ({"name": "a", "url": "http://example.com"}, 102, "not available"),
    ],
)
def test_pages_are_not_fetched(world: RestWorld, form: dict[str, str], code: int, phrase: str) -> None:
    dataset_id = world.dataset()
    got, message = world.refused("POST", f"/datasets/{dataset_id}/documents?type=web", data=form)
    assert got == code and phrase in message
    assert "`type` must be one of" in world.refused("POST", f"/datasets/{dataset_id}/documents?type=odd")[1]


def test_status_names_every_part(world: RestWorld) -> None:
    told = world.ok("GET", "/system/status")
    assert {part: told[part]["status"] for part in ("database", "redis", "doc_engine", "storage")} == dict.fromkeys(
        ("database", "redis", "doc_engine", "storage"), "green"
    )

    def away() -> Any:
        raise QueueUnavailable("the queue is away")

    beats = {"e1": [{"now": 1.0}]}
    client = create_app(replace(world.services, executor_beats=lambda: beats)).test_client()
    headers = {"Authorization": world.key}
    assert client.get("/v1/system/status", headers=headers).get_json()["data"]["task_executor_heartbeats"] == beats
    client = create_app(replace(world.services, executor_beats=away)).test_client()
    told = client.get("/api/v1/system/status", headers=headers).get_json()["data"]
    assert (told["redis"]["status"], told["redis"]["error"]) == ("red", "the queue is away")


def test_older_addresses_of_keys_and_of_the_server(world: RestWorld) -> None:
    headers = {"Authorization": world.key}
    made = world.client.post("/v1/system/new_token", headers=headers).get_json()["data"]
    assert made["token"].startswith("ragflow-") and made["update_time"] is None
    assert len(world.client.get("/v1/system/token_list", headers=headers).get_json()["data"]) == 2
    gone = world.client.delete(f"/v1/system/token/{made['token']}", headers=headers).get_json()
    assert gone == {"code": 0, "message": "success", "data": True}
    assert world.client.get("/v1/system/ping").data == b"pong"
    assert world.client.get("/v1/system/version", headers=headers).get_json()["data"] == "1.2.3"
    assert world.client.get("/v1/system/version").status_code == 401
    assert world.client.get("/v1/nothing").status_code == 404
    assert world.client.get("/api/v1/datasets/", headers=headers).get_json()["code"] == 0
    assert world.client.get("/v1/system/ping").headers["Access-Control-Allow-Origin"] == "*"
