"""What became of the tasks that an executor held when it was lost: from the timelines of these tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from api.db.database import Rows
from api.db.services.task_sql import marks
from common.task_state import TaskState

# The most tasks that are told of one by one for one executor; the counts are of all.
MOST_TOLD = 20


class Fate(StrEnum):
    """`HELD`: nobody has taken it from the lost executor yet: its lease runs. `GONE`: deleted with its document."""

    HELD = "held"
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    GONE = "gone"


_FATES = {
    TaskState.PENDING: Fate.WAITING,
    TaskState.RUNNING: Fate.RUNNING,
    TaskState.PAUSED: Fate.PAUSED,
    TaskState.CANCEL: Fate.CANCELLED,
    TaskState.DONE: Fate.DONE,
    TaskState.FAIL: Fate.FAILED,
}


@dataclass(frozen=True)
class LostTask:
    """`by` is the executor that has it now or ended it."""

    task_id: str
    fate: Fate
    by: str = ""
    document_id: str = ""
    document_name: str = ""
    dataset_id: str = ""
    tenant_id: str = ""
    task_type: str = ""
    from_page: int = 0
    to_page: int = 0
    error_code: str = ""


_COLUMNS = (
    "t.state, t.owner, t.doc_id, d.name, t.kb_id, t.tenant_id, t.task_type, t.from_page, t.to_page, t.error_code"
    " FROM task t JOIN document d ON d.id = t.doc_id"
)


class ExecutorFates:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def of(self, owners: Sequence[str]) -> dict[str, list[LostTask]]:
        """By owner; what it still holds first, then in the order in which they were lost."""
        if not owners:
            return {}
        return self._rows.read(self._of, owners)

    def _of(self, owners: Sequence[str]) -> dict[str, list[LostTask]]:
        found: dict[str, list[LostTask]] = {owner: [] for owner in owners}
        for task_id, *rest in self._rows.rows(
            f"SELECT t.id, {_COLUMNS} WHERE t.state = {int(TaskState.RUNNING)} AND t.owner IN ({marks(owners)})",
            owners,
        ):
            found[rest[1]].append(_lost(task_id, rest, Fate.HELD))
        lost = self._rows.rows(
            f"SELECT owner, task_id, MAX(at_ms) FROM lost_task WHERE owner IN ({marks(owners)})"
            " GROUP BY owner, task_id ORDER BY MAX(at_ms), task_id",
            owners,
        )
        tasks = self._tasks(sorted({task_id for _, task_id, _ in lost}))
        for owner, task_id, _ in lost:
            found[owner].append(tasks.get(task_id, LostTask(task_id, Fate.GONE)))
        return found

    def _tasks(self, task_ids: Sequence[str]) -> dict[str, LostTask]:
        tasks: dict[str, LostTask] = {}
        for start in range(0, len(task_ids), 500):
            part = task_ids[start : start + 500]
            for task_id, *rest in self._rows.rows(f"SELECT t.id, {_COLUMNS} WHERE t.id IN ({marks(part)})", part):
                tasks[task_id] = _lost(task_id, rest, _FATES[TaskState(rest[0])])
        return tasks


def _lost(task_id: str, row: Sequence[object], fate: Fate) -> LostTask:
    _, owner, *rest = row
    return LostTask(task_id, fate, str(owner).partition(":")[0], *rest)  # type: ignore[arg-type]
