"""Housekeeping that one executor does for all: takes back tasks whose lease ran out, and sweeps chunks that are never
answered any more."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

from api.db.services.publish_service import PublishService
from api.db.services.stale_service import StaleService
from api.db.services.task_service import TaskService
from common.errors import Outage
from common.settings import Settings
from rag.utils.doc_index import DocIndex
from rag.utils.redis_conn import Queue

log = logging.getLogger(__name__)
ROLE = "maintenance"
_TICK_S = 1.0
_LEAD_S = 6.0
_OUTAGE_PAUSE_S = 1.0
# The longest that a request of a woken zombie to the index can still be under way.
_REQUEST_TIMEOUT_S = 60.0
_STALE_AT_ONCE = 200
_HEARTBEAT_KEPT_S = 3600.0


@dataclass(frozen=True)
class MaintenanceConfig:
    holder: str
    lease_s: float

    @staticmethod
    def of(settings: Settings, holder: str) -> MaintenanceConfig:
        return MaintenanceConfig(holder, settings.executor.lease_s)


class Maintenance:
    def __init__(
        self,
        config: MaintenanceConfig,
        roles: PublishService,
        tasks: TaskService,
        stale: StaleService,
        index: DocIndex,
        messages: Queue,
    ) -> None:
        self._config = config
        self._roles = roles
        self._tasks = tasks
        self._stale = stale
        self._index = index
        self._messages = messages
        self._last_tick_s = time.monotonic()

    def run(self, stop: threading.Event) -> None:
        leads = False
        while not stop.wait(_TICK_S if leads else _LEAD_S / 3):
            try:
                leads = self.run_once()
            except Outage as exc:
                log.warning("maintenance: %s", exc)
                stop.wait(_OUTAGE_PAUSE_S)
        if leads:
            self._roles.step_down(ROLE, self._config.holder)

    def run_once(self) -> bool:
        """One turn. False where another executor does this."""
        if not self._roles.lead(ROLE, self._config.holder, int(_LEAD_S * 1000)):
            return False
        self._reap()
        self._sweep()
        self._forget_dead()
        return True

    def _reap(self) -> None:
        """A reaper that slept itself can't tell who else did: it waits for one more lease."""
        late = time.monotonic() - self._last_tick_s > self._config.lease_s
        self._last_tick_s = time.monotonic()
        if late:
            return
        lost = self._tasks.reap()
        if lost:
            log.warning("%d tasks of lost executors go back", lost)

    def _sweep(self) -> None:
        """Delete stale chunks; forget a line only when nobody can write for it any more and nothing is left."""
        forget_after_ms = int((self._config.lease_s + _REQUEST_TIMEOUT_S) * 1000)
        for line in self._stale.oldest(_STALE_AT_ONCE):
            if self._index.count(line.scope):
                self._index.delete(line.scope)
            elif line.age_ms > forget_after_ms:
                self._stale.forget(line)

    def _forget_dead(self) -> None:
        for beat in self._messages.executors():
            if beat.age_s > _HEARTBEAT_KEPT_S:
                self._messages.forget_executor(beat.name)
