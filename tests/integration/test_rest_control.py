"""Delete, pause and resume, dead letters, Idempotency-Key and admission over REST."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest

from api.apps import create_app
from api.db.models import Document
from api.db.services.parse_service import Doorbell, ParseService
from api.db.services.task_plan import ModelTraits
from api.db.services.task_requests import Fail
from common.settings import TaskSettings
from tests.at_once import at_once
from tests.rest_world import RestWorld


def search(world: RestWorld, dataset_id: str, question: str) -> list[Any]:
    return list(world.ok("POST", "/retrieval", json={"dataset_ids": [dataset_id], "question": question})["chunks"])


def test_a_deleted_document_is_gone_from_lists_and_searches(world: RestWorld) -> None:
    dataset_id = world.dataset()
    keep, gone = world.document(dataset_id, "keep.txt"), world.document(dataset_id, "gone.txt")
    for document_id in (keep, gone):
        world.ingest(dataset_id, document_id, ["a heron with a key in its beak"])
    assert len(search(world, dataset_id, "heron")) == 2
    assert world.ok("DELETE", f"/datasets/{dataset_id}/documents", json={"ids": [gone]}) == {"deleted": 1}
    assert [c["document_id"] for c in search(world, dataset_id, "heron")] == [keep]
    listed = world.ok("GET", f"/datasets/{dataset_id}/documents")
    assert (listed["total"], listed["docs"][0]["id"]) == (1, keep)
    assert world.ok("GET", f"/datasets/{dataset_id}")["chunk_count"] == 1
    assert world.document(dataset_id, "gone.txt") != gone  # its name is free again


@pytest.mark.parametrize("body", [{}, {"ids": None}, {"ids": []}])
def test_an_empty_list_deletes_nothing(world: RestWorld, body: dict[str, Any]) -> None:
    dataset_id = world.dataset()
    world.document(dataset_id)
    code, message = world.refused("DELETE", f"/datasets/{dataset_id}/documents", json=body)
    assert (code, "either provide doc ids or set delete_all" in message) == (102, True)
    assert world.ok("DELETE", "/datasets", json=body) == {"success_count": 0}
    assert world.ok("GET", f"/datasets/{dataset_id}/documents")["total"] == 1


def test_deletes_that_name_something_wrong_delete_nothing(world: RestWorld) -> None:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id)
    path = f"/datasets/{dataset_id}/documents"
    assert world.refused("DELETE", path, json={"ids": [document_id, "0" * 32]})[0] == 102
    assert world.refused("DELETE", path, json={"ids": [document_id] * 2})[0] == 101
    assert world.refused("DELETE", path, json={"ids": [document_id], "delete_all": True})[0] == 102
    assert world.refused("DELETE", "/datasets", json={"ids": [dataset_id, "0" * 32]})[0] == 102
    assert world.refused("DELETE", "/datasets", json={"ids": ["no id"]})[0] == 101
    assert world.ok("GET", path)["total"] == 1


def test_all_documents_and_whole_datasets_can_be_deleted(world: RestWorld) -> None:
    dataset_id = world.dataset()
    for number in range(3):
        world.document(dataset_id, f"{number}.txt")
    assert world.ok("DELETE", f"/datasets/{dataset_id}/documents", json={"delete_all": True}) == {"deleted": 3}
    world.document(dataset_id)
    assert world.ok("DELETE", "/datasets", json={"ids": [dataset_id]}) == {"success_count": 1}
    assert world.ok("GET", "/datasets") == []
    assert world.refused("GET", f"/datasets/{dataset_id}")[0] == 102


def test_pause_and_resume(world: RestWorld) -> None:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id)
    body = {"document_ids": [document_id]}
    path = f"/datasets/{dataset_id}/documents"
    assert world.ok("POST", f"{path}/pause", json=body)["success_count"] == 0
    world.ok("POST", f"{path}/parse", json=body)
    assert world.ok("POST", f"{path}/pause", json=body) == {"success_count": 1}
    assert world.shown(dataset_id, document_id)["progress_msg"].startswith("paused")
    assert world.claim(document_id) == []
    assert world.ok("POST", f"{path}/resume", json=body) == {"success_count": 1}
    assert len(world.claim(document_id)) == 1


def test_failed_tasks_are_listed_replayed_and_discarded(world: RestWorld) -> None:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id)
    world.ok("POST", f"/datasets/{dataset_id}/documents/parse", json={"document_ids": [document_id]})
    first, second = world.split(document_id, 2)
    world.tasks.apply([Fail(first.held, "bad_page", "page 1 is bad"), Fail(second.held, "other", "odd")])
    world.flip(document_id)
    listed = world.ok("GET", "/tasks/failed")
    assert listed["causes"] == {"bad_page": 1, "other": 1}
    assert {t["error_message"] for t in listed["tasks"]} == {"page 1 is bad", "odd"}
    assert all(t["is_current"] and t["document_name"] == "a.txt" for t in listed["tasks"])
    assert world.refused("POST", "/tasks/replay", json={})[0] == 101
    assert world.ok("POST", "/tasks/replay", json={"error_code": "bad_page"}) == {
        "success_count": 1,
        "refused_count": 0,
    }
    assert world.ok("POST", "/tasks/discard", json={"document_ids": [document_id]})["success_count"] == 1
    assert world.ok("GET", "/tasks/failed")["causes"] == {}
    assert world.shown(dataset_id, document_id)["run"] == "RUNNING"


def test_another_tenants_failed_tasks_are_not_seen(world: RestWorld) -> None:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id)
    world.ok("POST", f"/datasets/{dataset_id}/documents/parse", json={"document_ids": [document_id]})
    (task,) = world.split(document_id, 1)
    world.tasks.apply([Fail(task.held, "x", "bad")])
    accounts = world.services.accounts
    accounts.create_user("eve@example.com", "eve", "pw")
    key = accounts.create_token(accounts.sign_in("eve@example.com", "pw"), "k")
    assert world.ok("GET", "/tasks/failed", key=key) == {"causes": {}, "tasks": []}
    body = {"task_ids": [task.id]}
    assert world.ok("POST", "/tasks/replay", key=key, json=body)["success_count"] == 0


def upload_with_key(world: RestWorld, dataset_id: str, key: str, content: bytes) -> Any:
    return world.client.post(
        f"/api/v1/datasets/{dataset_id}/documents",
        headers={"Authorization": f"Bearer {world.key}", "Idempotency-Key": key},
        data={"file": (io.BytesIO(content), "a.txt")},
    )


def test_an_upload_with_a_key_happens_once(world: RestWorld) -> None:
    dataset_id = world.dataset()
    first = upload_with_key(world, dataset_id, "k1", b"hello").get_json()
    again = upload_with_key(world, dataset_id, "k1", b"hello").get_json()
    assert first == again
    assert world.ok("GET", f"/datasets/{dataset_id}/documents")["total"] == 1
    other = upload_with_key(world, dataset_id, "k1", b"other")
    assert (other.status_code, other.get_json()["code"]) == (422, 422)
    assert upload_with_key(world, dataset_id, "k2", b"hello").get_json()["data"][0]["name"] == "a(1).txt"
    assert upload_with_key(world, dataset_id, "k" * 300, b"hello").get_json()["code"] == 102


def test_concurrent_requests_with_one_key_have_one_effect(world: RestWorld) -> None:
    dataset_id = world.dataset()
    answers: list[Any] = []

    def send() -> None:
        response = upload_with_key(world, dataset_id, "same", b"hello")
        answers.append((response.status_code, response.get_json()))

    at_once(*[send] * 6, rows=world.rows)
    assert len(answers) == 6
    assert all(answer == answers[0] for answer in answers)
    assert answers[0][0] == 200
    assert Document.select().count() == 1


def test_a_parse_with_a_key_starts_once(world: RestWorld) -> None:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id)

    def parse() -> Any:
        return world.client.post(
            f"/api/v1/datasets/{dataset_id}/chunks",
            headers={"Authorization": f"Bearer {world.key}", "Idempotency-Key": "p1"},
            json={"document_ids": [document_id]},
        ).get_json()

    assert parse() == {"code": 0}
    assert parse() == {"code": 0}
    assert world.row(document_id).generation == 1
    world.ok("DELETE", f"/datasets/{dataset_id}/chunks", json={"document_ids": [document_id]})
    assert parse() == {"code": 0}
    assert world.row(document_id).generation == 1  # the first one's answer, not a second run


def test_past_the_backlog_a_parse_is_refused_with_a_time_to_come_back(world: RestWorld) -> None:
    settings = TaskSettings(max_backlog=2)
    parsing = ParseService(world.rows, settings, ModelTraits(256), Doorbell(lambda: None, lambda _: None))
    client = create_app(replace(world.services, parsing=parsing)).test_client()
    dataset_id = world.dataset()
    answers = []
    for number in range(4):
        body = {"document_ids": [world.document(dataset_id, f"{number}.txt")]}
        headers = {"Authorization": f"Bearer {world.key}"}
        answers.append(client.post(f"/api/v1/datasets/{dataset_id}/chunks", headers=headers, json=body))
    assert [a.status_code for a in answers] == [200, 200, 200, 429]
    assert answers[3].headers["Retry-After"] == "30"
    assert "2 tasks are waiting already" in answers[3].get_json()["message"]
