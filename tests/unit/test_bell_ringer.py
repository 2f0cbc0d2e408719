"""Rings by a thread of their own: nobody waits for the queue, and none is forgotten."""

from __future__ import annotations

import threading

from rag.utils.bell_ringer import BellRinger
from tests.waiting import wait_until


class _SlowQueue:
    def __init__(self) -> None:
        self.rings = 0
        self.is_free = threading.Event()

    def ring(self) -> None:
        self.is_free.wait()
        self.rings += 1


def test_nobody_waits_for_a_queue_that_does_not_answer() -> None:
    slow = _SlowQueue()
    ringer = BellRinger(slow.ring)
    for _ in range(100):
        ringer()
    assert slow.rings == 0
    slow.is_free.set()


def test_what_is_asked_during_a_ring_is_rung_for_once_more() -> None:
    slow = _SlowQueue()
    begun = threading.Event()

    def ring() -> None:
        begun.set()
        slow.ring()

    ringer = BellRinger(ring)
    ringer()
    assert begun.wait(10)
    for _ in range(50):
        ringer()
    slow.is_free.set()
    wait_until(lambda: slow.rings == 2, what="the second ring")
    ringer()
    wait_until(lambda: slow.rings == 3, what="a ring after a pause")
