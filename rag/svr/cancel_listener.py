"""Hears which running tasks were cancelled, so that their work ends at once and not with the next renewal."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from common.errors import QueueUnavailable
from rag.utils.redis_conn import Queue

log = logging.getLogger(__name__)
_WAIT_S = 1.0
_OUTAGE_PAUSE_S = 0.5


def listen(messages: Queue, stop: threading.Event, heard: Callable[[Sequence[str]], None]) -> None:
    """Call `heard` with the ids of cancelled tasks until stopped. What is missed is found by the next renewal."""
    position: str | None = None
    while not stop.is_set():
        try:
            if position is None:
                position = messages.cancelled_position()
            position, task_ids = messages.wait_cancelled(position, _WAIT_S)
        except QueueUnavailable as exc:
            log.debug("cancels can't be heard now: %s", exc)
            position = None  # the stream may be another one afterwards
            stop.wait(_OUTAGE_PAUSE_S)
            continue
        if task_ids:
            heard(task_ids)
