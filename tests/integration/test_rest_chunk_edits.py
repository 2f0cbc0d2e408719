"""Single chunks over REST: added, changed, switched, deleted; what is found afterwards, and the counts."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest

from api.db.models import Document, Knowledgebase
from api.db.services.chunk_edits import ChunkChange
from api.db.services.index_audit import AuditService
from api.db.services.stale_service import StaleService
from common.errors import IndexUnavailable, NotFound
from rag.utils.doc_index import Scope
from tests.rest_world import RestWorld

TEXTS = ("The Danube flows through Vienna.", "Bread is baked with flour.", "The moon is far away.")


class Place:
    """A parsed document of three chunks on three pages."""

    def __init__(self, world: RestWorld) -> None:
        self.world = world
        self.dataset_id = world.dataset()
        self.document_id = world.document(self.dataset_id)
        world.ingest(self.dataset_id, self.document_id, *([text] for text in TEXTS))
        self.path = f"/datasets/{self.dataset_id}/documents/{self.document_id}/chunks"

    def listed(self, query: str = "") -> list[Any]:
        chunks: list[Any] = self.world.ok("GET", f"{self.path}?{query}")["chunks"]
        return chunks

    def texts(self) -> list[str]:
        return [chunk["content"] for chunk in self.listed()]

    def found(self, question: str, **body: Any) -> list[Any]:
        self.world.catch_up()
        asked = {"dataset_ids": [self.dataset_id], "question": question, "similarity_threshold": 0.0} | body
        chunks: list[Any] = self.world.ok("POST", "/retrieval", json=asked)["chunks"]
        return chunks

    def counts(self) -> tuple[int, int]:
        """Of the document and of the dataset; both must be the index's own."""
        row, dataset = Document.get_by_id(self.document_id), Knowledgebase.get_by_id(self.dataset_id)
        return row.chunk_count, dataset.chunk_count

    def add(self, content: str, **fields: Any) -> Any:
        return self.world.ok("POST", self.path, json={"content": content} | fields)["chunk"]


@pytest.fixture
def place(world: RestWorld) -> Place:
    return Place(world)


def test_an_added_chunk_has_every_field_and_is_found(place: Place) -> None:
    added = place.add(
        "Glaciers are melting.", important_keywords=["climate"], questions=["What melts?", "  "], tag_kwd=["ice"],
        tag_feas={"ice": 2.5},
    )  # fmt: skip
    assert set(added) == {
        "id", "content", "document_id", "dataset_id", "important_keywords", "questions", "create_time",
        "create_timestamp", "doc_type_kwd", "tag_kwd",
    }  # fmt: skip
    assert re.fullmatch(r"[0-9a-f]{16}", added["id"])
    assert (added["questions"], added["important_keywords"]) == (["What melts?"], ["climate"])
    made = datetime.strptime(added["create_time"], "%Y-%m-%d %H:%M:%S")
    assert made.timestamp() == int(added["create_timestamp"])
    assert place.counts() == (4, 4)
    (listed,) = place.listed(f"id={added['id']}")
    assert (listed["questions"], listed["important_keywords"], listed["tag_kwd"]) == (
        ["What melts?"], ["climate"], ["ice"],
    )  # fmt: skip
    best = place.found("climate")[0]
    assert (best["id"], best["important_keywords"], best["tag_kwd"]) == (added["id"], ["climate"], ["ice"])
    raw = place.world.ok("GET", f"{place.path}/{added['id']}")
    assert (raw["id"], raw["content_with_weight"], raw["doc_id"], raw["kb_id"], raw["available_int"]) == (
        added["id"], "Glaciers are melting.", place.document_id, place.dataset_id, 1,
    )  # fmt: skip
    assert (raw["important_kwd"], raw["question_kwd"], raw["tag_feas"]) == (["climate"], ["What melts?"], {"ice": 2.5})
    assert not any("vec" in key for key in raw)


def test_the_same_text_added_again_is_one_chunk(place: Place) -> None:
    first, second = place.add("Twice."), place.add("Twice.", important_keywords=["again"])
    assert first["id"] == second["id"]
    assert place.counts() == (4, 4)
    assert place.listed(f"id={first['id']}")[0]["important_keywords"] == ["again"]


def test_a_chunk_can_be_added_to_a_document_that_was_never_parsed(world: RestWorld) -> None:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id)
    path = f"/datasets/{dataset_id}/documents/{document_id}/chunks"
    chunk = world.ok("POST", path, json={"content": "Only by hand."})["chunk"]
    shown = world.shown(dataset_id, document_id)
    assert (shown["run"], shown["chunk_count"], shown["progress"]) == ("UNSTART", 1, 0.0)
    world.catch_up()
    found = world.ok("POST", "/retrieval", json={"dataset_ids": [dataset_id], "question": "hand"})
    assert [one["id"] for one in found["chunks"]] == [chunk["id"]]
    world.ingest(dataset_id, document_id, ["Parsed text."])  # a parse replaces what was added
    assert [one["content"] for one in world.ok("GET", path)["chunks"]] == ["Parsed text."]
    assert world.shown(dataset_id, document_id)["chunk_count"] == 1


def test_a_document_without_a_file_holds_added_chunks(world: RestWorld) -> None:
    dataset_id = world.dataset()
    path = f"/datasets/{dataset_id}/documents"
    made = world.ok("POST", f"{path}?type=empty", json={"name": "by hand.txt"})
    assert (made["type"], made["size"], made["name"]) == ("virtual", 0, "by hand.txt")
    world.ok("POST", f"{path}/{made['id']}/chunks", json={"content": "A thought."})
    assert world.shown(dataset_id, made["id"])["chunk_count"] == 1
    code, message = world.refused("POST", f"{path}?type=empty", json={"name": "by hand.txt"})
    assert (code, message) == (102, "Duplicated document name in the same dataset.")
    assert world.refused("POST", f"{path}?type=empty", json={"name": " "}) == (101, "File name can't be empty.")


@pytest.mark.parametrize(
    ("fields", "code", "phrase"),
    [
        ({}, 102, "`content` is required"),
        ({"content": " \n"}, 102, "`content` is required"),
        ({"content": 7}, 100, "`content` should be a string"),
        ({"content": "a", "important_keywords": "b"}, 102, "is required to be a list"),
        ({"content": "a", "questions": {"b": 1}}, 102, "is required to be a list"),
        ({"content": "a", "questions": [1]}, 102, "must be a list of strings"),
        ({"content": "a", "tag_kwd": "b"}, 102, "is required to be a list"),
        ({"content": "a", "tag_feas": {"b": "c"}}, 102, "`tag_feas`"),
        ({"content": "a", "tag_feas": {"b": 10**400}}, 102, "`tag_feas`"),
        ({"content": "a", "image_base64": "not base64!"}, 102, "Invalid `image_base64`"),
        ({"content": "a", "image_base64": "aGk="}, 102, "`image_base64` is not available"),
    ],
)
def test_what_is_no_chunk_is_refused(place: Place, fields: dict[str, Any], code: int, phrase: str) -> None:
    got, message = place.world.refused("POST", place.path, json=fields)
    assert got == code and phrase in message
    assert place.texts() == list(TEXTS) and place.counts() == (3, 3)


def test_a_changed_chunk_is_found_by_its_new_words_only(place: Place) -> None:
    chunk_id = place.listed()[1]["id"]
    body = {"content": "Cheese is made of milk.", "important_keywords": ["dairy"], "questions": []}
    response = place.world.call("PUT", f"{place.path}/{chunk_id}", json=body)
    assert response.get_json() == {"code": 0}
    assert place.texts() == [TEXTS[0], "Cheese is made of milk.", TEXTS[2]]
    assert place.found("dairy")[0]["id"] == chunk_id
    assert chunk_id not in [c["id"] for c in place.found('"flour"')]
    assert place.counts() == (3, 3)
    tokens = [len(text.split()) for text in TEXTS]  # as the stand-in executor counts them
    assert Document.get_by_id(place.document_id).token_count != sum(tokens)


def test_what_is_not_sent_stays(place: Place) -> None:
    added = place.add("One.", important_keywords=["k"], questions=["q?"], tag_kwd=["t"])
    path = f"{place.path}/{added['id']}"
    place.world.ok("PATCH", path, json={"content": "Two."})
    (chunk,) = place.listed(f"id={added['id']}")
    assert (chunk["content"], chunk["important_keywords"], chunk["questions"], chunk["tag_kwd"]) == (
        "Two.", ["k"], ["q?"], ["t"],
    )  # fmt: skip
    place.world.ok("PUT", path, json={"positions": [[1, 2, 3, 4, 5]], "available": 0})
    (chunk,) = place.listed(f"id={added['id']}")
    assert (chunk["positions"], chunk["available"], chunk["content"]) == ([[1, 2, 3, 4, 5]], False, "Two.")
    assert place.found("Two") == [] or added["id"] not in [c["id"] for c in place.found("Two")]


@pytest.mark.parametrize(
    ("fields", "phrase"),
    [
        ({"content": " "}, "`content` is required"),
        ({"important_keywords": "a"}, "should be a list"),
        ({"questions": 1}, "should be a list"),
        ({"available": "perhaps"}, "`available` should be"),
        ({"positions": [[1, 2]]}, "`positions` should be"),
        ({"positions": "x"}, "`positions` should be"),
        ({"positions": [[0, 2, 3, 4, 5]]}, "page (from 1)"),
        ({"positions": [[-1, 2, 3, 4, 5]]}, "page (from 1)"),
        ({"positions": [[1, 2, 3, 4, 10**30]]}, "`positions` should be"),
    ],
)
def test_a_change_that_cannot_be_is_refused(place: Place, fields: dict[str, Any], phrase: str) -> None:
    before = place.listed()
    code, message = place.world.refused("PUT", f"{place.path}/{before[0]['id']}", json=fields)
    assert code == 102 and phrase in message
    assert place.listed() == before


def test_question_and_answer_stay_apart(world: RestWorld) -> None:
    dataset_id = world.dataset(chunk_method="qa")
    document_id = world.document(dataset_id)
    world.ingest(dataset_id, document_id, ["Question: a\tAnswer: b"])
    path = f"/datasets/{dataset_id}/documents/{document_id}/chunks"
    chunk_id = world.ok("GET", path)["chunks"][0]["id"]
    code, message = world.refused("PUT", f"{path}/{chunk_id}", json={"content": "no tab"})
    assert code == 102 and "Q&A must be separated by TAB/ENTER key" in message
    world.ok("PUT", f"{path}/{chunk_id}", json={"content": "Q\tA"})


def test_unknown_chunks_are_told(place: Place) -> None:
    code, message = place.world.refused("PUT", f"{place.path}/nope", json={"content": "a"})
    assert code == 102 and "Can't find this chunk" in message
    assert place.world.refused("GET", f"{place.path}/nope") == (102, "Chunk not found!")
    assert place.world.refused("PATCH", place.path, json={"chunk_ids": ["nope"], "available": True})[0] == 102


def test_switched_off_chunks_are_listed_and_not_found(place: Place) -> None:
    ids = [chunk["id"] for chunk in place.listed()]
    response = place.world.call("PATCH", place.path, json={"chunk_ids": ids[:2], "available_int": 0})
    assert response.get_json() == {"code": 0, "message": "success", "data": True}
    assert [chunk["available"] for chunk in place.listed()] == [False, False, True]
    assert [chunk["id"] for chunk in place.listed("available=true")] == ids[2:]
    assert [chunk["id"] for chunk in place.found("Danube bread moon")] == ids[2:]
    place.world.ok("PATCH", place.path, json={"chunk_ids": ids, "available": True})
    assert {chunk["id"] for chunk in place.found("Danube bread moon")} == set(ids)
    assert place.world.refused("PATCH", place.path, json={"available": True})[1] == "`chunk_ids` is required"
    missing = "`available_int` or `available` is required"
    assert place.world.refused("PATCH", place.path, json={"chunk_ids": ids})[1] == missing


def test_deleted_chunks_are_gone_at_once_and_counted_once(place: Place) -> None:
    first, second, third = (chunk["id"] for chunk in place.listed())
    answer = place.world.call("DELETE", place.path, json={"chunk_ids": [first]}).get_json()
    assert answer == {"code": 0}
    assert place.texts() == list(TEXTS[1:]) and place.counts() == (2, 2)
    assert first not in [chunk["id"] for chunk in place.found("Danube Vienna")]
    code, message = place.world.refused("DELETE", place.path, json={"chunk_ids": [first, second, "nope"]})
    assert (code, message) == (102, "rm_chunk deleted chunks 1, expect 3")
    assert place.counts() == (1, 1)
    answer = place.world.call("DELETE", place.path, json={"chunk_ids": [third, third]}).get_json()
    assert answer["data"] == {"success_count": 1, "errors": [f"Duplicate chunk ids: {third}"]}
    assert place.texts() == [] and place.counts() == (0, 0)


def test_deleted_chunks_are_swept_and_hide_nothing_else(place: Place) -> None:
    first = place.listed()[0]["id"]
    place.world.ok("DELETE", place.path, json={"chunk_ids": [first]})
    (line,) = [line for line in StaleService(place.world.rows).due(10) if line.scope.claim is not None]
    assert place.world.index.count(line.scope) == 1
    place.world.index.delete(line.scope)
    whole = Scope(place.world.caller.tenant_id, place.dataset_id, place.document_id)
    assert place.world.index.count(whole) == 2
    assert place.texts() == list(TEXTS[1:])


@pytest.mark.parametrize("body", [{}, {"chunk_ids": None}, {"chunk_ids": []}, {"chunk_ids": [], "delete_all": False}])
def test_no_ids_delete_nothing(place: Place, body: dict[str, Any]) -> None:
    assert place.world.call("DELETE", place.path, json=body).get_json() == {"code": 0}
    assert place.texts() == list(TEXTS) and place.counts() == (3, 3)


def test_delete_all_leaves_a_document_that_can_be_filled_again(place: Place) -> None:
    assert place.world.call("DELETE", place.path, json={"delete_all": True}).get_json() == {"code": 0}
    assert place.texts() == [] and place.counts() == (0, 0) and place.found("Danube") == []
    place.add("New.")
    assert place.texts() == ["New."] and place.counts() == (1, 1)


def test_a_deleted_text_can_be_added_again(place: Place) -> None:
    added = place.add("Back and forth.")
    place.world.ok("DELETE", place.path, json={"chunk_ids": [added["id"]]})
    assert place.counts() == (3, 3)
    assert place.add("Back and forth.")["id"] == added["id"]
    assert place.counts() == (4, 4)
    assert added["id"] in [chunk["id"] for chunk in place.listed()]


def test_chunks_of_a_running_document_are_left_alone(place: Place) -> None:
    chunk_id = place.listed()[0]["id"]
    place.world.ok("POST", f"/datasets/{place.dataset_id}/chunks", json={"document_ids": [place.document_id]})
    for method, path, body in (
        ("POST", place.path, {"content": "a"}),
        ("PUT", f"{place.path}/{chunk_id}", {"content": "a"}),
        ("PATCH", place.path, {"chunk_ids": [chunk_id], "available": False}),
        ("DELETE", place.path, {"chunk_ids": [chunk_id]}),
        ("DELETE", place.path, {"delete_all": True}),
    ):
        code, message = place.world.refused(method, path, json=body)
        assert code == 102 and "being parsed" in message, (method, path)
    assert place.texts() == list(TEXTS)


def test_an_edited_range_is_no_source_for_reuse(place: Place) -> None:
    before = place.world.rows.rows("SELECT COUNT(*) FROM range_result")[0][0]
    place.world.ok("PUT", f"{place.path}/{place.listed()[0]['id']}", json={"content": "Edited."})
    assert place.world.rows.rows("SELECT COUNT(*) FROM range_result")[0][0] == before - 1


def test_an_audit_finds_nothing_wrong_with_edits(place: Place) -> None:
    ids = [chunk["id"] for chunk in place.listed()]
    added = [place.add(f"Added {n}.") for n in range(3)]
    place.world.ok("PUT", f"{place.path}/{ids[0]}", json={"content": "Edited."})
    place.world.ok("PATCH", place.path, json={"chunk_ids": [ids[0], added[0]["id"]], "available": 0})
    place.world.ok("DELETE", place.path, json={"chunk_ids": [ids[1], added[1]["id"]]})
    audit = AuditService(place.world.rows, place.world.index)
    assert audit.run().findings == []
    place.world.ok("DELETE", place.path, json={"delete_all": True})
    assert audit.run().findings == []


def test_an_edit_that_comes_after_the_delete_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The delete is whole before the edit tells the rows of itself."""
    chunk_id = place.listed()[0]["id"]
    document = place.world.services.documents.get(place.world.caller.tenant_id, place.document_id)
    edits = place.world.services.chunk_edits
    embed = edits._embedder.embed

    def delete_first(texts: Any) -> Any:
        edits.delete(document, [chunk_id])
        return embed(texts)

    monkeypatch.setattr(edits._embedder, "embed", delete_first)
    model = place.world.services.datasets.embedding_model
    with pytest.raises(NotFound, match="Can't find this chunk"):
        edits.update(document, model, chunk_id, ChunkChange(content="Too late.", keywords=("k",)))
    assert place.texts() == list(TEXTS[1:]) and place.counts() == (2, 2)
    assert place.world.services.chunk_notes.of(document.tenant_id, [chunk_id])[chunk_id].keywords == ()


def test_who_edits_what_another_deletes_loses(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The delete comes between the edit's look at the rows and its write to the index."""
    chunk_id = place.listed()[0]["id"]
    document = place.world.services.documents.get(place.world.caller.tenant_id, place.document_id)
    edits = place.world.services.chunk_edits
    upsert = place.world.index.upsert

    def delete_first(*args: Any) -> int:
        monkeypatch.setattr(place.world.index, "upsert", upsert)
        edits.delete(document, [chunk_id])
        return upsert(*args)

    monkeypatch.setattr(place.world.index, "upsert", delete_first)
    model = place.world.services.datasets.embedding_model
    with pytest.raises(NotFound, match="deleted meanwhile"):
        edits.update(document, model, chunk_id, ChunkChange(content="Too late."))
    assert place.texts() == list(TEXTS[1:]) and place.counts() == (2, 2)


def test_an_index_that_is_away_is_an_outage_and_a_retry_helps(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> int:
        raise IndexUnavailable("the index is away")

    chunk_id = place.listed()[0]["id"]
    with monkeypatch.context() as patched:
        patched.setattr(place.world.index, "upsert", away)
        for method, path, body in (
            ("POST", place.path, {"content": "a"}),
            ("DELETE", place.path, {"chunk_ids": [chunk_id]}),
        ):
            response = place.world.call(method, path, json=body)
            assert (response.status_code, response.get_json()["code"]) == (503, 105)
    place.world.ok("DELETE", place.path, json={"chunk_ids": [chunk_id]})
    place.add("a")
    assert len(place.texts()) == 3 and place.counts() == (3, 3)


def test_notes_go_with_their_document(place: Place) -> None:
    place.add("Noted.", important_keywords=["k"])
    other = Place(place.world)
    other.add("Noted too.", important_keywords=["k"])
    place.world.ok("DELETE", f"/datasets/{place.dataset_id}/documents", json={"ids": [place.document_id]})
    place.world.ok("DELETE", "/datasets", json={"ids": [other.dataset_id]})
    assert place.world.rows.rows("SELECT COUNT(*) FROM chunk_note") == [(0,)]
