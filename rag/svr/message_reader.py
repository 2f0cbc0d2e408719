"""Brings messages from the streams to the database thread as claims. Two threads of its own wait in blocking reads, so
that nothing polls: one asks for no more than there are free slots, the other reads the express stream and may go a
little beyond them. Messages are acked once the claim has committed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from api.db.services.task_requests import Claim, ClaimedTask
from common.errors import PagemillError, QueueUnavailable
from common.ids import new_token
from rag.svr.fence import steady_s
from rag.svr.outbox import Outbox
from rag.svr.rows_thread import Reply, RowsThread
from rag.svr.slots import Slots
from rag.utils.redis_conn import Message, Queue

log = logging.getLogger(__name__)
_WAIT_S = 1.0
_OUTAGE_PAUSE_S = 0.5
# Whose tasks come by the express stream stands in line for the parser all the same, but not for a slot before that.
_EXPRESS_BEYOND = 4


class MessageReader:
    """`on_claimed` runs in trio's thread with the tasks that were won, each of which holds a slot, and the moment
    (rag.svr.fence.steady_s) before which the claim was not yet sent."""

    def __init__(
        self,
        messages: Queue,
        outbox: Outbox,
        rows: RowsThread,
        slots: Slots,
        owner: str,
        on_claimed: Callable[[Sequence[ClaimedTask], float], None],
    ) -> None:
        self._messages = messages
        self._outbox = outbox
        self._rows = rows
        self._slots = slots
        self._owner = owner
        self._on_claimed = on_claimed
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._read_loop, args=(self._read, 0), name="reader", daemon=True),
            threading.Thread(
                target=self._read_loop, args=(self._read_express, _EXPRESS_BEYOND), name="express reader", daemon=True
            ),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ask for nothing more. What is already read is still claimed."""
        self._stopping.set()
        self._slots.close()

    def join(self) -> None:
        """Wait until the threads have ended; from then on nothing more is read."""
        for thread in self._threads:
            thread.join()

    def _read_loop(self, read: Callable[[int], list[Message]], beyond: int) -> None:
        while (free := self._slots.wait_free(beyond)) > 0:
            try:
                found = read(free)
            except QueueUnavailable as exc:
                log.warning("%s", exc)
                self._stopping.wait(_OUTAGE_PAUSE_S)
                continue
            if found:
                self._slots.take(len(found))
                self._claim(found)

    def _read(self, free: int) -> list[Message]:
        found = self._messages.read(self._owner, free)
        if found:
            return found
        # It may bring one message of each stream, more than there are slots: they are taken, and the slots owed.
        return self._messages.wait_messages(self._owner, _WAIT_S)

    def _read_express(self, _: int) -> list[Message]:
        return self._messages.wait_express(self._owner, _WAIT_S)

    def _claim(self, found: Sequence[Message]) -> None:
        sent_s = steady_s()
        claim = Claim(tuple(sorted({m.task_id for m in found})), self._owner, new_token())

        def answered(reply: Reply) -> None:
            won = self._settle(found, reply)
            self._slots.give(len(found) - len(won))
            if won:
                self._on_claimed(won, sent_s)

        self._rows.submit(claim, answered)

    def _settle(self, found: Sequence[Message], reply: Reply) -> list[ClaimedTask]:
        """Ack what was decided. While the rows are away nothing is: the relay takes such messages over later."""
        if isinstance(reply, PagemillError):
            log.warning("%d messages could not be claimed: %s", len(found), reply)
            return []
        assert isinstance(reply, list)
        self._outbox.ack(found)
        return reply
