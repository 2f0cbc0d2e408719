"""Datasets over REST: shapes, names, parser_config, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from api.db.models import Knowledgebase
from common.ids import is_id
from tests.at_once import at_once
from tests.rest_world import RestWorld, new_caller

DATASET_KEYS = {
    "id", "name", "avatar", "description", "tenant_id", "created_by", "language", "embedding_model", "permission",
    "chunk_method", "parser_config", "pagerank", "pipeline_id", "document_count", "chunk_count", "token_num",
    "similarity_threshold", "vector_similarity_weight", "status", "graphrag_task_id", "graphrag_task_finish_at",
    "raptor_task_id", "raptor_task_finish_at", "mindmap_task_id", "mindmap_task_finish_at", "create_time",
    "create_date", "update_time", "update_date",
}  # fmt: skip


def test_a_created_dataset_has_every_field(world: RestWorld) -> None:
    made = world.ok("POST", "/datasets", json={"name": "  first  "})
    assert set(made) == DATASET_KEYS
    assert made["name"] == "first"
    assert is_id(made["id"])
    assert made["tenant_id"] == made["created_by"] == world.caller.tenant_id
    assert made["embedding_model"] == "potion-base-8M@Builtin"
    assert (made["permission"], made["chunk_method"], made["language"]) == ("me", "naive", "English")
    assert (made["similarity_threshold"], made["vector_similarity_weight"], made["status"]) == (0.2, 0.3, "1")
    assert isinstance(made["create_time"], int) and made["create_time"] > 1_600_000_000_000
    assert len(made["create_date"]) == 19 and made["create_date"][10] == "T"


def test_what_the_sdk_sends_is_taken(world: RestWorld) -> None:
    body = {"name": "sdk", "avatar": None, "description": None, "embedding_model": None, "permission": "me"}
    assert world.ok("POST", "/datasets", json=body | {"chunk_method": "naive"})["name"] == "sdk"


def test_defaults_by_chunk_method(world: RestWorld) -> None:
    naive = world.ok("POST", "/datasets", json={"name": "n", "parser_config": {}})["parser_config"]
    assert (naive["chunk_token_num"], naive["topn_tags"], naive["delimiter"]) == (512, 3, "\n")
    assert naive["raptor"]["use_raptor"] is True and naive["graphrag"]["use_graphrag"] is True
    assert naive["parent_child"]["use_parent_child"] is False
    assert (naive["table_context_size"], naive["image_context_size"]) == (0, 0)
    book = world.ok("POST", "/datasets", json={"name": "b", "chunk_method": "book"})["parser_config"]
    assert book["raptor"] == {"use_raptor": False} and book["graphrag"] == {"use_graphrag": False}
    table = world.ok("POST", "/datasets", json={"name": "t", "chunk_method": "table"})["parser_config"]
    assert set(table) == {"table_context_size", "image_context_size", "llm_id"}


def test_a_password_is_kept_and_never_shown(world: RestWorld) -> None:
    body = {"name": "secret", "parser_config": {"password": "open sesame"}}
    made = world.ok("POST", "/datasets", json=body)
    assert made["parser_config"]["password"] == "********"
    listed = world.ok("GET", "/datasets?name=secret")
    assert "open sesame" not in str(listed)
    kept = Knowledgebase.get_by_id(made["id"]).parser_config
    assert kept["password"] == "open sesame"
    plain = world.ok("POST", "/datasets", json={"name": "plain", "parser_config": {"chunk_token_num": 9}})
    assert "password" not in plain["parser_config"]


def test_a_given_parser_config_is_filled_with_schema_defaults(world: RestWorld) -> None:
    body = {"name": "n", "parser_config": {"chunk_token_num": 128, "pages": [[1, 3], [5, 7]]}}
    config = world.ok("POST", "/datasets", json=body)["parser_config"]
    assert (config["chunk_token_num"], config["topn_tags"], config["filename_embd_weight"]) == (128, 1, 0.1)
    assert config["raptor"]["use_raptor"] is False and config["graphrag"]["use_graphrag"] is False
    assert config["pages"] == [[1, 3], [5, 7]]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "Field: <name> - Message: <Field required> - Value: <{}>"),
        ({"name": ""}, "String should have at least 1 character"),
        ({"name": "   "}, "String should have at least 1 character"),
        ({"name": "x" * 129}, "String should have at most 128 characters"),
        ({"name": 7}, "Field: <name> - Message: <Input should be a valid string> - Value: <7>"),
        ({"name": "a", "what": 1}, "Field: <what> - Message: <Extra inputs are not permitted> - Value: <1>"),
        ({"name": "a", "avatar": "abc"}, "Missing MIME prefix"),
        ({"name": "a", "avatar": "image/png;base64,abc"}, "Invalid MIME prefix format"),
        ({"name": "a", "avatar": "data:text/html;base64,abc"}, "Unsupported MIME type"),
        ({"name": "a", "embedding_model": "m"}, "must follow <model_name>@<provider> format"),
        ({"name": "a", "embedding_model": ""}, "must follow <model_name>@<provider> format"),
        ({"name": "a", "embedding_model": "m@"}, "must be non-empty strings"),
        ({"name": "a", "permission": "ME"}, "Input should be 'me' or 'team'"),
        ({"name": "a", "chunk_method": None}, "Input should be 'naive', 'book'"),
        ({"name": "a", "parser_config": {"x": 1}}, "Field: <parser_config.x> - Message: <Extra inputs"),
        ({"name": "a", "parser_config": {"chunk_token_num": "3"}}, "Input should be a valid integer"),
        ({"name": "a", "parser_config": {"chunk_token_num": 0}}, "Input should be greater than or equal to 1"),
        ({"name": "a", "parser_config": {"chunk_token_num": 2049}}, "Input should be less than or equal to 2048"),
        ({"name": "a", "parser_config": {"html4excel": 1}}, "Input should be a valid boolean"),
        ({"name": "a", "parser_config": {"tag_kb_ids": "x"}}, "Input should be a valid list"),
        ({"name": "a", "parser_config": {"raptor": 1}}, "Input should be a valid dictionary"),
        ({"name": "a", "parser_config": {"ext": {"x": "y" * 65535}}}, "Parser config exceeds size limit"),
        ({"name": "a", "parser_config": {"pages": [[0, 3]]}}, "Input should be pairs [first, last]"),
        ({"name": "a", "parser_config": {"pages": [[5, 3]]}}, "Input should be pairs [first, last]"),
        ({"name": "a", "parser_config": {"pages": [[1]]}}, "Input should be pairs [first, last]"),
        ({"name": "a", "parser_config": {"table_context_size": 0}}, "Extra inputs are not permitted"),
    ],
)
def test_a_bad_field_is_named(world: RestWorld, fields: dict[str, Any], text: str) -> None:
    code, message = world.refused("POST", "/datasets", json=fields)
    assert code == 101
    assert text in message


def test_every_bad_field_has_a_line_and_values_are_cut(world: RestWorld) -> None:
    _, message = world.refused("POST", "/datasets", json={"name": "y" * 200, "description": 1})
    first, second = message.split("\n")
    assert first.endswith(f"Value: <{'y' * 125}...>")
    assert second.startswith("Field: <description>")


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({"data": "{}", "content_type": "text/plain"}, "Unsupported content type: Expected application/json, got text"),
        ({"data": "{", "content_type": "application/json"}, "Malformed JSON syntax"),
        ({"data": b"\xff", "content_type": "application/json"}, "Malformed JSON syntax"),
        ({"data": "[" * 100_000, "content_type": "application/json"}, "Malformed JSON syntax"),
        ({"data": "[1]", "content_type": "application/json"}, "expected object, got list"),
        ({"data": '{"name": "\\ud800"}', "content_type": "application/json"}, "Input should be a valid string"),
        ({"data": "null", "content_type": "application/json"}, "Field required"),
        ({}, "Unsupported content type"),
    ],
)
def test_a_bad_body_is_refused(world: RestWorld, kwargs: dict[str, Any], text: str) -> None:
    code, message = world.refused("POST", "/datasets", **kwargs)
    assert code == 101
    assert text in message


def test_names_too_long_in_bytes_and_unknown_models_are_data_errors(world: RestWorld) -> None:
    code, message = world.refused("POST", "/datasets", json={"name": "ü" * 100})
    assert code == 102 and "Dataset name length is 200" in message
    code, message = world.refused("POST", "/datasets", json={"name": "a", "embedding_model": "other@Builtin"})
    assert code == 102 and "not found" in message


def test_a_taken_name_gets_a_number(world: RestWorld) -> None:
    names = [world.ok("POST", "/datasets", json={"name": n})["name"] for n in ("a", "A", "a", "x.y", "x.y", "a(1)")]
    assert names == ["a", "A(1)", "a(2)", "x.y", "x(1).y", "a(3)"]


def test_many_creators_of_one_name_all_succeed(world: RestWorld) -> None:
    names: list[str] = []

    def create() -> None:
        client = world.client.application.test_client()
        headers = {"Authorization": world.key}
        answer = client.post("/api/v1/datasets", json={"name": "same"}, headers=headers).get_json()
        names.append(answer["data"]["name"])

    at_once(*[create] * 8, rows=world.rows)
    assert sorted(names) == sorted(["same", *[f"same({n})" for n in range(1, 8)]])


def test_list_pages_orders_and_counts(world: RestWorld) -> None:
    ids = [world.dataset(f"d{n}") for n in range(3)]
    answer = world.call("GET", "/datasets?page=1&page_size=2&orderby=create_time&desc=False").get_json()
    assert answer["total_datasets"] == 3
    assert [d["id"] for d in answer["data"]] == ids[:2]
    assert set(answer["data"][0]) == DATASET_KEYS | {"nickname", "tenant_avatar", "embedding_model_name"}
    assert answer["data"][0]["nickname"] == "Ursula"
    assert world.ok("GET", "/datasets?page=9") == []
    assert world.ok("GET", f"/datasets?page={2**53}&page_size=100") == []
    assert [d["id"] for d in world.ok("GET", f"/datasets?id={ids[1]}")] == [ids[1]]
    assert [d["id"] for d in world.ok("GET", "/datasets?name=d2")] == [ids[2]]
    assert {d["id"] for d in world.ok("GET", f"/datasets?ids={ids[0]},{ids[1]}&ids={ids[2]}")} == set(ids)


def test_list_can_count_documents_by_state(world: RestWorld) -> None:
    dataset_id = world.dataset()
    world.document(dataset_id)
    (shown,) = world.ok("GET", "/datasets?include_parsing_status=true")
    assert shown["parsing_status"] == {
        "unstart_count": 1,
        "running_count": 0,
        "cancel_count": 0,
        "done_count": 0,
        "fail_count": 0,
    }


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("page=0", "Input should be greater than or equal to 1"),
        ("page=x", "Input should be a valid integer"),
        ("page_size=101", "Input should be less than or equal to 100"),
        ("orderby=name", "Input should be 'create_time' or 'update_time'"),
        ("desc=perhaps", "Input should be a valid boolean"),
        ("id=", "Invalid UUID format"),
        ("id=x", "Invalid UUID format"),
        ("what=1", "Extra inputs are not permitted"),
    ],
)
def test_a_bad_list_parameter_is_named(world: RestWorld, query: str, text: str) -> None:
    code, message = world.refused("GET", f"/datasets?{query}")
    assert code == 101
    assert text in message


def test_get_adds_the_size(world: RestWorld) -> None:
    dataset_id = world.dataset()
    world.document(dataset_id, content=b"12345")
    shown = world.ok("GET", f"/datasets/{dataset_id}/")
    assert set(shown) == DATASET_KEYS | {"size", "connectors"}
    assert (shown["size"], shown["document_count"]) == (5, 1)
    second = world.document(dataset_id, "b.txt", b"hello again")
    assert world.ok("GET", f"/datasets/{dataset_id}")["size"] == 16
    world.ok("DELETE", f"/datasets/{dataset_id}/documents", json={"ids": [second]})
    assert world.ok("GET", f"/datasets/{dataset_id}")["size"] == 5


def test_unknown_and_foreign_datasets_are_refused_alike(world: RestWorld) -> None:
    dataset_id = world.dataset("mine")
    other = world.services.accounts.create_token(new_caller(world.rows, "Viktor"), "k")
    for path in (f"/datasets/{dataset_id}", f"/datasets?id={dataset_id}", "/datasets?name=mine"):
        code, message = world.refused("GET", path, key=other)
        assert code == 102 and "lacks permission for dataset" in message
    assert world.refused("GET", f"/datasets/{'0' * 32}")[0] == 102
    assert world.ok("GET", "/datasets", key=other) == []
