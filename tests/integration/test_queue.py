"""The queue on a real Valkey."""

from __future__ import annotations

import threading

import pytest

from common.errors import QueueUnavailable
from common.task_state import Priority
from rag.utils.redis_conn import Queue, Ring
from tests.servers.valkey import ValkeyServer
from tests.waiting import PATIENCE_S, wait_until


def is_blocked(other: Queue) -> bool:
    """Whether somebody waits for messages, as another client sees it."""
    return bool(other._redis.info("clients")["blocked_clients"])


def test_urgent_messages_come_first_and_acked_ones_are_gone(queue: Queue) -> None:
    queue.publish([(Priority.BULK, "bulk"), (Priority.NORMAL, "normal"), (Priority.URGENT, "urgent")])
    first = queue.read("e1", 2)
    assert [m.task_id for m in first] == ["urgent", "normal"]  # the group is made at id 0: nothing is skipped
    queue.ack(first)
    assert queue.undelivered() == {"bulk"}
    assert [m.task_id for m in queue.read("e2", 5)] == ["bulk"]
    assert queue.read("e3", 5) == []


def test_a_wait_takes_one_message_of_each_stream(queue: Queue) -> None:
    queue.read("e1", 1)
    queue.publish([(p, f"{p.name}{n}") for p in Priority for n in range(3)])
    taken = queue.wait_messages("e1", 1.0)
    assert [m.task_id for m in taken] == ["URGENT0", "NORMAL0", "BULK0"]


def test_a_blocked_reader_wakes_for_a_message(queue: Queue, valkey: ValkeyServer) -> None:
    queue.read("e1", 1)
    got: list[str] = []

    def read() -> None:
        while not got:
            got.extend(m.task_id for m in queue.wait_messages("e1", 4.0))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    other = Queue(valkey.url)
    wait_until(lambda: is_blocked(other), what="a reader that is blocked")
    other.publish([(Priority.NORMAL, "t1")])
    reader.join(PATIENCE_S)
    other.close()
    assert got == ["t1"]


def test_a_flush_while_blocked_is_survived(queue: Queue, valkey: ValkeyServer) -> None:
    queue.read("e1", 1)
    got: list[object] = []
    flushed = threading.Event()

    def read() -> None:
        while not flushed.is_set():
            got.append(queue.wait_messages("e1", 4.0))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    other = Queue(valkey.url)
    wait_until(lambda: is_blocked(other), what="a reader that is blocked")
    other._redis.flushall()
    flushed.set()
    reader.join(PATIENCE_S)
    assert not reader.is_alive()
    assert got and not any(got)
    other.publish([(Priority.NORMAL, "after")])
    other.close()
    wait_until(lambda: [m.task_id for m in queue.read("e1", 3)] == ["after"])


def test_messages_of_a_dead_consumer_are_taken_over(queue: Queue) -> None:
    queue.read("dead", 1)
    queue.publish([(Priority.NORMAL, "t1")])
    assert len(queue.read("dead", 1)) == 1
    assert queue.take_over("alive", 60_000) == []
    taken = queue.take_over("alive", 0)
    assert [m.task_id for m in taken] == ["t1"]
    queue.ack(taken)
    assert queue.undelivered() == set()
    assert queue.idle_consumers(0) >= {"dead"}
    queue.forget_consumer("dead")
    assert "dead" not in queue.idle_consumers(-1)


def test_a_consumer_that_still_holds_messages_is_not_deleted(queue: Queue) -> None:
    queue.read("e1", 1)
    queue.publish([(Priority.NORMAL, "t1")])
    queue.read("e1", 1)
    queue.forget_consumer("e1")
    assert [m.task_id for m in queue.take_over("e2", 0)] == ["t1"]


def test_an_entry_that_is_no_task_is_read_and_can_be_acked(queue: Queue) -> None:
    queue.read("e1", 1)
    queue._redis.xadd(queue._streams[Priority.NORMAL], {"something": "else"})
    (message,) = queue.read("e1", 5)
    assert message.task_id == ""
    queue.ack([message])
    assert queue.standing().in_turn == 0


def test_an_entry_that_reaches_nobody_any_more_is_removed(queue: Queue) -> None:
    queue.read("e1", 1)
    queue.publish([(Priority.NORMAL, "lost"), (Priority.NORMAL, "held"), (Priority.NORMAL, "new")])
    assert [m.task_id for m in queue.read("gone", 1)] == ["lost"]
    assert [m.task_id for m in queue.read("e1", 1)] == ["held"]
    queue._redis.xgroup_delconsumer(queue._streams[Priority.NORMAL], "executors", "gone")
    assert queue.undelivered() == {"held", "new"}
    assert queue.standing().in_turn == 2


def test_the_bell_rings_once_for_many(queue: Queue) -> None:
    for _ in range(5):
        queue.ring()
    assert queue.wait_rung(0.1) is Ring.TASKS
    assert queue.wait_rung(0.1) is None


def test_cancels_are_heard_from_the_position_on(queue: Queue) -> None:
    queue.announce_cancelled(["old"])
    position = queue.cancelled_position()
    queue.announce_cancelled(["new1", "new2"])
    position, ids = queue.wait_cancelled(position, 0.5)
    assert ids == ["new1", "new2"]
    assert queue.wait_cancelled(position, 0.1) == (position, [])


def test_heartbeats(queue: Queue) -> None:
    queue.beat("e1", {"now": 1.5, "slots": 4})
    assert queue.heartbeats() == {"e1": {"now": 1.5, "slots": 4}}
    (beat,) = queue.executors()
    assert (beat.name, beat.is_alive, beat.said["slots"]) == ("e1", False, 4)
    queue.beat("e1", {"now": queue.now_s()})
    assert queue.executors()[0].is_alive
    queue.forget_executor("e1")
    assert queue.heartbeats() == {}


def test_a_server_that_is_gone_is_an_outage_and_its_return_is_noticed(valkey: ValkeyServer) -> None:
    queue = Queue(valkey.url)
    queue.ring()
    valkey.kill()
    with pytest.raises(QueueUnavailable):
        queue.ring()
    valkey.start()
    queue.ring()
    assert queue.wait_rung(0.5) is Ring.TASKS
    queue.close()
