"""A parse of which nothing has changed ends at once; whatever has changed, or may have, is parsed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from api.db.models import Task, TaskEvent
from api.db.services.task_plan import ModelTraits
from api.db.services.unchanged_parse import UnchangedParse
from common.errors import IndexUnavailable
from common.settings import TaskSettings
from rag.utils.doc_index import DocIndex, Scope, Tally
from tests.rest_world import RestWorld, embedder

_TEXTS = ("alpha beta", "gamma delta")


@pytest.fixture
def parsed(world: RestWorld) -> tuple[str, str]:
    """A document that was parsed with the digests of today."""
    dataset_id = world.dataset()
    document_id = world.document(dataset_id)
    world.parse_twice(dataset_id, document_id, _TEXTS)
    return dataset_id, document_id


def test_it_is_done_at_once_without_a_task(world: RestWorld, parsed: tuple[str, str]) -> None:
    dataset_id, document_id = parsed
    before, tasks = world.row(document_id), Task.select().count()
    assert world.parse(dataset_id, document_id) == "DONE"
    after = world.row(document_id)
    assert Task.select().count() == tasks
    assert (after.generation, after.active_generation) == (before.generation, before.generation)
    assert (after.chunk_count, after.token_count) == (before.chunk_count, before.token_count) == (2, 4)
    assert after.begin_ms == after.end_ms >= before.end_ms
    assert "1 of 1 task reused" in world.shown(dataset_id, document_id)["progress_msg"]
    events = [event.message for event in TaskEvent.select().where(TaskEvent.kind == "unchanged")]
    assert events == ["parsed again: nothing had changed"]
    listed = world.ok("GET", f"/datasets/{dataset_id}/documents/{document_id}/chunks")["chunks"]
    assert [chunk["content"] for chunk in listed] == list(_TEXTS)


def test_a_chunk_that_is_gone_from_the_index_is_made_again(world: RestWorld, parsed: tuple[str, str]) -> None:
    dataset_id, document_id = parsed
    world.index.delete(Scope(world.caller.tenant_id, dataset_id, document_id))
    assert world.parse(dataset_id, document_id) == "RUNNING"
    assert world.row(document_id).generation == 3


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE document SET parser_config = '{\"chunk_token_num\": 64}'",
        "UPDATE document SET chunk_method = 'book'",
        "UPDATE document SET failed_pages = 1",
        "UPDATE document SET run = 2",
        "UPDATE task SET digest = ''",
        "UPDATE task SET state = 5 WHERE task_type = 'range'",
        "UPDATE knowledgebase SET embedding_model = 'another'",
        "DELETE FROM task",
        "DELETE FROM file_profile",
    ],
)
def test_whatever_may_have_changed_is_parsed(world: RestWorld, parsed: tuple[str, str], change: str) -> None:
    world.rows.write(world.rows.execute, change)
    assert world.parse(*parsed) == "RUNNING"


def test_another_model_behind_the_same_name_is_another_parse(world: RestWorld, parsed: tuple[str, str]) -> None:
    traits = ModelTraits.of(embedder())
    moved = replace(traits, url="https://elsewhere/v1")
    for model, settled in ((moved, []), (traits, [parsed[1]])):
        assert UnchangedParse(world.rows, world.index, TaskSettings(), model).settle([parsed[1]]) == settled


def test_it_is_told_to_webhooks(world: RestWorld, parsed: tuple[str, str]) -> None:
    made = {"url": "https://example.org/hook", "events": ["done"]}
    hook = world.call("POST", "/webhooks", json=made).get_json()["webhook_id"]
    for ends in (1, 2):
        time.sleep(0.002)  # two parses do not end in one millisecond
        assert world.parse(*parsed) == "DONE"
        deliveries = world.call("GET", f"/webhooks/{hook}/deliveries").get_json()["deliveries"]
        assert [one["event"] for one in deliveries] == ["done"] * ends


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/{first}", {"content": "epsilon"}),
        ("PUT", "/{first}", {"available": False}),
        ("POST", "", {"content": "zeta"}),
        ("DELETE", "", {"chunk_ids": ["{first}"]}),
    ],
)
def test_edits_by_people_are_discarded_by_the_next_parse(
    world: RestWorld, parsed: tuple[str, str], method: str, path: str, body: dict[str, object]
) -> None:
    dataset_id, document_id = parsed
    chunks = f"/datasets/{dataset_id}/documents/{document_id}/chunks"
    first = world.ok("GET", chunks)["chunks"][0]["id"]
    named = json.loads(json.dumps(body).replace("{first}", first))
    world.ok(method, chunks + path.replace("{first}", first), json=named)
    assert world.parse(dataset_id, document_id) == "RUNNING"


def test_deleting_every_chunk_is_told(world: RestWorld, parsed: tuple[str, str]) -> None:
    dataset_id, document_id = parsed
    chunks = f"/datasets/{dataset_id}/documents/{document_id}/chunks"
    ids = [chunk["id"] for chunk in world.ok("GET", chunks)["chunks"]]
    world.ok("DELETE", chunks, json={"chunk_ids": ids})
    assert "all of its chunks were deleted" in world.shown(dataset_id, document_id)["progress_msg"]


class _AwayIndex:
    """An index that can't be asked."""

    def tally(self, scope: Scope | None = None) -> Iterator[Tally]:
        raise IndexUnavailable("away")


def test_while_the_index_is_away_tasks_wait_for_it(world: RestWorld, parsed: tuple[str, str]) -> None:
    away: DocIndex = _AwayIndex()  # type: ignore[assignment]
    traits = ModelTraits.of(embedder())
    assert UnchangedParse(world.rows, away, TaskSettings(), traits).settle([parsed[1]]) == []


def test_a_deleted_document_is_not_settled(world: RestWorld, parsed: tuple[str, str]) -> None:
    dataset_id, document_id = parsed
    world.ok("DELETE", f"/datasets/{dataset_id}/documents", json={"ids": [document_id]})
    traits = ModelTraits.of(embedder())
    assert UnchangedParse(world.rows, world.index, TaskSettings(), traits).settle([document_id]) == []
