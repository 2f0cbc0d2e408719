"""Deliveries arrive in the end, whatever receivers and senders do, and never where a server must not be sent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from api.db.database import Rows, open_rows
from api.db.services.role_service import RoleService
from api.db.services.webhook_deliveries import DeliveryState, WebhookDeliveries
from common.errors import RowsUnavailable
from common.settings import WebhookSettings
from rag.svr.webhook_sender import retry_wait_ms
from tests.servers.webhook_receiver import (
    WebhookReceiver,
    answers,
    drips,
    hangs,
    hangs_up,
    never_ends,
    webhook_receiver,
)
from tests.waiting import free_port
from tests.webhook_world import SECRET, done, hook, is_signed, log, send_until, sender_of
from tests.world import World


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with webhook_receiver() as opened:
        yield opened


@pytest.mark.parametrize(
    ("mood", "status", "problem"),
    [
        (answers(500), 500, "answered 500"),
        (answers(302, Location="/hook"), 302, "answered 302; redirects are not followed"),
        (hangs, 0, "did not answer within 0.5 s"),
        (drips, 0, "did not answer within 0.5 s"),
        (hangs_up, 0, "closed the connection before it answered"),
    ],
)
def test_what_was_not_accepted_is_sent_again(
    sqlite_rows: Rows, receiver: WebhookReceiver, mood: Any, status: int, problem: str
) -> None:
    world = World(sqlite_rows)
    webhook_id = hook(world, receiver.url)
    done(world)
    receiver.next_moods = [mood]
    sender = sender_of(sqlite_rows, timeout_s=0.5)
    began_s = time.monotonic()
    sender.run_once()
    assert time.monotonic() - began_s < 10
    (logged,) = log(world, webhook_id)
    assert (logged.state, logged.status, logged.problem) == (DeliveryState.WAITING, status, problem)
    assert logged.next_ms >= logged.last_ms > 0
    send_until(sender, lambda: len(receiver.received) == 2)
    sender.run_once()
    first, second = receiver.received
    assert (first.delivery_id, first.content) == (second.delivery_id, second.content)
    assert is_signed(second, SECRET)
    (logged,) = log(world, webhook_id)
    assert (logged.state, logged.attempts, logged.problem) == (DeliveryState.DELIVERED, 2, "")


def test_an_answer_without_end_is_accepted_by_its_status(sqlite_rows: Rows, receiver: WebhookReceiver) -> None:
    world = World(sqlite_rows)
    webhook_id = hook(world, receiver.url)
    done(world)
    receiver.always = never_ends
    sender_of(sqlite_rows).run_once()
    assert [one.state for one in log(world, webhook_id)] == [DeliveryState.DELIVERED]


def test_a_receiver_that_is_not_there_is_said_so(sqlite_rows: Rows) -> None:
    world = World(sqlite_rows)
    nowhere, unknown = hook(world, f"http://127.0.0.1:{free_port()}/"), hook(world, "http://hooks.invalid/")
    done(world)
    sender_of(sqlite_rows).run_once()
    assert [one.problem for one in log(world, nowhere)] == ["can't be reached: Connection refused"]
    assert [one.problem for one in log(world, unknown)] == ["can't be reached: its host is not known"]


def test_after_the_last_try_it_is_given_up_until_somebody_asks(rows: Rows, receiver: WebhookReceiver) -> None:
    world = World(rows)
    webhook_id = hook(world, receiver.url)
    done(world)
    receiver.always = answers(503)
    sender = sender_of(rows)
    send_until(sender, lambda: log(world, webhook_id)[0].state is DeliveryState.GIVEN_UP)
    sender.run_once()
    assert len(receiver.received) == 3
    receiver.always = answers(200)
    (logged,) = log(world, webhook_id)
    again = WebhookDeliveries(rows).redeliver(webhook_id, logged.told.id)
    assert (again.state, again.attempts) == (DeliveryState.WAITING, 0)
    send_until(sender, lambda: log(world, webhook_id)[0].state is DeliveryState.DELIVERED)
    assert {one.delivery_id for one in receiver.received} == {logged.told.id}
    assert len(receiver.received) == 4


def _send_once(database_url: str) -> None:
    sender_of(open_rows(database_url), "killed:boot").run_once()


def test_a_sender_killed_before_it_marked_sends_the_same_delivery_again(
    sqlite_rows: Rows, receiver: WebhookReceiver
) -> None:
    world = World(sqlite_rows)
    webhook_id = hook(world, receiver.url)
    done(world)
    process = multiprocessing.get_context("spawn").Process(
        target=_send_once, args=(f"sqlite:///{sqlite_rows.db.database}",)
    )

    def kills(handler: Any) -> None:
        os.kill(process.pid or 0, signal.SIGKILL)
        answers(200)(handler)

    receiver.next_moods = [kills]
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    (logged,) = log(world, webhook_id)
    assert (logged.state, logged.attempts) == (DeliveryState.WAITING, 0)
    RoleService(sqlite_rows).step_down_from_all("killed:boot")
    sender = sender_of(sqlite_rows)
    sender.run_once()
    sender.run_once()
    first, second = receiver.received
    assert first.delivery_id == second.delivery_id == logged.told.id
    assert first.content == second.content


def test_what_was_accepted_while_the_rows_were_away_is_not_sent_again(
    sqlite_rows: Rows, receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(sqlite_rows)
    webhooks = [hook(world, receiver.url) for _ in range(3)]
    done(world)
    sender = sender_of(sqlite_rows)

    def away(*args: object) -> None:
        raise RowsUnavailable("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(WebhookDeliveries, "mark_delivered", away)
        with pytest.raises(RowsUnavailable):
            sender.run_once()
    sender.run_once()
    assert len(receiver.received) == 3
    states = [one.state for webhook_id in webhooks for one in log(world, webhook_id)]
    assert states == [DeliveryState.DELIVERED] * 3


def test_one_executor_sends_for_all(sqlite_rows: Rows, receiver: WebhookReceiver) -> None:
    world = World(sqlite_rows)
    hook(world, receiver.url)
    first, second = sender_of(sqlite_rows), sender_of(sqlite_rows, "e2:boot")
    assert (first.run_once(), second.run_once()) == (True, False)
    done(world)
    assert (second.run_once(), len(receiver.received)) == (False, 0)
    assert (first.run_once(), len(receiver.received)) == (True, 1)


def test_a_receiver_that_hangs_holds_up_nobody_else(sqlite_rows: Rows, receiver: WebhookReceiver) -> None:
    world = World(sqlite_rows)
    with webhook_receiver() as hanging:
        hanging.always = hangs
        slow = hook(world, hanging.url)
        hook(world, receiver.url)
        for _ in range(3):
            done(world)
        sender = sender_of(sqlite_rows, timeout_s=0.5, retries_s="600")
        sender.run_once()
        assert (len(receiver.received), len(hanging.received)) == (3, 1)
        done(world)
        sender.run_once()
        assert (len(receiver.received), len(hanging.received)) == (4, 1)  # it rests
        assert sorted(one.attempts for one in log(world, slow)) == [0, 0, 0, 1]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "hook.example", "[::ffff:127.0.0.1]", "2130706433"])
def test_private_addresses_are_refused(
    sqlite_rows: Rows, receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    look_up = socket.getaddrinfo

    def leads_inside(name: Any, *args: Any, **kwargs: Any) -> Any:
        return look_up("127.0.0.1" if name == "hook.example" else name, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", leads_inside)
    world = World(sqlite_rows)
    webhook_id = hook(world, f"http://{host}:{receiver.port}/")
    done(world)
    sender_of(sqlite_rows, allow_private=False).run_once()
    (logged,) = log(world, webhook_id)
    assert (logged.state, logged.status) == (DeliveryState.WAITING, 0)
    assert logged.problem == "its host is a private address, and webhooks.allow_private is off"
    assert receiver.received == []


def test_the_address_that_was_checked_is_the_one_connected_to(
    sqlite_rows: Rows, receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that leads elsewhere when it is looked up a second time gains nothing by it."""
    look_up = socket.getaddrinfo
    asked: list[str] = []

    def rebinds(name: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append(name)
        inside = "127.0.0.1" if asked.count("hook.example") == 1 else "192.0.2.1"
        return look_up(inside if name == "hook.example" else name, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", rebinds)
    world = World(sqlite_rows)
    hook(world, f"http://hook.example:{receiver.port}/")
    done(world)
    sender_of(sqlite_rows).run_once()
    (got,) = receiver.received
    assert got.headers["host"] == f"hook.example:{receiver.port}"
    assert asked.count("hook.example") == 1


def test_tries_are_spread() -> None:
    waits_s = WebhookSettings().waits_s
    assert [retry_wait_ms(waits_s, n, 0.0) for n in range(6)] == [
        60_000,
        300_000,
        1_800_000,
        7_200_000,
        21_600_000,
        None,
    ]
    assert retry_wait_ms(waits_s, 0, 1.0) == 75_000
