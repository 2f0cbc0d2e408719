"""What changed for those who follow jobs and datasets: one look for all of them together, through indexes.

A row's time of change is taken inside its transaction, and seen when that has committed: so every look goes back a
little further than the last one ended, and whoever asks must not mind to hear of a change twice."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from api.db.database import Rows
from api.db.models import Document
from api.db.records import fetch
from api.db.services.job_views import JobView, job_views
from api.db.services.task_sql import marks
from common.settings import TaskSettings
from common.task_state import DocumentRun, TaskState

# Longer than a transaction waits for its locks and commits.
LATE_MS = 10_000
_SLICE = 500


@dataclass(frozen=True)
class Mark:
    """What tells whether a document may have changed."""

    dataset_id: str
    is_running: bool
    update_ms: int
    deleted_ms: int


@dataclass(frozen=True)
class Look:
    """`marks` are of the jobs asked for and of what changed in the datasets; `at_work` are the documents of these that
    an executor works on."""

    now_ms: int
    marks: dict[str, Mark]
    at_work: set[str]


class JobChanges:
    def __init__(self, rows: Rows, settings: TaskSettings) -> None:
        self._rows = rows
        self._max_attempts = settings.max_attempts

    def look(self, job_ids: Collection[str], dataset_ids: Collection[str], since_ms: int | None) -> Look:
        """`since_ms` is by the database's clock; None is now. A job that is not there has no mark."""
        return self._rows.read(self._look, sorted(job_ids), sorted(dataset_ids), since_ms)

    def owed(self, dataset_id: str, since_ms: int | None, most: int) -> list[str]:
        """The documents whose state somebody who last heard at `since_ms` must be told: those that changed, and those
        that are on their way. At most one more than `most`."""
        return self._rows.read(self._owed, dataset_id, since_ms, most)

    def states(self, doc_ids: Sequence[str]) -> dict[str, JobView]:
        """What is not there any more is left out."""
        found: dict[str, JobView] = {}
        for start in range(0, len(doc_ids), _SLICE):
            part = list(doc_ids[start : start + _SLICE])
            found |= {view.id: view for view in self._rows.read(self._states, part)}
        return found

    def let_go(self) -> None:
        """Nobody follows: the thread that looked needs no connection."""
        self._rows.close_connection()

    def _look(self, job_ids: Sequence[str], dataset_ids: Sequence[str], since_ms: int | None) -> Look:
        now_ms = self._rows.clock()
        early_ms = max(1, (now_ms if since_ms is None else since_ms) - LATE_MS)
        seen: dict[str, Mark] = {}
        for start in range(0, len(job_ids), _SLICE):
            part = job_ids[start : start + _SLICE]
            seen |= self._marks(f"id IN ({marks(part)})", part)
        for dataset_id in dataset_ids:
            seen |= self._marks("kb_id = ? AND deleted_ms = 0 AND update_ms >= ?", (dataset_id, early_ms))
            seen |= self._marks("kb_id = ? AND deleted_ms >= ?", (dataset_id, early_ms))
        return Look(now_ms, seen, self._at_work(dataset_ids))

    def _marks(self, which: str, params: Sequence[object]) -> dict[str, Mark]:
        columns = f"id, kb_id, run = {int(DocumentRun.RUNNING)}, update_ms, deleted_ms"
        found = self._rows.table(columns, f"FROM document WHERE {which}", params)
        return {doc_id: Mark(kb, bool(runs), updated, deleted) for doc_id, kb, runs, updated, deleted in found}

    def _at_work(self, dataset_ids: Sequence[str]) -> set[str]:
        """There are not more running tasks than executors have slots."""
        if not dataset_ids:
            return set()
        found = self._rows.rows(f"SELECT doc_id, kb_id FROM task WHERE state = {int(TaskState.RUNNING)}")
        wanted = set(dataset_ids)
        return {str(doc_id) for doc_id, kb_id in found if kb_id in wanted}

    def _owed(self, dataset_id: str, since_ms: int | None, most: int) -> list[str]:
        parts: list[tuple[str, tuple[object, ...]]] = [
            (f"kb_id = ? AND deleted_ms = 0 AND run = {int(DocumentRun.RUNNING)}", (dataset_id,))
        ]
        if since_ms is not None:
            early_ms = max(1, since_ms - LATE_MS)
            parts.append(("kb_id = ? AND deleted_ms = 0 AND update_ms >= ?", (dataset_id, early_ms)))
            parts.append(("kb_id = ? AND deleted_ms >= ?", (dataset_id, early_ms)))
        owed: dict[str, None] = {}
        for which, params in parts:
            found = self._rows.rows(f"SELECT id FROM document WHERE {which} LIMIT {most + 1}", params)
            owed |= dict.fromkeys(str(doc_id) for (doc_id,) in found)
        return list(owed)[: most + 1]

    def _states(self, doc_ids: list[str]) -> list[JobView]:
        found = fetch(self._rows, Document, f"WHERE id IN ({marks(doc_ids)})", doc_ids)
        return job_views(self._rows, found, self._max_attempts)
