"""The states of jobs as conditions on rows: the same that job_views.py tells of them."""

from __future__ import annotations

from collections.abc import Sequence

from api.db.services.job_views import JobStatus
from common.task_state import DocumentRun, TaskState, TaskType

_RUNS = {
    JobStatus.UNSTARTED: DocumentRun.UNSTART,
    JobStatus.DONE: DocumentRun.DONE,
    JobStatus.FAILED: DocumentRun.FAIL,
    JobStatus.CANCELLED: DocumentRun.CANCEL,
}
# One that is at work, that waits after an error, or that is the last one.
_HAS_TELLING_TASK = (
    "EXISTS (SELECT 1 FROM task t WHERE t.doc_id = document.id AND t.generation = document.generation"
    f" AND (+t.state = {int(TaskState.RUNNING)} OR +t.state = {int(TaskState.PENDING)}"
    f" AND (t.error_code != '' OR t.task_type = '{TaskType.FINISH}')))"
)
_IS_UNDER_WAY = f"(done_tasks > 0 OR failed_tasks > 0 OR {_HAS_TELLING_TASK})"
_OF_RUNNING = {
    JobStatus.PAUSED: "paused = 1",
    JobStatus.RUNNING: f"paused = 0 AND {_IS_UNDER_WAY}",
    JobStatus.QUEUED: f"paused = 0 AND NOT {_IS_UNDER_WAY}",
}


def deciding_runs(statuses: Sequence[JobStatus]) -> set[DocumentRun] | None:
    """The `run`s of documents of which one of these is told; None where that is not all that decides."""
    return _runs(statuses) if len(_on_their_way(statuses)) in (0, len(_OF_RUNNING)) else None


def job_condition(statuses: Sequence[JobStatus]) -> str:
    """Documents of which one of these is told. Where their `run` alone decides, nothing else is looked at."""
    named = f"run IN ({', '.join(str(int(run)) for run in sorted(_runs(statuses)))})"
    if deciding_runs(statuses) is not None:
        return named
    others = f"run != {int(DocumentRun.RUNNING)}"
    return f"{named} AND ({' OR '.join([others, *(f'({one})' for one in _on_their_way(statuses))])})"


def _runs(statuses: Sequence[JobStatus]) -> set[DocumentRun]:
    return {_RUNS.get(status, DocumentRun.RUNNING) for status in statuses}


def _on_their_way(statuses: Sequence[JobStatus]) -> list[str]:
    """What else holds for each of these that is a state of running documents."""
    return [condition for status, condition in _OF_RUNNING.items() if status in statuses]
