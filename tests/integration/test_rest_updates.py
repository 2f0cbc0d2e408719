"""Datasets and documents changed over REST: every field, what is refused, and that a refusal changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api.db.models import Document, Knowledgebase
from api.db.services.retrieval_service import Question
from common.errors import InvalidInput
from tests.rest_world import RestWorld

TEXTS = ("The Danube flows through Vienna.", "Bread is baked with flour.")


def parsed(world: RestWorld, name: str = "a.txt") -> tuple[str, str]:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id, name)
    world.ingest(dataset_id, document_id, *([text] for text in TEXTS))
    return dataset_id, document_id


def found(world: RestWorld, dataset_id: str, question: str) -> list[str]:
    world.catch_up()
    body = {"dataset_ids": [dataset_id], "question": question, "similarity_threshold": 0.0}
    return [chunk["content"] for chunk in world.ok("POST", "/retrieval", json=body)["chunks"]]


def test_every_field_of_a_dataset_can_be_changed(world: RestWorld) -> None:
    dataset_id = world.dataset("before")
    change = {
        "name": " after ", "avatar": "data:image/png;base64,AA==", "description": "new", "permission": "team",
        "pagerank": 100, "language": "German", "embedding_model": None, "connectors": [],
    }  # fmt: skip
    shown = world.ok("PUT", f"/datasets/{dataset_id}", json=change)
    assert (shown["name"], shown["description"], shown["permission"], shown["pagerank"], shown["language"]) == (
        "after", "new", "team", 100, "German",
    )  # fmt: skip
    assert shown["avatar"] == change["avatar"]
    assert shown == {k: v for k, v in world.ok("GET", f"/datasets/{dataset_id}").items() if k in shown}
    assert world.ok("PUT", f"/datasets/{dataset_id}", json={"name": "AFTER"})["name"] == "AFTER"
    model = shown["embedding_model"]
    assert world.ok("PUT", f"/datasets/{dataset_id}", json={"embedding_model": model})["embedding_model"] == model
    cleared = world.ok("PUT", f"/datasets/{dataset_id}", json={"description": None, "avatar": None})
    assert (cleared["description"], cleared["avatar"]) == (None, "")


def test_a_parser_config_is_laid_over_the_one_that_is_there(world: RestWorld) -> None:
    dataset_id = world.dataset(parser_config={"chunk_token_num": 100, "password": "secret"})
    change = {"parser_config": {"delimiter": ";", "raptor": {"max_cluster": 7}, "password": "********"}}
    config = world.ok("PUT", f"/datasets/{dataset_id}", json=change)["parser_config"]
    assert (config["chunk_token_num"], config["delimiter"], config["raptor"]["max_cluster"]) == (100, ";", 7)
    assert (config["raptor"]["random_seed"], config["password"]) == (0, "********")
    assert Knowledgebase.get_by_id(dataset_id).parser_config["password"] == "secret"


def test_a_new_chunk_method_takes_its_own_defaults(world: RestWorld) -> None:
    dataset_id = world.dataset(parser_config={"chunk_token_num": 100})
    config = world.ok("PUT", f"/datasets/{dataset_id}", json={"chunk_method": "qa"})["parser_config"]
    assert "chunk_token_num" not in config
    assert config["raptor"] == {"use_raptor": False}
    shown = world.ok(
        "PUT", f"/datasets/{dataset_id}", json={"chunk_method": "naive", "parser_config": {"chunk_token_num": 9}}
    )
    assert (shown["chunk_method"], shown["parser_config"]["chunk_token_num"]) == ("naive", 9)


@pytest.mark.parametrize(
    ("change", "code", "phrase"),
    [
        ({}, 102, "no properties were modified"),
        ({"name": ""}, 101, "String should have at least 1 character"),
        ({"name": "x" * 129}, 101, "String should have at most 128 characters"),
        ({"name": "é" * 100}, 101, "at most 128 bytes"),
        ({"name": None}, 101, "Input should be a valid string"),
        ({"name": "Taken"}, 102, "already exists"),
        ({"permission": None}, 101, "Input should be 'me' or 'team'"),
        ({"permission": "ME"}, 101, "Input should be 'me' or 'team'"),
        ({"chunk_method": None}, 101, "Input should be 'naive', 'book'"),
        ({"chunk_method": "odd"}, 101, "Input should be 'naive', 'book'"),
        ({"pagerank": -1}, 101, "greater than or equal to 0"),
        ({"pagerank": 101}, 101, "less than or equal to 100"),
        ({"pagerank": "5"}, 101, "Input should be a valid integer"),
        ({"pagerank": 10**40}, 101, "less than or equal to 100"),
        ({"embedding_model": ""}, 101, "must follow <model_name>@<provider> format"),
        ({"embedding_model": "a@ "}, 101, "non-empty strings"),
        ({"embedding_model": "other@Builtin"}, 102, "Model other@Builtin not found"),
        ({"avatar": "x"}, 101, "Missing MIME prefix"),
        ({"language": "x" * 33}, 101, "at most 32 characters"),
        ({"connectors": ["a"]}, 102, "`connectors` is not available"),
        ({"parser_config": {"chunk_token_num": 0}}, 101, "Field: <parser_config.chunk_token_num>"),
        ({"parser_config": {"llm_id": ""}}, 101, "Extra inputs are not permitted"),
        ({"id": "x"}, 101, "Extra inputs are not permitted"),
    ],
)
def test_what_a_dataset_cannot_become_is_refused(
    world: RestWorld, change: dict[str, Any], code: int, phrase: str
) -> None:
    world.dataset("taken")
    dataset_id = world.dataset("mine")
    before = world.ok("GET", f"/datasets/{dataset_id}")
    got, message = world.refused("PUT", f"/datasets/{dataset_id}", json=change)
    assert got == code and phrase in message
    assert world.ok("GET", f"/datasets/{dataset_id}") == before


def test_only_ones_own_dataset_can_be_changed(world: RestWorld) -> None:
    code, message = world.refused("PUT", "/datasets/nope", json={"name": "a"})
    assert code == 101 and "Invalid UUID format" in message
    code, message = world.refused("PUT", f"/datasets/{'0' * 32}", json={"name": "a"})
    assert code == 102 and "lacks permission for dataset" in message


def test_a_dataset_with_chunks_keeps_its_model(world: RestWorld) -> None:
    """The server embeds with another model by now: vectors of two can't be compared."""
    dataset_id, _ = parsed(world)
    Knowledgebase.update(embedding_model="old@Builtin").where(Knowledgebase.id == dataset_id).execute()
    change = {"embedding_model": world.services.datasets.embedding_model}
    code, message = world.refused("PUT", f"/datasets/{dataset_id}", json=change)
    assert code == 102 and "When chunk_num (2) > 0, embedding_model must remain old@Builtin" in message


def test_a_dataset_keeps_its_model_while_documents_are_parsed(world: RestWorld) -> None:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id)
    Knowledgebase.update(embedding_model="old@Builtin").where(Knowledgebase.id == dataset_id).execute()
    world.ok("POST", f"/datasets/{dataset_id}/chunks", json={"document_ids": [document_id]})
    change = {"embedding_model": world.services.datasets.embedding_model}
    code, message = world.refused("PUT", f"/datasets/{dataset_id}", json=change)
    assert code == 102 and "While documents are being parsed, embedding_model must remain old@Builtin" in message
    world.ok("DELETE", f"/datasets/{dataset_id}/chunks", json={"document_ids": [document_id]})
    assert world.ok("PUT", f"/datasets/{dataset_id}", json=change)["embedding_model"] == change["embedding_model"]


def test_a_search_in_a_dataset_of_another_model_is_refused_below_rest_too(world: RestWorld) -> None:
    dataset_id, _ = parsed(world)
    Knowledgebase.update(embedding_model="old@Builtin").where(Knowledgebase.id == dataset_id).execute()
    with pytest.raises(InvalidInput, match="embedded with old@Builtin, and this server embeds with potion"):
        world.services.retrieval.ask(world.caller.tenant_id, Question("alpha", (dataset_id,)))


def test_a_pipeline_is_refused_by_name(world: RestWorld) -> None:
    pipeline = {"parse_type": 1, "pipeline_id": "0" * 32}
    for fields, code, phrase in (
        (pipeline, 102, "`pipeline_id`"),
        ({"parse_type": 1}, 101, "required fields missing: pipeline_id"),
        (pipeline | {"chunk_method": "naive"}, 101, "disallowed fields present"),
        (pipeline | {"parse_type": 65}, 101, "less than or equal to 64"),
    ):
        got, message = world.refused("POST", "/datasets", json={"name": "p"} | fields)
        assert got == code and phrase in message
    assert world.ok("GET", "/datasets") == []


def test_datasets_are_chosen_by_what_ext_says(world: RestWorld) -> None:
    world.dataset("River notes")
    world.dataset("bread", chunk_method="qa")

    def names(ext: str) -> list[str]:
        return [one["name"] for one in world.ok("GET", "/datasets", query_string={"ext": ext})]

    assert names('{"keywords": "RIVER"}') == ["River notes"]
    assert names('{"parser_id": "qa"}') == ["bread"]
    assert names(json.dumps({"owner_ids": [world.caller.tenant_id], "keywords": "%"})) == []
    assert names('{"owner_ids": ["somebody"]}') == []
    for ext in ("{", '{"other": 1}', '{"keywords": 1}', "[" * 100_000):
        code, message = world.refused("GET", "/datasets", query_string={"ext": ext})
        assert code == 101 and "Field: <ext" in message
    counted = world.ok("GET", "/datasets?type=filter")
    assert counted == {
        "total": 2,
        "filter": {"owner": [{"id": world.caller.tenant_id, "label": "Ursula", "count": 2}]},
    }


def test_every_field_of_a_document_can_be_changed(world: RestWorld) -> None:
    dataset_id, document_id = parsed(world)
    path = f"/datasets/{dataset_id}/documents/{document_id}"
    shown = world.ok(
        "PUT", path,
        json={
            "name": "b.TXT", "meta_fields": {"author": "Ann", "year": 2020, "tags": ["x", "y"]}, "enabled": 0,
            "parser_config": {"chunk_token_num": 99}, "chunk_count": 2, "progress": 1.0,
        },
    )  # fmt: skip
    assert (shown["name"], shown["status"], shown["chunk_count"], shown["run"]) == ("b.TXT", "0", 2, "DONE")
    assert shown["meta_fields"] == {"author": "Ann", "year": 2020, "tags": ["x", "y"]}
    assert shown["parser_config"]["chunk_token_num"] == 99
    assert "raptor" not in shown["parser_config"]
    assert shown == world.shown(dataset_id, document_id)
    assert found(world, dataset_id, "Danube") == []
    assert [one["available"] for one in world.ok("GET", f"{path}/chunks")["chunks"]] == [False, False]
    assert world.ok("PATCH", path, json={"enabled": 1, "meta_fields": {}})["meta_fields"] == {}
    assert found(world, dataset_id, "Danube")[0] == TEXTS[0]


def test_another_chunk_method_starts_over(world: RestWorld) -> None:
    dataset_id, document_id = parsed(world)
    path = f"/datasets/{dataset_id}/documents/{document_id}"
    same = world.ok("PUT", path, json={"chunk_method": "naive"})
    assert (same["run"], same["chunk_count"]) == ("DONE", 2)
    shown = world.ok("PUT", path, json={"chunk_method": "qa"})
    assert (shown["chunk_method"], shown["run"], shown["progress"], shown["chunk_count"], shown["token_count"]) == (
        "qa", "UNSTART", 0.0, 0, 0,
    )  # fmt: skip
    assert (shown["process_begin_at"], shown["progress_msg"]) == (None, "")
    assert world.ok("GET", f"{path}/chunks")["total"] == 0
    assert found(world, dataset_id, "Danube") == []
    assert world.ok("GET", f"/datasets/{dataset_id}")["chunk_count"] == 0
    world.ingest(dataset_id, document_id, ["Parsed again."])
    assert found(world, dataset_id, "parsed") == ["Parsed again."]
    assert world.ok("GET", f"/datasets/{dataset_id}")["chunk_count"] == 1


def test_a_running_document_keeps_its_method(world: RestWorld) -> None:
    dataset_id, document_id = parsed(world)
    world.ok("POST", f"/datasets/{dataset_id}/chunks", json={"document_ids": [document_id]})
    path = f"/datasets/{dataset_id}/documents/{document_id}"
    code, message = world.refused("PUT", path, json={"chunk_method": "qa", "name": "new.txt"})
    assert code == 102 and "currently being processed" in message
    assert (world.row(document_id).chunk_method, world.row(document_id).name) == ("naive", "a.txt")


@pytest.mark.parametrize(
    ("change", "code", "phrase"),
    [
        ({"chunk_count": 9}, 102, "can't change `chunk_count`"),
        ({"token_count": 9}, 102, "can't change `token_count`"),
        ({"progress": 0.5}, 102, "can't change `progress`"),
        ({"name": 7}, 102, "valid string"),
        ({"name": "b" * 252 + ".txt"}, 101, "255 bytes or less"),
        ({"name": "a.pdf"}, 101, "the extension of file can't be changed"),
        ({"name": "../a.txt"}, 101, "without a path"),
        ({"name": "TAKEN.txt"}, 102, "duplicated document name in the same dataset"),
        ({"chunk_method": "odd"}, 102, "`chunk_method` odd doesn't exist"),
        ({"chunk_method": ["naive"]}, 102, "doesn't exist"),
        ({"meta_fields": [1]}, 102, "must be a dictionary"),
        ({"meta_fields": {"a": {"b": 1}}}, 102, "type is not supported"),
        ({"meta_fields": {"a": None}}, 102, "type is not supported"),
        ({"meta_fields": {"a": [True]}}, 102, "type is not supported"),
        ({"meta_fields": {"a": "x" * 70_000}}, 102, "at most 65535 characters"),
        ({"parser_config": {"chunk_token_num": "5"}}, 102, "<parser_config.chunk_token_num>"),
        ({"parser_config": 5}, 102, "valid dictionary"),
        ({"enabled": 2}, 102, "`enabled` should be 0 or 1"),
        ({"enabled": None}, 102, "`enabled` should be 0 or 1"),
        ({"pipeline_id": "0" * 32}, 102, "`pipeline_id`"),
    ],
)
def test_what_a_document_cannot_become_is_refused(
    world: RestWorld, change: dict[str, Any], code: int, phrase: str
) -> None:
    dataset_id, document_id = parsed(world)
    world.document(dataset_id, "taken.txt")
    before = world.shown(dataset_id, document_id)
    body = {"meta_fields": {"kept": "no"}} | change
    got, message = world.refused("PUT", f"/datasets/{dataset_id}/documents/{document_id}", json=body)
    assert got == code and phrase.lower() in message.lower()
    assert world.shown(dataset_id, document_id) == before


@pytest.mark.parametrize(("name", "own"), [("a.png", "picture"), ("a.mp3", "audio"), ("a.pptx", "presentation")])
def test_kinds_of_files_that_have_a_method_of_their_own_keep_it(world: RestWorld, name: str, own: str) -> None:
    dataset_id = world.dataset()
    path = f"/datasets/{dataset_id}/documents/{world.document(dataset_id, name)}"
    code, message = world.refused("PUT", path, json={"chunk_method": "naive"})
    assert code == 102 and "automatically detected parser type cannot be changed" in message
    assert world.ok("PUT", path, json={"chunk_method": own})["chunk_method"] == own


def test_a_document_is_changed_in_its_own_dataset_only(world: RestWorld) -> None:
    _, document_id = parsed(world)
    other = world.dataset("other")
    code, message = world.refused("PUT", f"/datasets/{other}/documents/{document_id}", json={"name": "b.txt"})
    assert code == 102 and "the dataset doesn't own the document" in message.lower()
    code, message = world.refused("PUT", f"/datasets/{'0' * 32}/documents/{document_id}", json={"name": "b.txt"})
    assert code == 102 and "you don't own the dataset" in message.lower()
    assert Document.get_by_id(document_id).name == "a.txt"


def test_many_documents_are_switched_at_once(world: RestWorld) -> None:
    dataset_id, first = parsed(world)
    second = world.document(dataset_id, "b.txt")
    path = f"/datasets/{dataset_id}/documents/batch-update-status"
    answer = world.ok("POST", path, json={"doc_ids": [first, second], "status": "0"})
    assert answer == {first: {"status": "0"}, second: {"status": "0"}}
    assert found(world, dataset_id, "Danube") == []
    code, message = world.refused("POST", path, json={"doc_ids": [first, "x"], "status": 1})
    assert code == 102 and "Documents not found: ['x']" in message
    assert world.shown(dataset_id, first)["status"] == "0"
    assert world.refused("POST", path, json={"doc_ids": [first], "status": 2})[1] == "`status` should be 0 or 1"
    assert world.refused("POST", path, json={"status": 1})[1] == "`doc_ids` is required"
