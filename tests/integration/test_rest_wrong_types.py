"""Fields of bodies that RAGFlow does not check as a whole, one by one with a value of a wrong type: each is refused,
as the description says, and nothing is changed. The models are walked: a new field is tried without being named."""

from __future__ import annotations

from typing import Any

import pytest

from api.apps.openapi.operation import operation_of
from tests.described import matched
from tests.rest_world import RestWorld

# RAGFlow takes the default for a page that is none, and of other numbers the whole part.
LENIENT = {"page", "page_size", "top_k"}
# Without an effect: kept for clients that send them.
WITHOUT_EFFECT = {"delete"}


def bodies(world: RestWorld) -> list[tuple[str, str, dict[str, Any]]]:
    """A body that each route takes, and does nothing to speak of with."""
    dataset_id = world.dataset()
    document_id = world.document(dataset_id)
    world.ingest(dataset_id, document_id, ["The Danube flows through Vienna."])
    path = f"/datasets/{dataset_id}/documents/{document_id}"
    chunk_id = world.ok("GET", f"{path}/chunks")["chunks"][0]["id"]
    named = {"document_ids": [document_id]}
    return [
        ("POST", "/retrieval", {"dataset_ids": [dataset_id], "question": "Danube"}),
        ("PUT", path, {}),
        ("POST", f"{path}/chunks", {"content": "More."}),
        ("PUT", f"{path}/chunks/{chunk_id}", {}),
        ("PATCH", f"{path}/chunks", {"chunk_ids": [chunk_id], "available": True}),
        ("DELETE", f"{path}/chunks", {}),
        ("POST", f"/datasets/{dataset_id}/documents/batch-update-status", {"doc_ids": [document_id], "status": 1}),
        ("POST", f"/datasets/{dataset_id}/metadata/update", {"selector": named}),
        ("POST", f"/datasets/{dataset_id}/documents/resume", named),
        ("POST", "/documents/ingest", {"doc_ids": [document_id], "run": "2"}),
        ("POST", "/tasks/replay", named),
        ("POST", "/system/tokens", {}),
        ("PATCH", "/users/me", {"nickname": "Ursula"}),
    ]


@pytest.mark.parametrize("wrong", [{"a": [None]}, [{"a": 1}], 1.5], ids=["object", "list", "number"])
def test_each_field_of_a_wrong_type_is_refused(world: RestWorld, wrong: Any) -> None:
    tried, taken = 0, []
    for method, path, body in bodies(world):
        rule = matched(world.client.application, f"/api/v1{path}", method)
        operation = operation_of(world.client.application.view_functions[rule.endpoint]) if rule else None
        assert operation is not None and operation.body is not None
        before = world.rows.rows("SELECT id, name, run, chunk_count, meta_fields FROM document")
        for name, declared in operation.body.model_fields.items():
            if name in LENIENT | WITHOUT_EFFECT or _fits(declared.annotation, wrong):
                continue
            answer = world.call(method, path, json=body | {name: wrong}).get_json()
            if answer["code"] == 0:
                taken.append((method, path.split("/")[-1], name))
            tried += 1
        assert world.rows.rows("SELECT id, name, run, chunk_count, meta_fields FROM document") == before
    assert taken == []
    assert tried > 35


def _fits(kind: Any, value: Any) -> bool:
    """Told by name: a number where one may stand, an object or a list likewise."""
    text = str(kind)
    if isinstance(value, float):
        return "float" in text
    return ("dict" in text or "Metadata" in text or "ParserConfig" in text) if isinstance(value, dict) else False
