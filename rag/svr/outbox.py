"""What an executor tells the queue without waiting for it: acks of claimed messages, and rings for the relay. One
thread sends; what could not be sent while the queue is away is made up for by the relay."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Sequence

from common.errors import QueueUnavailable
from rag.utils.redis_conn import Message, Queue

log = logging.getLogger(__name__)


class Outbox:
    def __init__(self, messages: Queue) -> None:
        self._messages = messages
        self._waiting: queue.SimpleQueue[Sequence[Message] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._send_all, name="outbox", daemon=True)
        self._thread.start()

    def ack(self, messages: Sequence[Message]) -> None:
        """From any thread. Tells the relay as well that there is room in the streams again."""
        self._waiting.put(messages)

    def ring(self) -> None:
        """From any thread: tasks wait to be published, once there is room; where streams are short, at once."""
        self._waiting.put(())

    def close(self) -> None:
        """Send what is left, then end."""
        self._waiting.put(None)
        self._thread.join()

    def _send_all(self) -> None:
        while (acks := self._waiting.get()) is not None:
            try:
                self._messages.ack(acks)
            except QueueUnavailable as exc:
                log.warning("%d messages stay unacknowledged for now: %s", len(acks), exc)
