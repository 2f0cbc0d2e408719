"""The dead letters: failed tasks with their cause, for those who replay or discard them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from api.db.database import Rows
from api.db.services.task_sql import marks
from common.task_state import TaskState

_FAILED = f"t.state = {int(TaskState.FAIL)}"


@dataclass(frozen=True)
class FailedTask:
    id: str
    document_id: str
    document_name: str
    dataset_id: str
    task_type: str
    from_page: int
    to_page: int
    generation: int
    is_current: bool
    error_code: str
    error_message: str
    end_ms: int


@dataclass(frozen=True)
class FailedFilter:
    """All that are given must fit."""

    task_ids: Sequence[str] = ()
    document_ids: Sequence[str] = ()
    error_code: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.task_ids or self.document_ids or self.error_code)


class FailedService:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def by_cause(self, tenant_id: str) -> dict[str, int]:
        found = self._rows.read(
            self._rows.rows,
            f"SELECT t.error_code, COUNT(*) FROM task t WHERE {_FAILED} AND t.tenant_id = ?"
            " GROUP BY t.error_code ORDER BY COUNT(*) DESC, t.error_code",
            (tenant_id,),
        )
        return {str(code): int(count) for code, count in found}

    def find(self, tenant_id: str, wanted: FailedFilter, limit: int) -> list[FailedTask]:
        """Newest first."""
        conditions, params = [_FAILED, "t.tenant_id = ?"], [tenant_id]
        for column, values in (("t.id", wanted.task_ids), ("t.doc_id", wanted.document_ids)):
            if values:
                conditions.append(f"{column} IN ({marks(values)})")
                params += values
        if wanted.error_code:
            conditions.append("t.error_code = ?")
            params.append(wanted.error_code)
        found = self._rows.read(
            self._rows.rows,
            "SELECT t.id, t.doc_id, d.name, t.kb_id, t.task_type, t.from_page, t.to_page, t.generation,"
            " t.generation = d.generation, t.error_code, t.error_message, t.end_at"
            " FROM task t JOIN document d ON d.id = t.doc_id"
            f" WHERE {' AND '.join(conditions)} AND d.deleted_ms = 0 ORDER BY t.end_at DESC, t.id LIMIT ?",
            (*params, limit),
        )
        names = FailedTask.__dataclass_fields__
        return [FailedTask(**dict(zip(names, row, strict=True)) | {"is_current": bool(row[8])}) for row in found]
