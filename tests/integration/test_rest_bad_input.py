"""Bad input on every route: a clear answer in the one shape, never an internal error, and nothing is changed."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from werkzeug.routing import Rule
from werkzeug.serving import make_server

from api.db.models import Document, Knowledgebase
from common.settings import ServerSettings
from tests.rest_world import RestWorld, rest_world, speaks_ragflow

TEXTS = ("The Danube flows through Vienna.", "Bread is baked with flour.")
# Sent as they stand, under the content type of JSON.
BODIES: dict[str, bytes] = {
    "cut off": b'{"name": "a"',
    "no UTF-8": b'{"name": "\xff\xfe", "question": "\xc3\x28"}',
    "half a surrogate pair": b'{"name": "\\ud800", "question": "\\ud800", "ids": ["\\ud800"]}',
    "a list": b"[1, 2]",
    "a string": b'"text"',
    "null": b"null",
    "nothing": b"",
    "NaN": b'{"top_k": NaN, "meta_fields": {"a": Infinity}}',
    "nested": b'{"parser_config": ' + b'{"ext": ' * 5000 + b"1" + b"}" * 5001,
    "numbers everywhere": json.dumps(
        dict.fromkeys(
            (
                "name", "ids", "document_ids", "doc_ids", "chunk_ids", "dataset_ids", "content", "question",
                "parser_config", "meta_fields", "selector", "updates", "deletes", "important_keywords", "metadata",
                "action", "email", "password", "nickname", "task_ids", "error_code",
            ),
            10**300,
        )
    ).encode(),
    "objects everywhere": json.dumps(
        {
            key: {"a": [None]}
            for key in (
                "name", "ids", "document_ids", "doc_ids", "chunk_ids", "dataset_ids", "content", "question", "page",
                "top_k", "similarity_threshold", "chunk_method", "enabled", "status", "run", "available", "positions",
                "highlight", "rerank_id", "metadata_condition", "size", "delete_all", "email", "password", "nickname",
            )
        }
    ).encode(),
    "zero bytes": b'{"name": "a\\u0000b.txt", "question": "\\u0000", "nickname": "\\u0000"}',
    "a digit too many": b'{"page": ' + b"9" * 5000 + b"}",
}  # fmt: skip
QUERIES = (
    {"page": "-1", "page_size": "0"},
    {"page": "9" * 40, "page_size": "9" * 40},
    {"page": "x", "page_size": "\ud83d", "desc": "\x00", "orderby": "name; DROP TABLE document"},
    {"keywords": "' OR 1=1 --", "name": '"; --', "id": "%", "ids": "_,%"},
    {"create_time_from": "1" * 400, "create_time_to": "-5", "run": "'", "suffix": "%", "types": "x"},
    {"doc_ids": "a," * 2000, "dataset_ids": "a," * 2000, "chunk_ids": "a," * 200},
    {"width": "-1", "page": "1e9", "left": "NaN", "part": "x" * 2000, "type": "\u0000", "ext": "{"},
)
# Each is what a search engine or a database might take for its own language.
SYNTAX = (
    "'; DROP TABLE document; --", '" OR ""="', "title:(a AND b) OR NOT c", "a* ?b~2 c^5 [x TO y] {z}", "\\", '"', "AND",
    "((((", "+-&&||!(){}[]^\"~*?:\\/", "%_", "\u0000", "\U0001f600", "a" * 50_000, "\n\t ", "<em>", "${jndi:ldap://x}",
)  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestWorld]:
    with rest_world(tmp_path_factory.mktemp("bad"), ServerSettings(max_body_mb=1, max_files_per_upload=5)) as opened:
        yield opened


class Place:
    def __init__(self, world: RestWorld) -> None:
        self.world = world
        self.dataset_id = world.dataset()
        self.document_id = world.document(self.dataset_id)
        world.ingest(self.dataset_id, self.document_id, *([text] for text in TEXTS))
        self.documents = f"/datasets/{self.dataset_id}/documents"
        self.chunks = f"{self.documents}/{self.document_id}/chunks"
        self.chunk_id = world.ok("GET", self.chunks)["chunks"][0]["id"]

    def path(self, rule: Rule) -> str:
        ids = {
            "<dataset_id>": self.dataset_id, "<document_id>": self.document_id, "<chunk_id>": self.chunk_id,
            "<task_id>": "0" * 32, "<log_id>": self.document_id, "<file_id>": "x", "<path:token>": "x",
            "<int:page>": "1",
        }  # fmt: skip
        path = rule.rule
        for mark, value in ids.items():
            path = path.replace(mark, value)
        return path

    def state(self) -> list[Any]:
        chunks = self.world.ok("GET", self.chunks)["chunks"]
        row, dataset = Document.get_by_id(self.document_id), Knowledgebase.get_by_id(self.dataset_id)
        counts = (row.chunk_count, dataset.chunk_count, dataset.document_count, dataset.name, row.name, row.run)
        return [chunks, counts, Document.select().count(), Knowledgebase.select().count()]


@pytest.fixture(scope="module")
def place(world: RestWorld) -> Place:
    return Place(world)


def every_route(world: RestWorld) -> list[tuple[str, Rule]]:
    return [
        (method, rule)
        for rule in world.client.application.url_map.iter_rules()
        if rule.rule.startswith(("/api/", "/v1/")) and speaks_ragflow(world, rule)
        for method in sorted((rule.methods or set()) - {"OPTIONS", "HEAD"})
    ]


def require_answer(got: Any, what: object) -> Any:
    """The one shape, whatever went wrong; an internal error is never what a caller did."""
    assert got.status_code in (200, 304, 400, 401, 404, 413, 422, 500), (what, got.status_code)
    if not got.is_json:
        return None
    answer = got.get_json()
    if "code" not in answer:
        return answer  # health, which has no envelope
    assert isinstance(answer["code"], int), what
    if answer["code"]:
        assert isinstance(answer["message"], str) and answer["message"], what
        assert "Internal error" not in answer["message"], (what, answer)
    return answer


# These have an effect that needs no body: a new key, an end of the session.
EFFECT_WITHOUT_BODY = ("/system/tokens", "/system/new_token", "/auth/logout", "/user/logout")


@pytest.mark.parametrize("kind", BODIES)
def test_bodies_that_are_none(place: Place, kind: str) -> None:
    before = place.state()
    for method, rule in every_route(place.world):
        if method == "GET" or rule.rule.endswith(EFFECT_WITHOUT_BODY):
            continue
        headers = {"Authorization": place.world.key}
        with place.world.client.open(
            place.path(rule), method=method, headers=headers, data=BODIES[kind], content_type="application/json"
        ) as got:
            require_answer(got, (method, rule.rule, kind))
    assert place.state() == before


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_queries_that_are_none(place: Place, query: dict[str, str]) -> None:
    sent = {key: value.encode("utf-8", "surrogatepass") for key, value in query.items()}
    before = place.state()
    for method, rule in every_route(place.world):
        if method != "GET" or rule.rule.endswith(EFFECT_WITHOUT_BODY):
            continue
        headers = {"Authorization": place.world.key}
        with place.world.client.get(place.path(rule), headers=headers, query_string=sent) as got:
            require_answer(got, (rule.rule, query))
    assert place.state() == before


@pytest.mark.parametrize("words", SYNTAX, ids=range(len(SYNTAX)))
def test_the_language_of_databases_and_search_engines_is_text(place: Place, words: str) -> None:
    world = place.world
    asked = {"dataset_ids": [place.dataset_id], "question": words}
    found = world.ok("POST", "/retrieval", json=asked | {"highlight": True})
    assert found["total"] <= len(TEXTS)
    if words.strip():
        world.ok("POST", f"/datasets/{place.dataset_id}/search", json={"question": words})
    query = {"keywords": words[:2000]}
    assert world.ok("GET", place.chunks, query_string=query)["total"] <= len(TEXTS)
    assert world.ok("GET", place.documents, query_string=query)["total"] <= 1
    assert world.refused("GET", place.documents, query_string={"name": words[:2000] + "x"})[0] == 102
    assert world.refused("GET", "/datasets", query_string={"name": words[:2000] + "x"})[0] == 102
    condition = {"conditions": [{"name": words[:2000], "comparison_operator": "=", "value": words[:2000]}]}
    assert world.ok("POST", "/retrieval", json=asked | {"metadata_condition": condition})["total"] == 0


def test_what_no_store_takes_is_left_out_of_a_chunk(place: Place) -> None:
    body = json.dumps({"content": "a\u0000b \ud800 c", "questions": ["\udfff?"]})
    added = place.world.ok("POST", place.chunks, data=body, content_type="application/json")["chunk"]
    assert (added["content"], added["questions"]) == ("ab ? c", ["??"])
    place.world.ok("DELETE", place.chunks, json={"chunk_ids": [added["id"]]})
    place.world.catch_up()


def test_a_percent_sign_is_a_letter_of_a_name(place: Place) -> None:
    """Not "anything", as it is for a database."""
    for sign in ("%", "_", "\\"):
        assert place.world.ok("GET", place.documents, query_string={"keywords": sign})["total"] == 0
        ext = json.dumps({"keywords": sign})
        assert place.world.ok("GET", "/datasets", query_string={"ext": ext}) == []


def test_ten_thousand_ids_in_one_call(place: Place) -> None:
    world, ids = place.world, [f"{n:032x}" for n in range(10_000)]
    before = place.state()
    for method, path, body, phrase in (
        ("DELETE", "/datasets", {"ids": ids}, "lacks permission for datasets"),
        ("DELETE", place.documents, {"ids": ids}, "do not belong to dataset"),
        ("POST", f"/datasets/{place.dataset_id}/chunks", {"document_ids": ids}, "Documents not found"),
        ("DELETE", f"/datasets/{place.dataset_id}/chunks", {"document_ids": ids}, "don't own the document"),
        ("POST", f"{place.documents}/stop", {"document_ids": ids}, "Documents not found"),
        ("DELETE", place.chunks, {"chunk_ids": ids}, "rm_chunk deleted chunks 0, expect 10000"),
        ("PATCH", place.chunks, {"chunk_ids": ids, "available": 0}, "Can't find this chunk"),
        ("POST", f"{place.documents}/batch-update-status", {"doc_ids": ids, "status": 1}, "Documents not found"),
        ("POST", "/documents/ingest", {"doc_ids": ids, "run": 1}, "No authorization"),
        ("POST", "/retrieval", {"dataset_ids": ids, "question": "a"}, "don't own the dataset"),
        ("POST", "/retrieval", {"dataset_ids": [place.dataset_id], "document_ids": ids, "question": "a"}, "don't own"),
        ("POST", f"/datasets/{place.dataset_id}/metadata/update", {"selector": {"document_ids": ids}}, "do not belong"),
    ):
        _, message = world.refused(method, path, json=body)
        assert phrase in message, (method, path)
    too_many = [f"{n:x}" for n in range(40_000)]
    code, message = world.refused("POST", "/tasks/replay", json={"task_ids": too_many})
    assert code == 101 and "`task_ids`" in message
    assert place.state() == before


def test_an_id_that_is_named_twice_counts_once(place: Place) -> None:
    world, twice = place.world, [place.document_id] * 2
    code, message = world.refused("DELETE", place.documents, json={"ids": twice})
    assert code == 101 and "Duplicate ids" in message
    code, message = world.refused("DELETE", "/datasets", json={"ids": [place.dataset_id] * 2})
    assert code == 101 and "Duplicate ids" in message
    told = world.ok("POST", f"{place.documents}/batch-update-status", json={"doc_ids": twice, "status": 1})
    assert told == {place.document_id: {"status": "1"}}
    assert world.ok("POST", "/retrieval", json={"dataset_ids": [place.dataset_id] * 2, "question": "Danube"})["total"]


@pytest.mark.parametrize(
    "body",
    [{}, {"ids": None}, {"ids": []}, {"ids": None, "delete_all": False}, {"ids": [], "delete_all": False}],
)
def test_an_empty_list_deletes_nothing(place: Place, body: dict[str, Any]) -> None:
    before = place.state()
    assert place.world.ok("DELETE", "/datasets", json=body) == {"success_count": 0}
    code, message = place.world.refused("DELETE", place.documents, json=body)
    assert code == 102 and "should either provide doc ids or set delete_all" in message
    assert place.state() == before


@pytest.mark.parametrize("value", ["true", 1, [True], {"a": 1}, None])
def test_only_true_deletes_all(place: Place, value: object) -> None:
    """A strict schema where RAGFlow has one; elsewhere null is as good as nothing."""
    before = place.state()
    for path in ("/datasets", place.documents):
        assert place.world.refused("DELETE", path, json={"delete_all": value})[0] == 101
    if value is None:
        place.world.ok("DELETE", place.chunks, json={"delete_all": value})
    else:
        assert place.world.refused("DELETE", place.chunks, json={"delete_all": value})[0] == 102
    assert place.state() == before


def test_uploads_that_are_empty_too_large_or_none(place: Place) -> None:
    world = place.world
    assert world.upload(place.dataset_id, ("empty.txt", b"")).get_json()["data"][0]["size"] == 0
    answer = world.upload(place.dataset_id, ("big.txt", b"x" * 2_000_000)).get_json()
    assert answer["code"] == 100 and "RequestEntityTooLarge" in answer["message"]
    answer = world.upload(place.dataset_id, *((f"{n}.txt", b"x") for n in range(6))).get_json()
    assert answer["code"] == 101 and "At most 5 files" in answer["message"]
    assert world.upload(place.dataset_id, ("", b"x")).get_json() == {"code": 101, "message": "No file selected!"}
    assert world.refused("POST", place.documents, json={"file": "x"}) == (101, "No file part!")
    names = [one["name"] for one in world.ok("GET", place.documents)["docs"]]
    assert sorted(names) == ["a.txt", "empty.txt"]


def test_an_upload_that_breaks_off_leaves_nothing(place: Place) -> None:
    """Over a real connection that is closed half way through the file."""
    before = Document.select().count()
    server = make_server("127.0.0.1", 0, place.world.client.application, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with socket.create_connection(("127.0.0.1", server.server_port)) as link:
            head = '--b\r\nContent-Disposition: form-data; name="file"; filename="half.txt"\r\n\r\nhalf of it'
            link.sendall(
                f"POST /api/v1{place.documents} HTTP/1.1\r\nHost: x\r\nAuthorization: {place.world.key}\r\n"
                f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n\r\n{head}".encode()
            )
            link.shutdown(socket.SHUT_WR)
            told = link.makefile("rb").read()
        assert b'"code":0' not in told.replace(b" ", b"")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert Document.select().count() == before
    incoming = place.world.services.settings.store_dir / "incoming"
    assert list(incoming.glob("*")) == []


@pytest.mark.parametrize(
    ("body", "phrase"),
    [
        ({"page": -1, "page_size": 10**30, "top_k": 10**30}, ""),
        ({"page": 10**30}, ""),
        ({"top_k": -1}, "`top_k` must be greater than 0"),
        ({"top_k": "many"}, "`top_k` should be a whole number"),
        ({"similarity_threshold": 10**400}, "`similarity_threshold`"),
        ({"vector_similarity_weight": [1]}, "`vector_similarity_weight`"),
        ({"highlight": 5}, "`highlight` should be a boolean"),
        ({"question": ["a"]}, "`question` should be a string"),
        ({"document_ids": "a"}, "`documents` should be a list"),
        ({"dataset_ids": "a"}, "`dataset_ids` should be a list"),
        ({"dataset_ids": [1]}, "`dataset_ids`"),
        ({"metadata_condition": [1]}, "`metadata_condition` should be an object"),
        ({"keyword": True}, "`keyword` needs a chat model"),
        ({"rerank_id": 5}, "`rerank_id`"),
    ],
)
def test_retrieval_names_the_field_that_is_wrong(place: Place, body: dict[str, Any], phrase: str) -> None:
    asked = {"dataset_ids": [place.dataset_id], "question": "Danube"} | body
    if not phrase:
        assert place.world.ok("POST", "/retrieval", json=asked)["total"] >= 0
        return
    code, message = place.world.refused("POST", "/retrieval", json=asked)
    assert code in (100, 102) and phrase in message
