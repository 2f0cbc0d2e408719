"""What the ranges of a generation brought, as its tasks tell it: what a parse that changes nothing, or that another
document was like, goes by. A range whose chunks somebody edited has no digest there any more."""

from __future__ import annotations

import msgspec

from api.db.database import Rows
from common.task_state import DocumentRun, TaskState, TaskType, chunk_task_no

# Read to the end, and searched. Pages that could not be read are worth another try.
UNTOUCHED = f"deleted_ms = 0 AND run = {int(DocumentRun.DONE)} AND generation = active_generation AND failed_pages = 0"


class ReadRange(msgspec.Struct, frozen=True):
    task_id: str
    task_type: TaskType
    from_page: int
    to_page: int
    digest: str
    claim_no: int
    chunks: int
    tokens: int

    @property
    def claim(self) -> tuple[int, int]:
        """As its chunks name it: (task_no, claim_no)."""
        return chunk_task_no(self.task_type, self.from_page), self.claim_no


def read_ranges(rows: Rows, doc_id: str, generation: int) -> list[ReadRange] | None:
    """In order. None where one of them is not done, or none is there."""
    found = rows.rows(
        "SELECT id, task_type, from_page, to_page, digest, claim_no, chunk_count, token_count, state FROM task"
        f" WHERE doc_id = ? AND generation = ? AND task_type != '{TaskType.FINISH}' ORDER BY from_page",
        (doc_id, generation),
    )
    # Where there were several ranges, the prepare task only found them.
    read = [task for task in found if task[1] == TaskType.RANGE] or found
    if not read or any(task[-1] != TaskState.DONE for task in read):
        return None
    return [ReadRange(task[0], TaskType(task[1]), *task[2:-1]) for task in read]
