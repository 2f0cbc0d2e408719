"""What tests and benches wait with, and where their servers listen."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable


def wait_until(
    condition: Callable[[], object], timeout_s: float = 20.0, what: str = "the condition", look_s: float = 0.01
) -> None:
    """Wait for a condition with a deadline; the only waiting that tests do."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"{what} did not come true within {timeout_s} s"
        time.sleep(look_s)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
