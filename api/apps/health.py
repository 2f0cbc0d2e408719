"""Whether the parts that this server stands on answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from common.errors import PagemillError


@dataclass(frozen=True)
class PartState:
    """`error` is empty where the part answers."""

    part: str
    error: str
    elapsed_ms: float

    @property
    def is_ok(self) -> bool:
        return not self.error


def error_of(states: Sequence[PartState], part: str) -> str:
    """Why this part does not answer; "" where it does."""
    return next((state.error for state in states if state.part == part), "")


def check_parts(parts: Mapping[str, Callable[[], None]]) -> list[PartState]:
    return [check_part(part, check) for part, check in parts.items()]


def check_part(part: str, check: Callable[[], None]) -> PartState:
    begin_s = time.monotonic()
    error = ""
    try:
        check()
    except PagemillError as exc:
        error = exc.public_message or exc.code
    return PartState(part, error, (time.monotonic() - begin_s) * 1000)
