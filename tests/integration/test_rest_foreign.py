"""Others' keys on every route of the API: a stranger's, a member's of the team on a dataset that is not shared, and a
member's on one that is. What is not theirs is not there, and nothing of it is changed or told.

The routes are walked: one that is new and takes an id that is not known here fails the test."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from werkzeug.routing import Rule
from werkzeug.test import TestResponse

from api.apps.openapi.document import api_routes
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
# What only the owner of a dataset may do, though it is shared with the team.
OWNERS_ONLY = {
    ("PUT", "/api/v1/datasets/<dataset_id>"),
    ("PUT", "/api/v1/datasets/<dataset_id>/documents/<document_id>"),
    ("PATCH", "/api/v1/datasets/<dataset_id>/documents/<document_id>"),
    ("POST", "/api/v1/datasets/<dataset_id>/documents/batch-update-status"),
    ("POST", "/api/v1/datasets/<dataset_id>/metadata/update"),
    ("PATCH", "/api/v1/datasets/<dataset_id>/documents/metadatas"),
    ("PUT", "/api/v1/datasets/<dataset_id>/metadata/config"),
    ("PUT", "/api/v1/datasets/<dataset_id>/auto_metadata"),
    ("PUT", "/api/v1/datasets/<dataset_id>/tags"),
    ("DELETE", "/api/v1/datasets/<dataset_id>/tags"),
}
LEAVING = ("DELETE", "/api/v1/team/memberships/<tenant_id>")
# Ids of things that a team does not share: a tenant's own, whoever is a member.
TENANTS_OWN = (
    "<webhook_id>",
    "<delivery_id>",
    "<user_id>",
    "<tenant_id>",
    "<path:token>",
    "<file_id>",
    "<group>",
    "name>",
)
PHRASES = (
    "don't own", "does not own", "doesn't own", "lacks permission", "no authorization", "can't find", "not found",
    "only owner of", "do not belong", "invalid uuid",
)  # fmt: skip
# Routes with a strict schema take only what it names.
STRICT_BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/api/v1/datasets"): {"name": "new"},
    ("PUT", "/api/v1/datasets/<dataset_id>"): {"permission": "team"},
    ("PUT", "/api/v1/datasets/<dataset_id>/metadata/config"): {"metadata": []},
    ("PUT", "/api/v1/datasets/<dataset_id>/auto_metadata"): {"metadata": []},
    ("DELETE", "/api/v1/datasets/<dataset_id>/documents"): {"delete_all": True},
    ("DELETE", "/api/v1/datasets"): {"delete_all": True},
    ("POST", "/api/v1/webhooks"): {"url": "https://example.com/x"},
    ("POST", "/api/v1/team/members"): {"email": "nobody@example.com"},
}


@dataclass
class Owned:
    """What one tenant has, and the keys of others: a stranger's, and a member's of its team."""

    world: RestWorld
    stranger: str
    member: str
    ids: dict[str, str] = field(default_factory=dict)

    def stand(self, permission: str = "me") -> None:
        """A dataset with a document, chunks and notes; a new one at every call."""
        world = self.world
        dataset_id = world.dataset(f"{SECRET} set", permission=permission)
        document_id = world.document(dataset_id, f"{SECRET}.txt", SECRET.encode())
        world.ingest(dataset_id, document_id, [f"About {SECRET}."])
        path = f"/datasets/{dataset_id}/documents/{document_id}"
        world.ok("PUT", path, json={"meta_fields": {"place": SECRET}})
        chunk = world.ok("POST", f"{path}/chunks", json={"content": f"More of {SECRET}.", "tag_kwd": [SECRET]})["chunk"]
        world.catch_up()
        tasks = world.rows.rows("SELECT id FROM task WHERE doc_id = ? ORDER BY id LIMIT 1", (document_id,))
        self.ids |= {
            "dataset_id": dataset_id,
            "document_id": document_id,
            "job_id": document_id,
            "log_id": document_id,
            "file_id": document_id,
            "chunk_id": chunk["id"],
            "task_id": tasks[0][0],
            "delivery_id": "0" * 32,
            "user_id": world.caller.user_id,
            "tenant_id": world.caller.tenant_id,
            "path:token": world.key,
            "int:page": "1",
            "path:name": "executor-1",
            "group": "0" * 16,
        }

    def state(self) -> str:
        """All that the owner can see, and what stands in the rows."""
        shown = [
            self.world.ok("GET", path)
            for path in (
                "/datasets",
                f"/datasets/{self.ids['dataset_id']}/documents",
                f"/datasets/{self.ids['dataset_id']}/documents/{self.ids['document_id']}/chunks",
                "/system/tokens",
            )
        ]
        shown[-1] = [token["token"] for token in shown[-1]]
        own = f"tenant_id = '{self.world.caller.tenant_id}'"
        tables = ("task", "chunk_note", "stale_chunks", "range_result", "knowledgebase", "webhook", "team_member")
        rows = [self.world.rows.rows(f"SELECT * FROM {table} WHERE {own}") for table in tables]
        return json.dumps(shown, default=str) + str(rows)

    def path(self, rule: Rule) -> str:
        path = rule.rule
        for mark, value in self.ids.items():
            path = path.replace(f"<{mark}>", value)
        assert "<" not in path, f"say what stands for the id in {rule.rule}"
        return path

    def body(self) -> dict[str, Any]:
        """Enough for every route to come to the point where it must refuse."""
        ids = self.ids
        return {
            "question": "About what?", "name": "new.txt", "content": "new", "chunk_ids": [ids["chunk_id"]],
            "available": 0,
            "document_ids": [ids["document_id"]], "doc_ids": [ids["document_id"]], "status": 0, "action": "stop",
            "updates": [{"key": "a", "value": "b"}], "selector": {"document_ids": [ids["document_id"]]},
            "dataset_ids": [ids["dataset_id"]], "run": "1", "task_ids": [ids["task_id"]], "nickname": "Eve",
        }  # fmt: skip

    def ask(self, key: str, method: str, rule: Rule) -> TestResponse:
        query = {"type": "graph"} if rule.rule.endswith("/index") else {}
        sent: dict[str, Any] = {} if method == "GET" else {"json": STRICT_BODIES.get((method, rule.rule), self.body())}
        if (method, rule.rule) == ("POST", "/api/v1/jobs"):
            data = {"file": (io.BytesIO(b"x"), "a.txt"), "dataset_id": self.ids["dataset_id"]}
            sent = {"data": data, "content_type": "multipart/form-data"}
        headers = {"Authorization": key}
        return self.world.client.open(self.path(rule), method=method, headers=headers, query_string=query, **sent)


@pytest.fixture
def owned(tmp_path: Path) -> Iterator[Owned]:
    with rest_world(tmp_path) as world:
        eve, mia = new_caller(world.rows, "Eve"), new_caller(world.rows, "mia")
        keys = [world.services.accounts.create_token(who, who.user_id[:8]) for who in (eve, mia)]
        added = world.call("POST", "/team/members", json={"email": " Mia "})
        assert added.status_code == 201, added.get_json()
        made = Owned(world, *keys)
        webhook = world.call("POST", "/webhooks", json={"url": f"https://{SECRET}.example.com/"}).get_json()
        made.ids["webhook_id"] = webhook["webhook_id"]
        made.stand()
        yield made


def routes(world: RestWorld) -> list[tuple[str, Rule]]:
    return list(api_routes(world.client.application))


def is_not_there(world: RestWorld, rule: Rule, answer: TestResponse) -> bool:
    if not speaks_ragflow(world, rule):
        return answer.status_code in (403, 404, 405, 426)
    told = answer.get_json(silent=True)
    if answer.status_code != 200 or not isinstance(told, dict) or told.get("code") not in (101, 102, 109):
        return False
    return any(phrase in told["message"].lower() for phrase in PHRASES)


@pytest.mark.parametrize("who", ["stranger", "member"])
def test_what_is_not_shared_is_not_there_on_any_route(owned: Owned, who: str) -> None:
    """The dataset's permission is `me`: a member of the team is a stranger to it."""
    world, key = owned.world, getattr(owned, who)
    before, asked, with_ids = owned.state(), 0, 0
    for method, rule in routes(world):
        if who == "member" and (method, rule.rule) == LEAVING:
            continue
        with owned.ask(key, method, rule) as got:
            text = got.get_data(as_text=True)
            assert SECRET not in text.lower(), (method, rule.rule, text)
            if rule.arguments and (method, rule.rule) not in SAME_FOR_ALL:
                assert is_not_there(world, rule, got), (method, rule.rule, got.status_code, text)
                with_ids += 1
        asked += 1
    assert asked > 140 and with_ids > 70
    assert owned.state() == before


def test_a_member_uses_what_is_shared_and_only_so_far(owned: Owned) -> None:
    world, used = owned.world, 0
    for method, rule in routes(world):
        if not rule.arguments or any(mark in rule.rule for mark in TENANTS_OWN) or (method, rule.rule) in SAME_FOR_ALL:
            continue
        owned.stand("team")
        before = owned.state()
        with owned.ask(owned.member, method, rule) as got:
            text = got.get_data(as_text=True)
            if (method, rule.rule) in OWNERS_ONLY:
                assert is_not_there(world, rule, got), (method, rule.rule, text)
                assert owned.state() == before, (method, rule.rule)
            elif got.status_code not in (405, 426):
                assert not is_not_there(world, rule, got), (method, rule.rule, text)
                used += 1
    assert used > 50


def test_ids_in_bodies_and_queries_are_no_way_around(owned: Owned) -> None:
    """The stranger's own dataset in the path, the other's things in the body."""
    world, key, ids = owned.world, owned.stranger, owned.ids
    own = world.ok("POST", "/datasets", json={"name": "own"}, key=key)["id"]
    before = owned.state()
    foreign = {"document_ids": [ids["document_id"]]}
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", f"/datasets?id={ids['dataset_id']}", {}),
        ("GET", f"/datasets?ids={ids['dataset_id']}", {}),
        ("GET", f"/datasets?name={SECRET} set", {}),
        ("GET", f"/datasets/{own}/documents?id={ids['document_id']}", {}),
        ("GET", f"/datasets/{own}/metadata/summary?doc_ids={ids['document_id']}", {}),
        ("GET", f"/datasets/metadata/flattened?dataset_ids={own},{ids['dataset_id']}", {}),
        ("GET", f"/datasets/tags/aggregation?dataset_ids={ids['dataset_id']}", {}),
        ("DELETE", "/datasets", {"ids": [ids["dataset_id"]]}),
        ("DELETE", f"/datasets/{own}/documents", {"ids": [ids["document_id"]]}),
        ("POST", f"/datasets/{own}/chunks", foreign),
        ("DELETE", f"/datasets/{own}/chunks", foreign),
        ("POST", f"/datasets/{own}/documents/parse", foreign),
        ("POST", f"/datasets/{own}/documents/stop", foreign),
        ("POST", f"/datasets/{own}/documents/pause", foreign),
        ("POST", f"/datasets/{own}/documents/batch-update-status", {"doc_ids": [ids["document_id"]], "status": 0}),
        ("POST", f"/datasets/{own}/metadata/update", {"selector": foreign, "deletes": [{"key": "place"}]}),
        ("POST", "/documents/ingest", {"doc_ids": [ids["document_id"]], "run": 1}),
        ("POST", "/retrieval", {"dataset_ids": [own, ids["dataset_id"]], "question": SECRET}),
        ("POST", "/retrieval", {"dataset_ids": [own], "question": SECRET} | foreign),
        ("POST", "/datasets/search", {"dataset_ids": [ids["dataset_id"]], "question": SECRET}),
        ("POST", f"/datasets/{own}/search", {"doc_ids": [ids["document_id"]], "question": SECRET}),
    ]
    for method, path, body in calls:
        sent = {} if method == "GET" else {"json": body}
        response = world.call(method, path, key=key, **sent)
        answer = response.get_json()
        assert answer["code"] in (102, 109), (method, path, answer)
        assert any(phrase in answer["message"].lower() for phrase in PHRASES), (method, path, answer)
        assert SECRET not in response.get_data(as_text=True).lower() or SECRET in path
    assert owned.state() == before
    assert world.ok("GET", f"/thumbnails?doc_ids={ids['document_id']}", key=key) == {}
    assert world.ok("POST", "/tasks/replay", key=key, json=foreign) == {"success_count": 0, "refused_count": 0}
    assert world.call("GET", f"/jobs?dataset_id={ids['dataset_id']}", key=key).get_json()["total"] == 0


def test_a_stranger_stops_no_task_and_ends_no_key(owned: Owned) -> None:
    world, dataset_id, document_id = owned.world, owned.ids["dataset_id"], owned.ids["document_id"]
    world.ok("POST", f"/datasets/{dataset_id}/chunks", json={"document_ids": [document_id]})
    (task_id,) = world.rows.rows("SELECT id FROM task ORDER BY generation DESC LIMIT 1")[0]
    for key in (owned.stranger, owned.member):
        assert world.ok("POST", f"/tasks/{task_id}/cancel", key=key) is True
        assert world.ok("PATCH", f"/tasks/{task_id}", key=key, json={"action": "stop"}) is True
        assert world.shown(dataset_id, document_id)["run"] == "RUNNING"
        assert world.ok("DELETE", f"/system/tokens/{world.key}", key=key) is True
        assert world.client.get(f"{API}/datasets", headers={"Authorization": world.key}).status_code == 200
