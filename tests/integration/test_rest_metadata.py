"""Metadata over REST: lists filtered by it, summaries, changes to many documents, and retrieval that shows it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rest_world import RestWorld

NOTES: dict[str, dict[str, Any]] = {
    "a.txt": {"author": "Ann", "year": 2020, "tags": ["x", "y"], "day": "2024-01-02"},
    "b.txt": {"author": "bob", "year": 2024, "tags": ["y"]},
    "c.md": {},
}


@pytest.fixture
def place(world: RestWorld) -> tuple[str, dict[str, str]]:
    """A dataset, and the ids of its documents by name."""
    dataset_id = world.dataset()
    ids = {name: world.document(dataset_id, name) for name in NOTES}
    for name, notes in NOTES.items():
        world.ok("PUT", f"/datasets/{dataset_id}/documents/{ids[name]}", json={"meta_fields": notes})
    return dataset_id, ids


Place = tuple[str, dict[str, str]]


def names(world: RestWorld, dataset_id: str, **query: str) -> list[str]:
    found = world.ok(
        "GET", f"/datasets/{dataset_id}/documents", query_string={"orderby": "name", "desc": "false"} | query
    )
    assert found["total"] >= len(found["docs"])
    return [one["name"] for one in found["docs"]]


def notes(world: RestWorld, place: Place, name: str) -> Any:
    return world.shown(place[0], place[1][name])["meta_fields"]


def condition(name: str, operator: str, value: object = "") -> dict[str, object]:
    return {"name": name, "comparison_operator": operator, "value": value}


def test_lists_are_filtered_by_metadata(world: RestWorld, place: Place) -> None:
    dataset_id, _ = place
    assert names(world, dataset_id, metadata='{"author": "ann"}') == ["a.txt"]
    assert names(world, dataset_id, metadata='{"tags": ["x", "y"]}') == ["a.txt", "b.txt"]
    assert names(world, dataset_id, metadata='{"tags": "y", "year": 2024}') == ["b.txt"]
    assert names(world, dataset_id, metadata='{"empty_metadata": ["true"]}') == ["c.md"]
    assert names(world, dataset_id, return_empty_metadata="true") == ["c.md"]
    later = {"logic": "or", "conditions": [condition("year", ">", 2020), condition("author", "start with", "A")]}
    assert names(world, dataset_id, metadata_condition=json.dumps(later)) == ["a.txt", "b.txt"]
    both = {"conditions": [condition("year", "≥", "2020"), condition("author", "not contains", "n")]}
    assert names(world, dataset_id, metadata_condition=json.dumps(both)) == ["b.txt"]
    assert names(world, dataset_id, metadata='{"tags": "y"}', page="2", page_size="1") == ["b.txt"]
    assert names(world, dataset_id, metadata='{"tags": "y"}', page="99999999999999999999") == []
    assert names(world, dataset_id, metadata='{"tags": "y"}', suffix="md") == []


@pytest.mark.parametrize(
    ("query", "phrase"),
    [
        ({"metadata": "{"}, "`metadata` must be valid JSON"),
        ({"metadata": "[1]"}, "`metadata` must be valid JSON"),
        ({"metadata_condition": "nope"}, "`metadata_condition` must be valid JSON"),
        ({"metadata_condition": '{"conditions": 5}'}, "`metadata_condition.conditions`"),
        ({"metadata_condition": '{"logic": "xor", "conditions": []}'}, "`metadata_condition.logic`"),
        ({"return_empty_metadata": "perhaps"}, "`return_empty_metadata`"),
        ({"types": "odd"}, "Invalid filter conditions"),
        ({"run": "ODD"}, "Invalid filter run status conditions"),
    ],
)
def test_filters_that_cannot_be_are_refused(world: RestWorld, place: Place, query: dict[str, str], phrase: str) -> None:
    code, message = world.refused("GET", f"/datasets/{place[0]}/documents", query_string=query)
    assert code == 102 and phrase in message


def test_what_a_list_could_be_filtered_by(world: RestWorld, place: Place) -> None:
    told = world.ok("GET", f"/datasets/{place[0]}/documents?type=filter&suffix=txt")
    assert told["total"] == 2
    assert told["filter"]["suffix"] == {"txt": 2}
    assert told["filter"]["run_status"] == {"0": 2}
    assert told["filter"]["metadata"]["tags"] == {"y": 2, "x": 1}
    assert told["filter"]["metadata"]["empty_metadata"] == {"true": 0}
    assert world.refused("GET", f"/datasets/{place[0]}/documents?type=odd")[0] == 101


def test_a_summary_has_types_and_counts(world: RestWorld, place: Place) -> None:
    dataset_id, ids = place
    told = world.ok("GET", f"/datasets/{dataset_id}/metadata/summary")["summary"]
    assert told["tags"] == {"type": "list", "values": [["y", 2], ["x", 1]]}
    assert told["year"]["type"] == "number" and told["author"]["type"] == "string" and told["day"]["type"] == "time"
    some = world.ok("GET", f"/datasets/{dataset_id}/metadata/summary?doc_ids={ids['b.txt']},{ids['c.md']}")["summary"]
    assert some["author"] == {"type": "string", "values": [["bob", 1]]}
    code, message = world.refused("GET", f"/datasets/{dataset_id}/metadata/summary?doc_ids=nope")
    assert code == 102 and "do not belong to dataset" in message


def test_flattened_metadata_names_the_documents(world: RestWorld, place: Place) -> None:
    dataset_id, ids = place
    told = world.ok("GET", f"/datasets/metadata/flattened?dataset_ids={dataset_id}")
    assert set(told["tags"]["y"]) == {ids["a.txt"], ids["b.txt"]}
    assert told["year"] == {"2020": [ids["a.txt"]], "2024": [ids["b.txt"]]}
    assert "dataset_ids" in world.refused("GET", "/datasets/metadata/flattened")[1]


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/datasets/{}/metadata/update"), ("PATCH", "/datasets/{}/documents/metadatas")]
)
def test_many_documents_are_changed_at_once(world: RestWorld, place: Place, method: str, path: str) -> None:
    dataset_id, ids = place
    body = {
        "selector": {"document_ids": list(ids.values())},
        "updates": [
            {"key": "tags", "value": "z"},
            {"key": "author", "value": "Eve", "match": "bob"},
            {"key": "seen", "value": True} | {"value": "yes"},
        ],
        "deletes": [{"key": "year"}, {"key": "tags", "value": "x"}],
    }
    assert world.ok(method, path.format(dataset_id), json=body) == {"updated": 3, "matched_docs": 3}
    assert notes(world, place, "a.txt") == {"author": "Ann", "tags": ["y", "z"], "day": "2024-01-02", "seen": "yes"}
    assert notes(world, place, "b.txt") == {"author": "Eve", "tags": ["y", "z"], "seen": "yes"}
    assert notes(world, place, "c.md") == {"tags": "z", "seen": "yes"}
    assert world.ok(method, path.format(dataset_id), json=body) == {"updated": 0, "matched_docs": 3}


def test_a_condition_chooses_among_those_that_are_named(world: RestWorld, place: Place) -> None:
    dataset_id, ids = place
    path = f"/datasets/{dataset_id}/metadata/update"
    chosen = {"conditions": [condition("author", "is", "ANN")]}
    body: dict[str, Any] = {"updates": [{"key": "k", "value": 1}], "selector": {"metadata_condition": chosen}}
    assert world.ok("POST", path, json=body) == {"updated": 0, "matched_docs": 0}
    body["selector"]["document_ids"] = list(ids.values())
    assert world.ok("POST", path, json=body) == {"updated": 1, "matched_docs": 1}
    assert notes(world, place, "a.txt")["k"] == 1
    assert world.ok("POST", path, json={"updates": [{"key": "k", "value": 2}]}) == {"updated": 0, "matched_docs": 0}


@pytest.mark.parametrize(
    ("body", "phrase"),
    [
        ({"selector": [1]}, "selector must be an object"),
        ({"updates": {"a": 1}}, "updates and deletes must be lists"),
        ({"deletes": "a"}, "updates and deletes must be lists"),
        ({"updates": [{"key": "a"}]}, "Each update requires key and value"),
        ({"updates": ["a"]}, "Each update requires key and value"),
        ({"updates": [{"key": "a", "value": {"b": 1}}]}, "type is not supported"),
        ({"deletes": [{"value": "a"}]}, "Each delete requires key"),
        ({"selector": {"document_ids": ["nope"]}}, "do not belong to dataset"),
        ({"selector": {"document_ids": "nope"}}, "`document_ids` should be a list"),
        ({"selector": {"metadata_condition": 5}}, "`metadata_condition` should be an object"),
        ({"updates": [{"key": "a", "value": 1}] * 1001}, "at most 1000"),
    ],
)
def test_changes_that_cannot_be_are_refused(world: RestWorld, place: Place, body: dict[str, Any], phrase: str) -> None:
    code, message = world.refused("POST", f"/datasets/{place[0]}/metadata/update", json=body)
    assert code == 102 and phrase in message
    assert [notes(world, place, name) for name in NOTES] == list(NOTES.values())


def test_retrieval_shows_metadata_when_asked(world: RestWorld, place: Place) -> None:
    dataset_id, ids = place
    world.ingest(dataset_id, ids["a.txt"], ["The Danube flows."])
    body = {"dataset_ids": [dataset_id], "question": "Danube"}
    assert "document_metadata" not in world.ok("POST", "/retrieval", json=body)["chunks"][0]
    shown = world.ok("POST", "/retrieval", json=body | {"include_metadata": True})["chunks"][0]
    assert shown["document_metadata"] == NOTES["a.txt"]
    some = body | {"include_metadata": True, "metadata_fields": ["year", "nope"]}
    assert world.ok("POST", "/retrieval", json=some)["chunks"][0]["document_metadata"] == {"year": 2020}
    code, message = world.refused("POST", "/retrieval", json=body | {"metadata_fields": "year"})
    assert code == 102 and "`metadata_fields`" in message


def test_the_fields_that_a_dataset_is_to_have_are_kept(world: RestWorld) -> None:
    fields = {"metadata": [{"key": "author", "type": "string"}], "built_in_metadata": []}
    dataset_id = world.dataset(auto_metadata_config=fields)
    path = f"/datasets/{dataset_id}/metadata/config"
    assert world.ok("GET", path) == fields
    assert world.ok("PUT", path, json={"metadata": []}) == {"metadata": [], "built_in_metadata": []}
    assert world.ok("GET", path) == {"metadata": [], "built_in_metadata": []}
    assert world.ok("PUT", f"/datasets/{dataset_id}", json={"auto_metadata_config": fields})["id"] == dataset_id
    assert world.ok("GET", f"/datasets/{dataset_id}/auto_metadata") == fields
    assert world.refused("PUT", path, json={"metadata": "x"})[0] == 101
