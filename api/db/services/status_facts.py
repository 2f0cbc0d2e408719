"""What is known of a document when its status is told: its row, its open tasks, and its place in the queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from common.task_state import DocumentRun, TaskState
from rag.parser.blocks import Unit

# Beyond this many, the number of tasks in front is not counted any further.
QUEUE_HORIZON = 1000


@dataclass(frozen=True)
class Loss:
    """The executor that had the task before, and when it was taken from it."""

    executor: str
    at_ms: int


@dataclass(frozen=True)
class OpenTask:
    """A task of the running generation that has not ended. `stage` is what its executor last said; `loss` is there
    while the task waits, or is done again, because its executor was lost."""

    id: str
    task_type: str
    from_page: int
    to_page: int
    state: TaskState
    progress: float
    stage: str
    attempt: int
    run_after_ms: int
    waiting_since_ms: int
    executor: str
    begin_ms: int
    lease_until_ms: int
    claim_no: int
    error_code: str
    error_message: str
    loss: Loss | None = None


@dataclass(frozen=True)
class StatusFacts:
    """What the sentence is made from. `tasks` are the running ones and those that wait with an error. `queued_before`
    is the number of tasks in front of its first waiting one and `queued_s` how long these take; `left_s` is the time
    until its last range has ended. None is not known."""

    run: DocumentRun
    is_paused: bool
    is_searchable_run: bool
    unit: Unit
    units: int
    done_tasks: int
    total_tasks: int
    run_chunks: int
    chunk_count: int
    duration_s: float
    error_message: str
    now_ms: int
    max_attempts: int
    tasks: Sequence[OpenTask] = ()
    queued_before: int | None = None
    queued_s: float | None = None
    left_s: float | None = None
    is_executor_there: bool = True
    error_code: str = ""
    failed_tasks: int = 0
    former_chunks: int = 0
    reused_tasks: int = 0
    bad_pages: Sequence[tuple[int, int, str]] = ()
