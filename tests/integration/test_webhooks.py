"""Outcomes are kept for webhooks with the end of a run, and each is told once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from api.db.database import Rows
from api.db.services.task_requests import Fail
from api.db.services.webhook_deliveries import DeliveryState, WebhookDeliveries
from api.db.services.webhook_outcomes import Outcome, record
from tests.servers.webhook_receiver import WebhookReceiver, webhook_receiver
from tests.webhook_world import SECRET, done, failed, hook, is_signed, log, sender_of, told
from tests.world import World


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with webhook_receiver() as opened:
        yield opened


def test_an_outcome_is_told_once_and_signed(rows: Rows, receiver: WebhookReceiver) -> None:
    world = World(rows)
    webhook_id = hook(world, receiver.url)
    doc_id = done(world)
    sender = sender_of(rows)
    for _ in range(3):
        assert sender.run_once()
    (got,) = receiver.received
    assert (got.path, got.headers["x-pagemill-event"]) == ("/hook?to=me", "done")
    assert got.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert is_signed(got, SECRET) and not is_signed(got, "another secret")
    body = got.body
    assert (body["event"], body["document_id"], body["dataset_id"]) == ("done", doc_id, world.kb_id)
    assert (body["chunk_count"], body["generation"], body["error"]) == (6, 1, None)
    (logged,) = log(world, webhook_id)
    assert logged.told.id == got.delivery_id == body["delivery_id"]
    assert (logged.state, logged.status, logged.attempts) == (DeliveryState.DELIVERED, 204, 1)


def test_every_end_of_a_run_is_told(rows: Rows, receiver: WebhookReceiver) -> None:
    world = World(rows)
    hook(world, receiver.url)
    bad = failed(world)
    stopped, _ = world.started()
    world.parsing.stop([stopped])
    deleted, _ = world.started()
    world.control.delete([deleted])
    ended = done(world)
    world.control.delete([ended])
    sender_of(rows).run_once()
    expected = [(bad, "failed"), (stopped, "cancelled"), (deleted, "cancelled"), (ended, "done")]
    assert sorted(told(receiver)) == sorted(expected)
    (of_bad,) = [one.body for one in receiver.received if one.body["document_id"] == bad]
    assert of_bad["error"] == {"code": "bad_page", "message": "page 2 is bad"}


def test_only_what_was_asked_for_is_told(sqlite_rows: Rows, receiver: WebhookReceiver) -> None:
    world, stranger = World(sqlite_rows), World(sqlite_rows)
    hook(world, f"{receiver.url}&only=failed", Outcome.FAILED)
    hook(world, f"{receiver.url}&only=elsewhere", dataset_id=world.dataset(world.tenant_id))
    hook(world, f"{receiver.url}&only=here", Outcome.DONE, dataset_id=world.kb_id)
    good, bad = done(world), failed(world)
    done(stranger)
    sender_of(sqlite_rows).run_once()
    assert sorted((one.path[-6:], one.body["document_id"]) for one in receiver.received) == [
        ("failed", bad),
        ("y=here", good),
    ]


def test_each_end_of_each_parse_is_told_once(rows: Rows, receiver: WebhookReceiver) -> None:
    world = World(rows)
    hook(world, receiver.url)
    doc_id = failed(world)
    (task,) = [task for task in world.tasks_of(doc_id) if task.error_code]
    assert world.control.replay([task.id]) == [task.id]
    (again,) = world.claim(task.id)
    world.tasks.apply([Fail(again.held, "bad_page", "page 2 is still bad")])
    world.flip(doc_id)
    sender = sender_of(rows)
    sender.run_once()
    assert told(receiver) == [(doc_id, "failed"), (doc_id, "failed")]
    rows.write(record, rows, doc_id, Outcome.FAILED)  # the end that is told already
    world.parsing.start([doc_id])
    world.parsing.stop([doc_id])
    sender.run_once()
    assert told(receiver) == [(doc_id, "failed"), (doc_id, "failed"), (doc_id, "cancelled")]
    assert [one.body["generation"] for one in receiver.received] == [1, 1, 2]


def test_an_end_that_is_rolled_back_is_not_told(rows: Rows, receiver: WebhookReceiver) -> None:
    world = World(rows)
    webhook_id = hook(world, receiver.url)
    doc_id, _ = world.started()

    def stop_and_fail() -> None:
        world.parsing.stop([doc_id])
        raise ValueError("later in the same transaction")

    with pytest.raises(ValueError, match="later"):
        rows.write(stop_and_fail)
    assert log(world, webhook_id) == []
    world.parsing.stop([doc_id])
    assert [one.told.outcome for one in log(world, webhook_id)] == [Outcome.CANCELLED]


def test_a_parse_that_begins_anew_by_itself_is_no_cancel(sqlite_rows: Rows, receiver: WebhookReceiver) -> None:
    world = World(sqlite_rows)
    webhook_id = hook(world, receiver.url)
    doc_id, _ = world.started()
    sqlite_rows.execute("UPDATE task SET parser_version = 0")
    assert world.parsing.restart_outdated() == [doc_id]
    assert log(world, webhook_id) == []


def test_old_deliveries_are_removed_and_waiting_ones_stay(rows: Rows, receiver: WebhookReceiver) -> None:
    world = World(rows)
    webhook_id, gone = hook(world, receiver.url, Outcome.DONE), hook(world, receiver.url, Outcome.CANCELLED)
    done(world)
    sender_of(rows).run_once()
    done(world)
    stopped, _ = world.started()
    world.parsing.stop([stopped])
    rows.execute("DELETE FROM webhook WHERE id = ?", (gone,))
    rows.execute("UPDATE webhook_delivery SET create_ms = 1")
    deliveries = WebhookDeliveries(rows)
    assert deliveries.remove_old(3_600_000) == 2
    assert [one.state for one in log(world, webhook_id)] == [DeliveryState.WAITING]
    assert log(world, gone) == []
