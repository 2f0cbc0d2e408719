"""What tests and benches wait with, and where their servers listen."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import TypeVar

# Long enough for a machine that is slow and busy: what goes well is not waited for.
PATIENCE_S = 60.0
T = TypeVar("T")


def wait_for(
    look: Callable[[], T], timeout_s: float = PATIENCE_S, what: str = "the condition", look_s: float = 0.01
) -> T:
    """Look again and again, with a deadline, until there is something: that is the answer, since a second look may
    find it gone."""
    deadline_s = time.monotonic() + timeout_s
    while not (found := look()):
        assert time.monotonic() < deadline_s, f"{what} did not come true within {timeout_s} s"
        time.sleep(look_s)
    return found


def wait_until(
    condition: Callable[[], object],
    timeout_s: float = PATIENCE_S,
    what: str = "the condition",
    look_s: float = 0.01,
) -> None:
    """Wait for a condition with a deadline; this and the one above are the only waiting that tests do."""
    wait_for(condition, timeout_s, what, look_s)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
