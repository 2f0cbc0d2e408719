"""Jobs over REST: begun in one call, told, listed and cancelled, and the pool that does them."""

from __future__ import annotations

import json
from dataclasses import replace

from api.apps import create_app
from api.db.models import Document, Knowledgebase, Task
from api.db.services.task_requests import BadRange, Fail, FinishRange, Written
from tests.at_once import at_once
from tests.rest_jobs import begun, job, post, problem
from tests.rest_world import RestWorld


def test_a_job_is_begun_in_one_call(world: RestWorld) -> None:
    answer = post(world)
    shown = answer.get_json()
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"/api/v1/jobs/{shown['job_id']}"
    assert (shown["status"], shown["progress"], shown["step"]) == ("queued", 0.0, "waiting")
    assert (shown["queue_position"], shown["attempt"], shown["max_attempts"]) == (1, 1, 3)
    assert shown["message"] == "waiting: it is the next in the queue"
    assert len(world.claim(shown["job_id"])) == 1


def test_without_a_dataset_jobs_share_one_of_their_own(world: RestWorld) -> None:
    first, second = begun(world), begun(world, name="b.txt")
    (dataset,) = Knowledgebase.select()
    assert (dataset.name, dataset.document_count) == ("Jobs", 2)
    assert {job(world, one)["dataset_id"] for one in (first, second)} == {dataset.id}


def test_first_jobs_at_the_same_time_make_one_dataset(world: RestWorld) -> None:
    at_once(*[lambda: begun(world)] * 5, rows=world.rows)
    assert [dataset.name for dataset in Knowledgebase.select()] == ["Jobs"]
    assert Document.select().count() == 5


def test_what_the_form_says_is_what_is_parsed(world: RestWorld) -> None:
    dataset_id = world.dataset()
    config = json.dumps({"chunk_token_num": 77})
    job_id = begun(world, dataset_id=dataset_id, chunk_method="book", parser_config=config, priority="bulk")
    row = world.row(job_id)
    assert (row.kb_id, row.chunk_method, row.parser_config["chunk_token_num"], row.priority) == (
        dataset_id,
        "book",
        77,
        0,
    )
    assert [task.priority for task in Task.select().where(Task.doc_id == job_id)] == [0]
    assert job(world, job_id)["priority"] == "bulk"


def test_a_job_tells_what_is_in_work_and_its_result(world: RestWorld) -> None:
    job_id = begun(world)
    first, second = world.split(job_id, 2)
    shown = job(world, job_id)
    assert (shown["status"], shown["step"]) == ("running", "starting")
    assert shown["tasks"] == {"done": 0, "total": 2, "reused": 0}
    assert shown["units"] == {"unit": "page", "done": 0, "total": 2}
    assert shown["ranges"] == [{"unit": "page", "first": n, "last": n} for n in (1, 2)]
    assert shown["result"] is None
    world.finish(first, ["a heron"])
    shown = job(world, job_id)
    assert (shown["progress"], shown["message"][:14]) == (0.5, "reading page 2")
    assert shown["units"] == {"unit": "page", "done": 1, "total": 2}
    world.finish(second, ["a key"])
    assert job(world, job_id)["step"] == "making findable"
    world.flip(job_id)
    shown = job(world, job_id)
    assert (shown["status"], shown["progress"], shown["is_final"], shown["eta_s"]) == ("done", 1.0, True, None)
    assert (shown["result"]["chunk_count"], shown["result"]["token_count"]) == (2, 4)
    assert shown["ended_at"] >= shown["started_at"] >= shown["created_at"]
    assert world.ok("GET", shown["result"]["chunks"].removeprefix("/api/v1"))["total"] == 2


def test_a_failed_job_has_a_public_error(world: RestWorld) -> None:
    job_id = begun(world)
    first, second = world.split(job_id, 2)
    world.finish(first, ["a heron"])
    world.tasks.apply([Fail(second.held, "bad_page", "page 2 is bad")])
    world.flip(job_id)
    shown = job(world, job_id)
    assert (shown["status"], shown["progress"]) == ("failed", 0.5)
    assert shown["error"] == {"code": "bad_page", "message": "page 2 is bad", "is_permanent": True}
    assert (shown["result"]["chunk_count"], shown["result"]["is_partial"]) == (1, True)


def test_unread_pages_are_counted_as_people_count(world: RestWorld) -> None:
    job_id = begun(world)
    first, second = world.split(job_id, 2)
    world.finish(first, ["a heron"])
    bad = (BadRange(1, 2, "parser_lost", "page 2 crashes the parser"),)
    world.tasks.apply([FinishRange(second.held, Written(units=1, failed=bad))])
    world.flip(job_id)
    shown = job(world, job_id)
    assert shown["result"]["unread"] == [{"first": 2, "last": 2, "reason": "page 2 crashes the parser"}]
    assert "page 2 could not be read" in shown["message"]


def test_a_job_is_cancelled_once(world: RestWorld) -> None:
    job_id = begun(world)
    answer = world.call("DELETE", f"/jobs/{job_id}")
    assert (answer.status_code, answer.get_json()["status"]) == (200, "cancelled")
    assert job(world, job_id)["is_final"]
    body = problem(world.call("DELETE", f"/jobs/{job_id}"), 409, "conflict")
    assert body["detail"] == "the job can't be cancelled: it is cancelled"
    problem(world.call("DELETE", "/jobs/" + "0" * 32), 404, "not_found")


def test_jobs_are_listed_by_state_and_page(world: RestWorld) -> None:
    waiting, working, stopped, paused = (begun(world, name=f"{n}.txt") for n in range(4))
    world.claim(working)
    world.call("DELETE", f"/jobs/{stopped}")
    world.services.control.pause([paused])
    world.document(world.dataset("other"), "never.txt")

    def listed(query: str) -> tuple[int, list[str]]:
        answer = world.call("GET", f"/jobs?{query}").get_json()
        return answer["total"], [one["job_id"] for one in answer["jobs"]]

    assert listed("status=queued") == (1, [waiting])
    assert listed("status=running") == (1, [working])
    assert listed("status=cancelled") == (1, [stopped])
    assert listed("status=paused") == (1, [paused])
    assert listed("status=unstarted")[0] == 1
    assert set(listed("status=queued,running")[1]) == {waiting, working}
    assert listed(f"dataset_id={job(world, waiting)['dataset_id']}")[0] == 4
    pages = [listed(f"page={page}&page_size=2") for page in (1, 2, 3)]
    assert [total for total, _ in pages] == [5, 5, 5]
    assert len({one for _, part in pages for one in part}) == 5


def test_who_has_heard_the_end_is_not_told_again(world: RestWorld) -> None:
    job_id = begun(world)
    world.call("DELETE", f"/jobs/{job_id}")
    heard = world.row(job_id).update_ms
    answer = world.call("GET", f"/jobs/{job_id}/events", headers={"Last-Event-ID": str(heard)})
    assert (answer.status_code, answer.data) == (204, b"")
    early = world.call("GET", f"/jobs/{job_id}/events", headers={"Last-Event-ID": str(heard - 1)})
    problem(early, 501, "no_streams")  # a test client has no connection to hand over


def test_an_idempotency_key_makes_one_job(world: RestWorld) -> None:
    headers = {"Idempotency-Key": "k1"}
    first, again = post(world, headers=headers), post(world, headers=headers)
    assert first.get_json()["job_id"] == again.get_json()["job_id"]
    assert first.headers["Location"] == again.headers["Location"]
    assert Document.select().count() == 1
    problem(post(world, content=b"other", headers=headers), 422, "key_reused")
    problem(post(world, headers={"Idempotency-Key": "k" * 300}), 400, "invalid_input")


def test_the_pool_tells_what_waits_and_who_works(world: RestWorld) -> None:
    begun(world, priority="urgent")
    world.claim(begun(world, name="b.txt"))
    said = {"slots": 6, "slots_used": 1, "parsers": 1, "draining": False, "done": 3, "current": [{"document_id": "x"}]}
    services = replace(world.services, executor_beats=lambda: {"e-1": [said]})
    shown = replace(world, client=create_app(services).test_client()).call("GET", "/worker-pool-status").get_json()
    assert {key: shown[key] for key in ("queue_size", "active_tasks", "num_workers", "slots", "slots_used")} == {
        "queue_size": 1,
        "active_tasks": 1,
        "num_workers": 1,
        "slots": 6,
        "slots_used": 1,
    }
    assert shown["by_priority"]["urgent"]["waiting"] == 1
    assert shown["oldest_waiting_s"] == shown["by_priority"]["urgent"]["oldest_waiting_s"] >= 0
    assert shown["executors"] == [
        {"name": "e-1", "slots": 6, "slots_used": 1, "parsers": 1, "done": 3, "failed": 0, "retried": 0,
         "is_draining": False}
    ]  # fmt: skip
