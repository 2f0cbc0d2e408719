"""Parse and stop over REST, and what a document shows on its way."""

from __future__ import annotations

from typing import Any

import pytest

from api.db.services.task_requests import Fail, GiveBack, Progress
from tests.rest_world import RestWorld, new_caller


@pytest.fixture
def dataset_id(world: RestWorld) -> str:
    return world.dataset()


def ids(*document_ids: str) -> dict[str, list[str]]:
    return {"document_ids": list(document_ids)}


def test_a_document_on_its_way(world: RestWorld, dataset_id: str) -> None:
    document_id, behind = world.document(dataset_id), world.document(dataset_id)
    answer = world.call("POST", f"/datasets/{dataset_id}/chunks", json=ids(document_id, behind)).get_json()
    assert answer == {"code": 0}
    shown = world.shown(dataset_id, document_id)
    assert (shown["run"], shown["progress"], shown["chunk_count"]) == ("RUNNING", 0.0, 0)
    assert len(shown["process_begin_at"]) == 19
    # Both were started in the same moment: either may be the first.
    said = {world.shown(dataset_id, one)["progress_msg"] for one in (document_id, behind)}
    assert said == {"waiting: it is the next in the queue", "waiting: 1 task of another document is ahead"}

    first, second = world.split(document_id, 2)
    world.tasks.apply([Progress(first.held, 0.5, "parsing")])
    shown = world.shown(dataset_id, document_id)
    assert shown["progress"] == 0.25
    assert shown["progress_msg"] == "reading page 1: parsing; 0 of 2 tasks done"
    world.finish(first, ["one", "two"])
    shown = world.shown(dataset_id, document_id)
    assert (shown["progress"], shown["chunk_count"]) == (0.5, 2)
    # On a slow machine it says as well how long the rest takes.
    assert shown["progress_msg"].startswith("reading page 2: starting; 1 of 2 tasks done")
    world.finish(second, ["three"])
    shown = world.shown(dataset_id, document_id)
    assert (shown["run"], shown["progress"]) == ("RUNNING", 0.99)
    assert shown["progress_msg"] == "making its chunks findable"
    world.flip(document_id)
    shown = world.shown(dataset_id, document_id)
    assert (shown["run"], shown["progress"], shown["chunk_count"], shown["token_count"]) == ("DONE", 1.0, 3, 3)
    assert shown["progress_msg"].startswith("done: 3 chunks from 2 pages in ")
    assert shown["process_duration"] > 0


def test_a_range_that_waits_after_an_error_says_so(world: RestWorld, dataset_id: str) -> None:
    document_id = world.document(dataset_id)
    world.ok("POST", f"/datasets/{dataset_id}/chunks", json=ids(document_id))
    (task,) = world.split(document_id, 1)
    world.tasks.apply([GiveBack(task.held, "retry", 12_000, "attempt_failed", "a hiccup")])
    assert world.shown(dataset_id, document_id)["progress_msg"] == "attempt 2 of 3 in 12 s: a hiccup"


def test_a_failed_document(world: RestWorld, dataset_id: str) -> None:
    document_id = world.document(dataset_id)
    world.ok("POST", f"/datasets/{dataset_id}/chunks", json=ids(document_id))
    (prepare,) = world.claim(document_id)
    world.tasks.apply([Fail(prepare.held, "empty_file", "a.txt is empty")])
    world.flip(document_id)
    shown = world.shown(dataset_id, document_id)
    assert (shown["run"], shown["progress"]) == ("FAIL", -1.0)
    assert shown["progress_msg"] == "failed: a.txt is empty"


def test_a_second_parse_while_one_runs_is_refused(world: RestWorld, dataset_id: str) -> None:
    running, fresh = world.document(dataset_id), world.document(dataset_id)
    path = f"/datasets/{dataset_id}/chunks"
    world.ok("POST", path, json=ids(running))
    code, message = world.refused("POST", path, json=ids(running, fresh))
    assert code == 102
    assert message == f"Can't parse document that is currently being processed: {running}"
    assert world.shown(dataset_id, fresh)["run"] == "RUNNING"


def test_stop_ends_a_running_parse(world: RestWorld, dataset_id: str) -> None:
    document_id = world.document(dataset_id)
    path = f"/datasets/{dataset_id}/chunks"
    world.ok("POST", path, json=ids(document_id))
    world.finish(world.split(document_id, 2)[0], ["one"])
    assert world.call("DELETE", path, json=ids(document_id)).get_json() == {"code": 0}
    shown = world.shown(dataset_id, document_id)
    assert (shown["run"], shown["progress"], shown["chunk_count"]) == ("CANCEL", 0.0, 0)
    assert shown["progress_msg"] == "stopped by the user with 1 of 2 tasks done; parse it again to go on"
    answer = world.call("DELETE", path, json=ids(document_id)).get_json()
    assert answer["code"] == 102
    assert "Can't stop parsing document that has not started or already completed" in answer["message"]
    assert answer["data"] == {"error_code": "DOC_STOP_PARSING_INVALID_STATE"}
    world.ok("POST", path, json=ids(document_id))
    assert world.shown(dataset_id, document_id)["run"] == "RUNNING"


def test_the_routes_that_tell_errors_beside_a_count(world: RestWorld, dataset_id: str) -> None:
    one, two = world.document(dataset_id), world.document(dataset_id)
    path = f"/datasets/{dataset_id}/documents"
    assert world.ok("POST", f"{path}/parse", json=ids(one)) == {"success_count": 1}
    answer = world.ok("POST", f"{path}/parse", json=ids(one, two))
    assert answer["success_count"] == 1 and "currently being processed" in answer["errors"][0]
    assert world.ok("POST", f"{path}/stop", json=ids(two)) == {"success_count": 1}
    answer = world.ok("POST", f"{path}/stop", json=ids(one, two))
    assert answer["success_count"] == 1 and "has not started or already completed" in answer["errors"][0]
    assert world.refused("POST", f"{path}/stop", json=ids("0" * 32))[1] == f"Documents not found: ['{'0' * 32}']"


def test_unknown_and_repeated_ids(world: RestWorld, dataset_id: str) -> None:
    document_id = world.document(dataset_id)
    path = f"/datasets/{dataset_id}/chunks"
    assert world.refused("POST", path, json=ids("x", document_id)) == (102, "Documents not found: ['x']")
    assert world.shown(dataset_id, document_id)["run"] == "RUNNING"
    assert world.refused("DELETE", path, json=ids(document_id, "x"))[1] == "You don't own the document x."
    answer = world.ok("DELETE", path, json=ids(document_id, document_id))
    assert answer == {"success_count": 1, "errors": [f"Duplicate document ids: {document_id}"]}


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_bad_bodies(world: RestWorld, dataset_id: str, method: str) -> None:
    path = f"/datasets/{dataset_id}/chunks"
    empty: tuple[dict[str, Any], ...] = ({}, {"document_ids": None}, {"document_ids": []})
    for body in empty:
        assert world.refused(method, path, json=body) == (102, "`document_ids` is required")
    assert world.refused(method, path) == (102, "`document_ids` is required")
    assert world.refused(method, path, content_type="application/json") == (102, "`document_ids` is required")
    assert world.refused(method, path, json={"document_ids": "x"})[0] == 102
    assert world.refused(method, path, json={"document_ids": [1]})[0] == 102
    json_type = "application/json"
    assert world.refused(method, path, data="{", content_type=json_type) == (100, "<BadRequest '400: Bad Request'>")
    assert world.refused(method, path, data="[]", content_type=json_type) == (100, "JSON payload must be an object")
    assert "not a valid form payload" in world.refused(method, path, data="x", content_type="text/plain")[1]
    surrogate = '{"document_ids": ["\\ud800"]}'
    assert world.refused(method, path, data=surrogate, content_type=json_type)[0] == 102


def test_another_tenants_dataset_is_unknown(world: RestWorld, dataset_id: str) -> None:
    other = world.services.accounts.create_token(new_caller(world.rows, "Viktor"), "k")
    document_id = world.document(dataset_id)
    for method in ("POST", "DELETE"):
        code, message = world.refused(method, f"/datasets/{dataset_id}/chunks", json=ids(document_id), key=other)
        assert code == 102 and "You don't own the dataset" in message
    assert world.row(document_id).run == 0
