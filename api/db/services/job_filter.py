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
    if 0 < sum(status in statuses for status in _OF_RUNNING) < len(_OF_RUNNING):
        return None
    return {_RUNS.get(status, DocumentRun.RUNNING) for status in statuses}


def job_condition(statuses: Sequence[JobStatus]) -> str:
    """Documents of which one of these is told. Where their `run` alone decides, nothing else is looked at."""
    runs = {_RUNS.get(status, DocumentRun.RUNNING) for status in statuses}
    named = f"run IN ({', '.join(str(int(run)) for run in sorted(runs))})"
    on_their_way = [_OF_RUNNING[status] for status in _OF_RUNNING if status in statuses]
    if len(on_their_way) in (0, len(_OF_RUNNING)):
        return named
    others = f"run != {int(DocumentRun.RUNNING)}"
    return f"{named} AND ({' OR '.join([others, *(f'({one})' for one in on_their_way)])})"
