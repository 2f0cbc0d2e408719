"""The sweeper: deletes what is never answered any more, from the index and from the tables, a little at a time. One
executor does it for all."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from api.db.services.control_service import ControlService
from api.db.services.purge_service import PurgeService
from api.db.services.role_service import RoleService
from api.db.services.stale_service import StaleService
from common.settings import Settings
from rag.svr.fence import steady_s
from rag.svr.role_loop import Leadership, Role, run_in_role
from rag.utils.doc_index import DocIndex
from rag.utils.object_store import ObjectStore
from rag.utils.picture_cache import PictureCache
from rag.utils.redis_conn import Queue

ROLE = "sweeper"
_LEAD_S = 10.0
# The longest that a request of a woken zombie to the index can still be under way.
_REQUEST_TIMEOUT_S = 60.0
_AT_ONCE = 200
_HEARTBEAT_KEPT_S = 3600.0
# An executor that is not heard of for a lease and so long is called silent.
_SILENT_BEYOND_S = 10.0
_RECORDS_EVERY_S = 5.0
# An upload touches its blob before its row is there: one that was touched this lately is not removed.
_BLOB_REST_S = 3600.0


@dataclass(frozen=True)
class SweeperConfig:
    holder: str
    lease_s: float

    @staticmethod
    def of(settings: Settings, holder: str) -> SweeperConfig:
        return SweeperConfig(holder, settings.executor.lease_s)


class Sweeper:
    def __init__(
        self,
        config: SweeperConfig,
        roles: RoleService,
        stale: StaleService,
        control: ControlService,
        purging: PurgeService,
        index: DocIndex,
        store: ObjectStore,
        messages: Queue,
        pictures: PictureCache,
    ) -> None:
        self._config = config
        self._leadership = Leadership(Role(ROLE, config.holder, _LEAD_S), roles)
        self._stale = stale
        self._control = control
        self._purging = purging
        self._store = store
        self._index = index
        self._messages = messages
        self._pictures = pictures
        self._records_due_s = 0.0

    def run(self, stop: threading.Event) -> None:
        run_in_role(self._leadership, self._turn, stop)

    def run_once(self) -> bool:
        """One turn. False where another executor does this."""
        leads = self._leadership.hold()
        self._turn(leads)
        return leads

    def _turn(self, leads: bool) -> None:
        if not leads:
            return
        self.sweep_chunks()
        self.purge()
        if steady_s() >= self._records_due_s:
            self._records_due_s = steady_s() + _RECORDS_EVERY_S
            self._control.go_on_deleting()
            self._purging.keep_records(silent_ms=int((self._config.lease_s + _SILENT_BEYOND_S) * 1000))
        self._forget_dead()

    def sweep_chunks(self) -> None:
        """Delete stale chunks; forget a line only when nobody can write for it any more and nothing is left."""
        forget_after_ms = int((self._config.lease_s + _REQUEST_TIMEOUT_S) * 1000)
        for line in self._stale.due(_AT_ONCE):
            if self._index.count(line.scope):
                self._index.delete(line.scope)
            if line.age_ms > forget_after_ms and not self._index.count(line.scope):
                self._stale.forget(line)

    def purge(self) -> None:
        """Remove what deleted documents left in the store and in the tables, and what ended long ago."""
        for stone in self._purging.tombstones(_AT_ONCE):
            if not self._purging.is_file_used(stone):
                self._store.delete_unused(stone.tenant_id, stone.file_digest, _BLOB_REST_S)
                self._pictures.forget(stone.file_digest)
            self._purging.remove(stone)
        self._purging.remove_empty_datasets()
        self._purging.remove_ended()
        self._purging.remove_answers()

    def _forget_dead(self) -> None:
        for beat in self._messages.executors():
            if beat.age_s > _HEARTBEAT_KEPT_S:
                self._messages.forget_executor(beat.name)
