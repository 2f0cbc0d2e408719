"""The health of parts that answer, refuse, or hang."""

from __future__ import annotations

import threading
import time

from api.apps.health_watch import HealthWatch
from common.errors import QueueUnavailable
from tests.waiting import wait_until


def _refuse() -> None:
    raise QueueUnavailable("the queue does not answer")


def test_a_part_that_hangs_keeps_nobody_waiting_and_is_told() -> None:
    free = threading.Event()
    asked: list[int] = []

    def hang() -> None:
        asked.append(1)
        free.wait()

    watch = HealthWatch({"database": lambda: None, "queue": _refuse, "index": hang}, limit_s=0.2, keep_s=0.0)
    begin_s = time.monotonic()
    found = {state.part: state for state in watch.look()}
    assert time.monotonic() - begin_s < 5
    assert found["database"].is_ok
    assert "does not answer" in found["queue"].error
    assert "has not answered" in found["index"].error
    watch.look()
    assert asked == [1]  # the same question is not asked twice
    free.set()
    wait_until(lambda: all(state.is_ok for state in watch.look() if state.part == "index"))


def test_many_who_look_ask_once() -> None:
    asked: list[int] = []
    watch = HealthWatch({"database": lambda: asked.append(1)}, keep_s=60.0)
    for _ in range(5):
        assert watch.look()[0].is_ok
    assert asked == [1]
