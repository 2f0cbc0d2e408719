"""Removing rows for good: of deleted documents and datasets once nothing of them is left in the index, and of tasks and
executors that ended long ago."""

from __future__ import annotations

from dataclasses import dataclass

from api.db.database import Rows
from api.db.services.executor_registry import ExecutorRegistry
from api.db.services.tally_service import TallyService
from api.db.services.task_sql import marks
from common.settings import TaskSettings
from common.task_state import TERMINAL_TASK_STATES

_SLICE = 500
_KEYS = {"range_result": "digest", "chunk_note": "chunk_id"}
_HOUR_MS = 3_600_000
_EXECUTORS_KEPT_MS = 24 * _HOUR_MS


@dataclass(frozen=True)
class Tombstone:
    """A deleted document of which the index and the streams have nothing left."""

    doc_id: str
    tenant_id: str
    file_digest: str


class PurgeService:
    def __init__(self, rows: Rows, settings: TaskSettings) -> None:
        self._rows = rows
        self._keep_tasks_ms = int(settings.keep_finished_h * _HOUR_MS)
        self._registry = ExecutorRegistry(rows)
        self._tallies = TallyService(rows)
        self._keep_answers_ms = int(settings.keep_answers_h * _HOUR_MS)

    def tombstones(self, count: int) -> list[Tombstone]:
        """Deleted documents that no line of stale chunks names any more."""
        found = self._rows.read(
            self._rows.rows,
            "SELECT d.id, d.tenant_id, d.file_digest FROM document d WHERE d.deleted_ms > 0"
            " AND NOT EXISTS (SELECT 1 FROM stale_chunks s WHERE s.doc_id = d.id) ORDER BY d.deleted_ms LIMIT ?",
            (count,),
        )
        return [Tombstone(*row) for row in found]

    def is_file_used(self, stone: Tombstone) -> bool:
        """Whether another document, deleted or not, still has the same file."""
        found = self._rows.read(
            self._rows.rows,
            "SELECT 1 FROM document WHERE tenant_id = ? AND file_digest = ? AND id != ? LIMIT 1",
            (stone.tenant_id, stone.file_digest, stone.doc_id),
        )
        return bool(found)

    def remove(self, stone: Tombstone) -> None:
        """The document's rows, in slices, its own last."""
        for table in ("task_event", "task", "range_result", "chunk_note"):
            while self._rows.write(self._remove_slice, table, stone.doc_id):
                pass
        self._rows.write(self._rows.execute, "DELETE FROM document WHERE id = ? AND deleted_ms > 0", (stone.doc_id,))

    def remove_empty_datasets(self) -> int:
        gone = self._rows.write(
            self._rows.execute,
            "DELETE FROM knowledgebase WHERE deleted_ms > 0"
            " AND NOT EXISTS (SELECT 1 FROM document d WHERE d.kb_id = knowledgebase.id)",
        )
        return int(gone.rowcount)

    def remove_ended(self) -> int:
        """A slice of timelines and tasks that ended longer ago than they are kept. Returns how many lines went."""
        return self._rows.write(self._remove_ended)

    def remove_answers(self) -> int:
        gone = self._rows.write(
            self._rows.execute,
            f"DELETE FROM idempotency WHERE create_ms < {self._rows.now_ms} - ?",
            (self._keep_answers_ms,),
        )
        return int(gone.rowcount)

    def keep_records(self, *, silent_ms: int) -> None:
        """Note which executors are silent for so long, forget those that ended long ago, and put the counts of each
        minute together."""
        self._registry.mark_silent(silent_ms)
        self._registry.forget(_EXECUTORS_KEPT_MS)
        self._tallies.fold()

    def _remove_slice(self, table: str, doc_id: str) -> int:
        key = _KEYS.get(table, "id")
        found = self._rows.rows(f"SELECT {key} FROM {table} WHERE doc_id = ? LIMIT {_SLICE}", (doc_id,))
        ids = [row[0] for row in found]
        if ids:
            self._rows.execute(f"DELETE FROM {table} WHERE doc_id = ? AND {key} IN ({marks(ids)})", (doc_id, *ids))
        return len(ids)

    def _remove_ended(self) -> int:
        """Timelines grow in order of time, so the oldest lines have the smallest numbers. A task goes with its first
        line, if it has ended; its later lines follow in their turn."""
        old = self._rows.rows(
            f"SELECT id, task_id FROM task_event WHERE id IN (SELECT id FROM (SELECT id FROM task_event ORDER BY id"
            f" LIMIT {_SLICE}) AS oldest) AND at_ms < {self._rows.now_ms} - ?",
            (self._keep_tasks_ms,),
        )
        if not old:
            return 0
        events, tasks = [row[0] for row in old], sorted({row[1] for row in old})
        ended = ", ".join(str(int(state)) for state in TERMINAL_TASK_STATES)
        self._rows.execute(f"DELETE FROM task WHERE id IN ({marks(tasks)}) AND state IN ({ended})", tasks)
        self._rows.execute(f"DELETE FROM task_event WHERE id IN ({marks(events)})", events)
        return len(events)
