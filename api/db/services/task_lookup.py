"""Which document a task works for: REST stops documents, and clients of RAGFlow also name tasks."""

from __future__ import annotations

from api.db.database import Rows
from common.task_state import TERMINAL_TASK_STATES


class TaskLookup:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def document_at_work(self, tenant_id: str, task_id: str) -> str | None:
        """None where the task is unknown, another tenant's, or has ended."""
        ended = ", ".join(str(int(state)) for state in TERMINAL_TASK_STATES)
        found = self._rows.read(
            self._rows.rows,
            f"SELECT t.doc_id FROM task t JOIN document d ON d.id = t.doc_id AND d.generation = t.generation"
            f" WHERE t.id = ? AND t.tenant_id = ? AND t.state NOT IN ({ended}) AND d.deleted_ms = 0",
            (task_id, tenant_id),
        )
        return str(found[0][0]) if found else None
