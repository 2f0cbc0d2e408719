"""Another tenant's key on every route that takes an id: refused as not theirs, and nothing is changed or told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from werkzeug.routing import Rule

from tests.rest_world import API, RestWorld, new_caller, rest_world, speaks_ragflow

# A secret that no answer to a stranger may hold.
SECRET = "zanzibar"
# Routes that answer everybody the same: nothing stands behind their id, or an unknown one is no error.
SAME_FOR_ALL = {
    ("GET", "/api/v1/files/<file_id>"),
    ("GET", "/api/v1/file/get/<file_id>"),
    ("DELETE", "/api/v1/system/tokens/<path:token>"),
    ("DELETE", "/v1/system/token/<path:token>"),
    ("POST", "/api/v1/tasks/<task_id>/cancel"),
    ("PATCH", "/api/v1/tasks/<task_id>"),
}
PHRASES = (
    "don't own", "does not own", "doesn't own", "lacks permission", "no authorization", "can't find", "not found",
    "only owner of", "do not belong", "invalid uuid",
)  # fmt: skip


@dataclass
class Owned:
    """What one tenant has, and the key of another."""

    world: RestWorld
    dataset_id: str
    document_id: str
    chunk_id: str
    task_id: str
    stranger: str

    def state(self) -> str:
        """All that the owner can see, and what stands in the rows."""
        shown = [
            self.world.ok("GET", path)
            for path in (
                "/datasets",
                f"/datasets/{self.dataset_id}/documents",
                f"/datasets/{self.dataset_id}/documents/{self.document_id}/chunks",
                "/system/tokens",
            )
        ]
        shown[-1] = [token["token"] for token in shown[-1]]
        tables = ("task", "chunk_note", "stale_chunks", "range_result", "knowledgebase")
        return json.dumps(shown, default=str) + str([self.world.rows.rows(f"SELECT * FROM {t}") for t in tables])

    def path(self, rule: Rule) -> str:
        ids = {
            "<dataset_id>": self.dataset_id,
            "<document_id>": self.document_id,
            "<chunk_id>": self.chunk_id,
            "<task_id>": self.task_id,
            "<log_id>": self.document_id,
            "<file_id>": self.document_id,
            "<path:token>": self.world.key,
            "<int:page>": "1",
        }
        path = rule.rule
        for mark, value in ids.items():
            path = path.replace(mark, value)
        assert "<" not in path, f"say what stands for the id in {rule.rule}"
        return path

    def body(self) -> dict[str, Any]:
        """Enough for every route to come to the point where it must refuse."""
        return {
            "question": SECRET, "name": "new.txt", "content": "new", "chunk_ids": [self.chunk_id], "available": 0,
            "document_ids": [self.document_id], "doc_ids": [self.document_id], "status": 0, "action": "stop",
            "updates": [{"key": "a", "value": "b"}], "selector": {"document_ids": [self.document_id]},
        }  # fmt: skip


# Routes with a strict schema take only what it names.
STRICT_BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("PUT", "/api/v1/datasets/<dataset_id>"): {"name": "new"},
    ("PUT", "/api/v1/datasets/<dataset_id>/metadata/config"): {"metadata": []},
    ("PUT", "/api/v1/datasets/<dataset_id>/auto_metadata"): {"metadata": []},
    ("DELETE", "/api/v1/datasets/<dataset_id>/documents"): {"delete_all": True},
}


@pytest.fixture
def owned(tmp_path: Path) -> Iterator[Owned]:
    with rest_world(tmp_path) as world:
        dataset_id = world.dataset(f"{SECRET} set")
        document_id = world.document(dataset_id, f"{SECRET}.txt", SECRET.encode())
        world.ingest(dataset_id, document_id, [f"About {SECRET}."])
        path = f"/datasets/{dataset_id}/documents/{document_id}"
        world.ok("PUT", path, json={"meta_fields": {"place": SECRET}})
        chunk = world.ok("POST", f"{path}/chunks", json={"content": f"More of {SECRET}.", "tag_kwd": [SECRET]})["chunk"]
        world.catch_up()
        task_id = world.rows.rows("SELECT id FROM task ORDER BY id LIMIT 1")[0][0]
        stranger = world.services.accounts.create_token(new_caller(world.rows, "Eve"), "eve")
        yield Owned(world, dataset_id, document_id, chunk["id"], task_id, stranger)


def routes(world: RestWorld) -> list[tuple[str, Rule]]:
    return [
        (method, rule)
        for rule in world.client.application.url_map.iter_rules()
        if rule.arguments and rule.rule.startswith(("/api/", "/v1/")) and speaks_ragflow(world, rule)
        for method in sorted((rule.methods or set()) - {"OPTIONS", "HEAD"})
    ]


def test_every_route_with_an_id_refuses_a_stranger(owned: Owned) -> None:
    before, asked = owned.state(), 0
    for method, rule in routes(owned.world):
        body = STRICT_BODIES.get((method, rule.rule), owned.body())
        query = {"type": "graph"} if rule.rule.endswith("/index") else {}
        headers = {"Authorization": owned.stranger}
        sent = {} if method == "GET" else {"json": body}
        with owned.world.client.open(
            owned.path(rule), method=method, headers=headers, query_string=query, **sent
        ) as got:
            answer, text = got.get_json(), got.get_data(as_text=True)
        assert SECRET not in text.lower(), (method, rule.rule, text)
        assert got.status_code == 200, (method, rule.rule, text)
        if (method, rule.rule) not in SAME_FOR_ALL:
            assert answer["code"] in (101, 102, 109), (method, rule.rule, answer)
            assert any(phrase in answer["message"].lower() for phrase in PHRASES), (method, rule.rule, answer)
        asked += 1
    assert asked > 50
    assert owned.state() == before


def test_ids_in_bodies_and_queries_are_no_way_around(owned: Owned) -> None:
    """The stranger's own dataset in the path, the other's things in the body."""
    world, key = owned.world, owned.stranger
    own = world.ok("POST", "/datasets", json={"name": "own"}, key=key)["id"]
    before = owned.state()
    foreign = {"document_ids": [owned.document_id]}
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", f"/datasets?id={owned.dataset_id}", {}),
        ("GET", f"/datasets?ids={owned.dataset_id}", {}),
        ("GET", f"/datasets/{own}/documents?id={owned.document_id}", {}),
        ("GET", f"/datasets/{own}/metadata/summary?doc_ids={owned.document_id}", {}),
        ("GET", f"/datasets/metadata/flattened?dataset_ids={own},{owned.dataset_id}", {}),
        ("GET", f"/datasets/tags/aggregation?dataset_ids={owned.dataset_id}", {}),
        ("DELETE", "/datasets", {"ids": [owned.dataset_id]}),
        ("DELETE", f"/datasets/{own}/documents", {"ids": [owned.document_id]}),
        ("POST", f"/datasets/{own}/chunks", foreign),
        ("DELETE", f"/datasets/{own}/chunks", foreign),
        ("POST", f"/datasets/{own}/documents/parse", foreign),
        ("POST", f"/datasets/{own}/documents/stop", foreign),
        ("POST", f"/datasets/{own}/documents/pause", foreign),
        ("POST", f"/datasets/{own}/documents/batch-update-status", {"doc_ids": [owned.document_id], "status": 0}),
        ("POST", f"/datasets/{own}/metadata/update", {"selector": foreign, "deletes": [{"key": "place"}]}),
        ("POST", "/documents/ingest", {"doc_ids": [owned.document_id], "run": 1}),
        ("POST", "/retrieval", {"dataset_ids": [own, owned.dataset_id], "question": SECRET}),
        ("POST", "/retrieval", {"dataset_ids": [own], "question": SECRET} | foreign),
        ("POST", "/datasets/search", {"dataset_ids": [owned.dataset_id], "question": SECRET}),
        ("POST", f"/datasets/{own}/search", {"doc_ids": [owned.document_id], "question": SECRET}),
    ]
    for method, path, body in calls:
        sent = {} if method == "GET" else {"json": body}
        response = world.call(method, path, key=key, **sent)
        answer = response.get_json()
        assert answer["code"] in (102, 109), (method, path, answer)
        assert any(phrase in answer["message"].lower() for phrase in PHRASES), (method, path, answer)
        assert SECRET not in response.get_data(as_text=True).lower()
    assert owned.state() == before
    assert world.ok("GET", f"/thumbnails?doc_ids={owned.document_id}", key=key) == {}
    assert world.ok("POST", "/tasks/replay", key=key, json=foreign) == {"success_count": 0, "refused_count": 0}


def test_a_stranger_stops_no_task_and_ends_no_key(owned: Owned) -> None:
    world = owned.world
    world.ok("POST", f"/datasets/{owned.dataset_id}/chunks", json={"document_ids": [owned.document_id]})
    (task_id,) = world.rows.rows("SELECT id FROM task ORDER BY generation DESC LIMIT 1")[0]
    assert world.ok("POST", f"/tasks/{task_id}/cancel", key=owned.stranger) is True
    assert world.ok("PATCH", f"/tasks/{task_id}", key=owned.stranger, json={"action": "stop"}) is True
    assert world.shown(owned.dataset_id, owned.document_id)["run"] == "RUNNING"
    assert world.ok("DELETE", f"/system/tokens/{world.key}", key=owned.stranger) is True
    assert world.client.get(f"{API}/datasets", headers={"Authorization": world.key}).status_code == 200
