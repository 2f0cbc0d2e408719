"""Whether a connection is kept whose answer promised so."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from api.web_worker import Worker


class _Parser:
    """Ends a body that was read, unless its thread waits for the interpreter at that moment."""

    def __init__(self, delays: list[float]) -> None:
        self.delays = delays

    def finish_body(self, deadline: float) -> bool:
        if self.delays:
            time.sleep(self.delays.pop(0))
        return time.monotonic() < deadline


@pytest.mark.parametrize(
    ("delays", "is_kept"), [([], True), ([0.01], True), ([0.01, 0.01], True), ([0.005] * 99, False)]
)
def test_a_thread_that_had_to_wait_keeps_its_connection(delays: list[float], is_kept: bool) -> None:
    worker = Worker.__new__(Worker)
    assert worker._keepalive_after(SimpleNamespace(parser=_Parser(delays)), True) is is_kept
    assert worker._keepalive_after(SimpleNamespace(parser=_Parser([])), False) is False
