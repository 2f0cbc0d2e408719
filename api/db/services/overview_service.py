"""Counts for those who look at the whole: documents and tasks by state."""

from __future__ import annotations

from api.db.database import Rows
from common.task_state import DocumentRun, TaskState


class OverviewService:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def documents_by_run(self) -> dict[str, int]:
        found = self._rows.read(
            self._rows.rows, "SELECT run, COUNT(*) FROM document WHERE deleted_ms = 0 GROUP BY run ORDER BY run"
        )
        return {DocumentRun(run).name: int(count) for run, count in found}

    def tasks_by_state(self) -> dict[str, int]:
        found = self._rows.read(self._rows.rows, "SELECT state, COUNT(*) FROM task GROUP BY state ORDER BY state")
        return {TaskState(state).name: int(count) for state, count in found}
