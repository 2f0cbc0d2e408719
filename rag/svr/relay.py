"""The relay: publishes waiting tasks in fair turns, keeps the streams short, and repairs what Redis lost. Any
executor can be its leader; the leader's lease is a row.

Marks first, then sends. A task that is marked and neither in a stream nor claimed is unmarked and sent again: this
one comparison repairs a flush, a failover, a lost publish and a message that a dead executor had read."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

from api.db.services.publish_service import PublishService
from api.db.services.role_service import RoleService
from common.errors import Outage, SettingsError
from common.settings import RelaySettings
from rag.svr.role_loop import Leadership, Role
from rag.svr.stream_window import StreamWindow
from rag.utils.redis_conn import EXPRESS, Queue, Ring

log = logging.getLogger(__name__)
ROLE = "relay"
# Acks alone make the relay fill a large window only once so much of it is free: many at once cost little more than one.
_LEAST_ROOM = 0.5
# So many tasks of a tenant may be in work or published before it has to wait for its turn, and so many of all tenants
# may be in the express stream.
_EXPRESS_EACH = 2
_EXPRESS_STANDING = 4
_OUTAGE_PAUSE_S = 0.5
_CONSUMER_IDLE_MS = 60_000
# How long a drain may have to wait for the thread that waits for the bell.
_LONGEST_WAIT_S = 1.0


@dataclass(frozen=True)
class RelayConfig:
    settings: RelaySettings
    holder: str

    def __post_init__(self) -> None:
        if self.settings.repair_s > self.settings.lead_s:
            raise SettingsError(f"relay.repair_s = {self.settings.repair_s}: allowed: at most relay.lead_s")


class Relay:
    def __init__(self, config: RelayConfig, roles: RoleService, rows: PublishService, messages: Queue) -> None:
        self._leadership = Leadership(Role(ROLE, config.holder, config.settings.lead_s), roles)
        self._settings = config.settings
        self._holder = config.holder
        self._rows = rows
        self._messages = messages
        self._window = StreamWindow(config.settings.window)
        self._left_standing = 0
        self._least_room = 0.0
        self._is_full = False
        self._repair_due_s = 0.0

    def run(self, stop: threading.Event) -> None:
        """Until stopped. An outage is waited out; whatever it interrupted is repaired afterwards."""
        while not stop.is_set():
            try:
                if self.run_once():
                    rung = self._messages.wait_rung(self._pause_s())
                    self._least_room = _LEAST_ROOM if rung is Ring.ROOM else 0.0
                else:
                    stop.wait(self._leadership.role.ask_s)
            except Outage as exc:
                log.warning("relay: %s", exc)
                stop.wait(_OUTAGE_PAUSE_S)
        self._leadership.step_down()

    def run_once(self) -> bool:
        """One turn. False where another executor leads."""
        if not self._leadership.hold():
            return False
        self.publish()
        if time.monotonic() >= self._repair_due_s:
            self._repair_due_s = time.monotonic() + self._settings.repair_s
            self.repair()
        return True

    def publish(self) -> int:
        """Fill the streams up to the window. Returns how many tasks were published."""
        found = self._messages.standing()
        express = self._publish_express(_EXPRESS_STANDING - found.express)
        standing = found.in_turn
        taken = max(0, self._left_standing - standing)
        window = self._window.fit(taken, time.monotonic(), was_full=self._is_full)
        room = window - standing
        worth_it = room >= self._least_room * window or standing <= self._settings.window
        chosen = self._rows.mark_next(room) if worth_it else []
        if chosen:
            self._messages.publish([(c.priority, c.task_id) for c in chosen])
        self._left_standing = standing + len(chosen)
        self._is_full = not worth_it or len(chosen) >= room
        return len(chosen) + express

    def _publish_express(self, room: int) -> int:
        """Beside others who wait, whoever has next to nothing in work need not wait for room in the window, nor for a
        slot."""
        chosen = self._rows.mark_express(room, _EXPRESS_EACH)
        if chosen:
            self._messages.publish([(EXPRESS, c.task_id) for c in chosen])
        return len(chosen)

    def repair(self) -> int:
        """Let every task that was published and is nowhere be published again. Returns how many there were."""
        after_ms = int(self._settings.unmark_after_s * 1000)
        left_over = self._messages.take_over(self._holder, after_ms)
        marked = self._rows.published_before(after_ms)
        standing = self._messages.undelivered() if marked or left_over else set()
        taken = {message.task_id for message in left_over}
        repaired = self._rows.unmark(taken | (set(marked) - standing))
        if left_over:
            self._messages.ack(left_over)
        alive = [beat.said for beat in self._messages.executors() if beat.is_alive]
        self._window.in_hand = sum(int(said.get("slots_used", 0)) for said in alive)
        owners = {said.get("owner") for said in alive}
        for consumer in self._messages.idle_consumers(_CONSUMER_IDLE_MS) - owners - {self._holder}:
            self._messages.forget_consumer(consumer)
        if repaired:
            log.warning("relay: %d published tasks were nowhere in the streams and are sent again", repaired)
            self.publish()
        return repaired

    def _pause_s(self) -> float:
        # With the window full, what becomes due must wait for room anyway, and an ack rings.
        due_ms = None if self._is_full else self._rows.next_due_ms()
        until_repair_s = min(_LONGEST_WAIT_S, max(0.05, self._repair_due_s - time.monotonic()))
        return until_repair_s if due_ms is None else max(0.01, min(until_repair_s, due_ms / 1000))
