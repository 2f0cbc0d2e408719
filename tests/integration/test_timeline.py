"""The timeline of a document's parse: from its rows, on SQLite and on MariaDB, and over REST."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from api.db.database import Rows
from api.db.services.task_requests import BadRange, Fail, FinishRange, GiveBack, Written
from api.db.services.timeline_service import TaskFilter, TimelineService
from api.db.services.timeline_views import ShownState, Timeline
from common.errors import NotFound
from common.settings import TaskSettings
from common.task_state import TaskType
from tests.rest_jobs import problem
from tests.rest_world import RestWorld, new_caller, rest_world
from tests.world import World


@pytest.fixture
def world(rows: Rows) -> World:
    return World(rows)


def timeline(world: World, doc_id: str, **wanted: object) -> Timeline:
    service = TimelineService(world.rows, TaskSettings())
    return service.get(world.tenant_id, doc_id, TaskFilter(**wanted))  # type: ignore[arg-type]


def test_tasks_are_told_with_their_attempts_stages_and_errors(world: World) -> None:
    doc_id, ranges = world.started(3)
    (first,) = world.claim(ranges[0], owner="alpha:1")
    world.tasks.apply([GiveBack(first.held, "lose", 0, "executor_lost", "its lease ran out")])
    (first,) = world.claim(ranges[0], owner="beta:1")
    bad = (BadRange(4, 5, "parser_lost", "the parser process died"),)
    world.tasks.apply([FinishRange(first.held, Written(3, 30, 7, bad), {"parsing": 1.5, "embedding": 0.25})])
    (second,) = world.claim(ranges[1], owner="alpha:2")
    world.tasks.apply([Fail(second.held, "attempt_failed", "it broke")])
    told = timeline(world, doc_id)
    assert (told.unit, told.units, told.matching) == ("page", 24, 4)
    assert [(span.first, span.end, span.state) for span in told.spans] == [
        (0, 12, ShownState.PARTIAL),
        (12, 24, ShownState.FAILED),
        (24, 36, ShownState.WAITING),
    ]
    assert [task.task_type for task in told.tasks] == [TaskType.PREPARE, *[TaskType.RANGE] * 3]
    _, partial, failed, waiting = told.tasks
    assert [(a.executor, a.outcome) for a in partial.attempts] == [("alpha", "lost"), ("beta", "done")]
    assert partial.attempts[1].stages == {"parsing": 1.5, "embedding": 0.25}
    assert (partial.losses, partial.chunk_count) == (1, 3)
    assert (failed.error_code, failed.error_message) == ("attempt_failed", "it broke")
    assert waiting.attempts == ()
    assert [(page.first, page.end, page.code) for page in told.unread] == [(4, 5, "parser_lost")]
    assert told.stages == {"parsing": 1.5, "embedding": 0.25}


def test_tasks_are_filtered_and_come_in_pages(world: World) -> None:
    doc_id, ranges = world.started(6)
    (task,) = world.claim(ranges[4])
    world.tasks.apply([Fail(task.held, "attempt_failed", "it broke")])
    failed = timeline(world, doc_id, state=ShownState.FAILED)
    assert (failed.matching, [t.first for t in failed.tasks]) == (1, [48])
    assert len(failed.spans) == 3
    assert [t.first for t in timeline(world, doc_id, at=13).tasks if t.task_type is TaskType.RANGE] == [12]
    page = timeline(world, doc_id, offset=2, limit=2)
    assert (page.matching, [t.first for t in page.tasks]) == (7, [12, 24])
    for state in ShownState:
        assert timeline(world, doc_id, state=state).matching == len(timeline(world, doc_id, state=state).tasks)


def test_a_long_document_takes_a_fixed_number_of_reads(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    read = world.rows.rows
    monkeypatch.setattr(world.rows, "rows", lambda sql, params=(): reads.append(sql) or read(sql, params))
    counts = []
    for ranges in (2, 900):
        doc_id, _ = world.started(ranges)
        reads.clear()
        told = timeline(world, doc_id)
        counts.append(len(reads))
        assert (len(told.tasks), len(told.spans)) == (min(50, ranges + 1), 1)
        assert told.spans[0].tasks == ranges
    assert counts[0] == counts[1] <= 8


def test_another_tenants_timeline_is_not_there(world: World) -> None:
    doc_id, _ = world.started(1)
    service = TimelineService(world.rows, TaskSettings())
    for tenant_id, document_id in (("somebody else", doc_id), (world.tenant_id, "nobody")):
        with pytest.raises(NotFound):
            service.get(tenant_id, document_id, TaskFilter())


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[RestWorld]:
    with rest_world(tmp_path) as made:
        yield made


def test_over_rest_pages_count_from_one_and_errors_say_what_to_do(rest: RestWorld) -> None:
    dataset_id = rest.dataset()
    document_id = rest.document(dataset_id, "a.pdf")
    rest.ok("POST", f"/datasets/{dataset_id}/chunks", json={"document_ids": [document_id]})
    first, second = rest.split(document_id, 2)
    rest.finish(first, ["one"])
    rest.tasks.apply([Fail(second.held, "encrypted_file", "needs a password")])
    body = rest.call("GET", f"/jobs/{document_id}/timeline").get_json()
    assert [(s["first"], s["last"], s["state"]) for s in body["spans"]] == [(1, 1, "done"), (2, 2, "failed")]
    assert body["counts"] == {"done": 1, "failed": 1}
    failed = next(task for task in body["tasks"] if task["state"] == "failed")
    assert (failed["first"], failed["last"]) == (2, 2)
    assert failed["error"]["code"] == "encrypted_file" and "password" in failed["error"]["advice"]
    assert failed["attempts"][0]["executor"] == "e"
    only = rest.call("GET", f"/jobs/{document_id}/timeline?state=failed&limit=1").get_json()
    assert (only["total"], len(only["tasks"])) == (1, 1)
    for query in ("state=odd", "limit=201", "offset=-1", "at=x"):
        problem(rest.call("GET", f"/jobs/{document_id}/timeline?{query}"), 400, "invalid_field")
    stranger = rest.services.accounts.create_token(new_caller(rest.rows, "Eve"), "eve")
    problem(rest.call("GET", f"/jobs/{document_id}/timeline", key=stranger), 404, "not_found")
    problem(rest.call("GET", f"/jobs/{document_id}/timeline", key="pagemill-none"), 401, "unauthorized")
