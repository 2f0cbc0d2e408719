"""What operators see and ask for over REST, and that nobody else does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.db.models import User
from api.db.services.executor_registry import ExecutorRegistry
from api.db.services.task_requests import Fail, FinishDocument
from rag.utils.redis_conn import Queue
from tests.rest_world import API, RestWorld, new_caller, rest_world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RestWorld]:
    """Without a queue."""
    with rest_world(tmp_path) as opened:
        _make_admin(opened)
        yield opened


def _make_admin(world: RestWorld) -> None:
    world.rows.write(User.update(is_superuser=1).where(User.id == world.caller.user_id).execute)


def _json(world: RestWorld, method: str, path: str, status: int = 200, **kwargs: Any) -> Any:
    answer = world.call(method, f"/admin{path}", **kwargs)
    assert answer.status_code == status, answer.get_data(as_text=True)
    return answer.get_json()


def _routes(world: RestWorld) -> list[tuple[str, str]]:
    rules = world.client.application.url_map.iter_rules()
    return [
        (method, rule.rule.replace("<path:name>", "e1").replace("<group>", "g").replace("<user_id>", "u"))
        for rule in rules
        if rule.rule.startswith(f"{API}/admin/")
        for method in sorted((rule.methods or set()) - {"OPTIONS", "HEAD"})
    ]


def test_every_route_is_for_administrators_only(world: RestWorld) -> None:
    member = world.services.accounts.create_token(new_caller(world.rows, "Mara"), "m")
    routes = _routes(world)
    assert len(routes) > 10
    for method, path in routes:
        refused = world.client.open(path, method=method, headers={"Authorization": f"Bearer {member}"})
        assert (refused.status_code, refused.get_json()["code"]) == (403, "forbidden"), path
        assert world.client.open(path, method=method).status_code == 401, path


def test_the_overview_tells_that_the_queue_is_away(world: RestWorld) -> None:
    ExecutorRegistry(world.rows).register("e1:a", "e1", {"slots": 6, "slots_used": 1, "current": []})
    found = _json(world, "GET", "/overview")
    assert [part["part"] for part in found["health"]] == ["database", "queue", "index", "store"]
    assert all(part["ok"] and part["latency_ms"] >= 0 for part in found["health"])
    assert found["executors"]["heartbeat_error"]
    (executor,) = found["executors"]["running"]
    assert (executor["name"], executor["life"], executor["slots"]) == ("e1", "unknown", 6)
    assert found["queue"]["error"] and found["queue"]["priorities"][0]["stream"] is None


def test_the_overview_with_heartbeats_and_streams(tmp_path: Path, queue: Queue) -> None:
    with rest_world(tmp_path, queue=queue) as world:
        _make_admin(world)
        dataset_id = world.dataset()
        document_id = world.document(dataset_id, "mill.txt")
        world.ok("POST", f"/datasets/{dataset_id}/chunks", json={"document_ids": [document_id]})
        current = {"id": "t", "document_id": document_id, "task_type": "range", "stage": "parsing", "age_s": 2.5}
        ExecutorRegistry(world.rows).register("e1:a", "e1", {})
        queue.beat("e1", {"owner": "e1:a", "now": queue.now_s(), "slots": 6, "slots_used": 1, "current": [current]})
        ExecutorRegistry(world.rows).register("e2:a", "e2", {})
        queue.beat("e2", {"owner": "e2:a", "now": queue.now_s() - 30, "slots": 6, "slots_used": 0, "current": []})
        queue.publish([(1, "t1"), (1, "t2")])
        queue.read("e1:a", 1)
        found = _json(world, "GET", "/overview")
        alive, silent = found["executors"]["running"]
        assert (alive["life"], silent["life"], silent["age_s"] >= 30) == ("alive", "silent", True)
        (task,) = alive["current"]
        assert (task["document_name"], task["dataset_id"]) == ("mill.txt", dataset_id)
        assert task["tenant_id"] == world.caller.tenant_id
        normal = next(line for line in found["queue"]["priorities"] if line["name"] == "normal")
        assert (normal["waiting"], normal["published"]) == (1, 0)
        assert (normal["stream"]["length"], normal["stream"]["lag"], normal["stream"]["pending"]) == (2, 1, 1)
        (tenant,) = found["queue"]["tenants"]
        assert (tenant["name"], tenant["waiting"]) == ("Ursula", 1)


def test_drain_resume_and_restart(world: RestWorld) -> None:
    assert _json(world, "POST", "/executors/e1/drain", 404)["code"] == "not_found"
    ExecutorRegistry(world.rows).register("e1:a", "e1", {})
    assert _json(world, "POST", "/executors/e1/drain") == {"name": "e1", "wanted": "drain"}
    (executor,) = _json(world, "GET", "/overview")["executors"]["running"]
    assert (executor["order"]["wanted"], executor["order"]["by"]) == ("drain", "Ursula")
    assert _json(world, "POST", "/executors/e1/resume") == {"name": "e1", "wanted": ""}
    assert _json(world, "POST", "/executors/e1/resume", 400)["code"] == "invalid_input"
    assert _json(world, "POST", "/executors/e1/restart") == {"name": "e1", "wanted": "restart"}


def test_history_is_by_the_minute(world: RestWorld) -> None:
    dataset_id = world.dataset()
    world.ingest(dataset_id, world.document(dataset_id), ["a heron"])
    for span, minutes in (("30m", 30), ("24h", 1440)):
        found = _json(world, "GET", f"/history?span={span}")
        assert len(found["minutes"]) == len(found["done"]) == minutes
        assert sum(found["done"]) > 0 and sum(found["chunks"]) == 1
    assert _json(world, "GET", "/history?span=1y", 422)["errors"][0]["field"] == "span"


def _failed_documents(world: RestWorld, messages: list[str]) -> list[str]:
    dataset_id = world.dataset()
    made = []
    for number, message in enumerate(messages):
        document_id = world.document(dataset_id, f"{number}.txt")
        world.ok("POST", f"/datasets/{dataset_id}/chunks", json={"document_ids": [document_id]})
        (task,) = world.claim(document_id)
        world.tasks.apply([Fail(task.held, "parser_error", message)])
        (finish,) = world.claim(document_id)
        world.tasks.apply([FinishDocument(finish.held, 0)])
        made.append(document_id)
    return made


def test_failed_tasks_are_grouped_by_cause_and_replayed_or_discarded(world: RestWorld) -> None:
    messages = ["0.txt lost 5 times on pages 1-12", "1.txt lost 3 times on pages 13-24", "not a PDF"]
    documents = _failed_documents(world, messages)
    groups = {group["message"]: group for group in _json(world, "GET", "/failed")}
    assert {message: group["count"] for message, group in groups.items()} == {
        "the file lost … times on pages …-…": 2,
        "not a PDF": 1,
    }
    lost, other = groups["the file lost … times on pages …-…"], groups["not a PDF"]
    assert {example["document_name"] for example in lost["examples"]} == {"0.txt", "1.txt"}
    assert (lost["current"], lost["documents"]) == (2, 2)
    # A newer parse of one of them: its failed task is of an older generation now.
    world.rows.execute("UPDATE document SET generation = generation + 1 WHERE id = ?", (documents[0],))
    assert _json(world, "POST", f"/failed/{lost['id']}/replay") == {"done": 1, "refused": 1, "next": None}
    assert _json(world, "POST", f"/failed/{other['id']}/discard") == {"done": 1, "refused": 0, "next": None}
    assert [group["count"] for group in _json(world, "GET", "/failed")] == [1]
    assert _json(world, "POST", f"/failed/{other['id']}/discard", 404)["code"] == "not_found"


def test_a_large_group_is_gone_through_in_parts(world: RestWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.apps.admin_failed._AT_ONCE", 2)
    _failed_documents(world, ["no"] * 3)
    (group,) = _json(world, "GET", "/failed")
    first = _json(world, "POST", f"/failed/{group['id']}/replay")
    assert first["done"] == 2
    assert _json(world, "POST", f"/failed/{group['id']}/replay", json={"after": first["next"]})["done"] == 1


def test_users_are_made_shut_out_and_let_in_again(world: RestWorld) -> None:
    made = _json(world, "POST", "/users", 201, json={"email": "Nora@example.org"})
    assert (made["email"], made["nickname"], made["is_superuser"]) == ("nora@example.org", "Nora", False)
    caller = world.services.accounts.sign_in("nora@example.org", made["password"])
    key = world.services.accounts.create_token(caller, "k")
    session = world.services.sessions.begin(caller)
    assert world.call("GET", "/datasets", key=key).status_code == 200
    _json(world, "PATCH", f"/users/{made['id']}", json={"is_active": False})
    assert world.call("GET", "/datasets", key=key).status_code == 401
    assert world.call("GET", "/datasets", key=session).status_code == 401
    _json(world, "PATCH", f"/users/{made['id']}", json={"is_active": True, "is_superuser": True})
    assert world.call("GET", "/admin/users", key=key).status_code == 200
    assert _json(world, "POST", "/users", 409, json={"email": "nora@example.org"})["code"] == "conflict"


def test_a_new_password_signs_out_and_is_told_once(world: RestWorld) -> None:
    made = _json(world, "POST", "/users", 201, json={"email": "nora@example.org", "password": "old secret"})
    assert "password" not in made
    caller = world.services.accounts.sign_in("nora@example.org", "old secret")
    session = world.services.sessions.begin(caller)
    new = _json(world, "POST", f"/users/{made['id']}/password")["password"]
    assert world.call("GET", "/datasets", key=session).status_code == 401
    assert world.services.accounts.sign_in("nora@example.org", new).user_id == made["id"]
    assert _json(world, "POST", "/users/nobody/password", 404)["code"] == "not_found"


@pytest.mark.parametrize("body", [{"is_active": False}, {"is_superuser": False}])
def test_nobody_shuts_out_themselves_or_the_last_administrator(world: RestWorld, body: dict[str, bool]) -> None:
    mine = world.caller.user_id
    assert _json(world, "PATCH", f"/users/{mine}", 400, json=body)["code"] == "invalid_input"
    other = _json(world, "POST", "/users", 201, json={"email": "b@example.org", "is_superuser": True})
    _json(world, "PATCH", f"/users/{other['id']}", json=body)
    assert [user["is_superuser"] and user["is_active"] for user in _json(world, "GET", "/users")] == [True, False]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"email": "no address"}, "email"),
        ({"email": "a@example.org", "password": "short"}, "password"),
        ({"email": "a@example.org", "is_superuser": "yes"}, "is_superuser"),
        ({}, "email"),
    ],
)
def test_what_is_wrong_with_a_new_user_is_named(world: RestWorld, body: dict[str, Any], field: str) -> None:
    assert _json(world, "POST", "/users", 422, json=body)["errors"][0]["field"] == field
