"""The states of jobs as conditions on rows: the same that job_views.py tells of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from peewee import fn

from api.db.models import Document, Task
from api.db.services.job_views import JobStatus
from common.task_state import DocumentRun, TaskState, TaskType

_RUNS = {
    JobStatus.UNSTARTED: DocumentRun.UNSTART,
    JobStatus.DONE: DocumentRun.DONE,
    JobStatus.FAILED: DocumentRun.FAIL,
    JobStatus.CANCELLED: DocumentRun.CANCEL,
}


def job_condition(statuses: Sequence[JobStatus]) -> Any:
    """Documents of which one of these is told."""
    return reduce(or_, (_condition(status) for status in statuses))


def _condition(status: JobStatus) -> Any:
    if status in _RUNS:
        return Document.run == int(_RUNS[status])
    running = Document.run == int(DocumentRun.RUNNING)
    if status is JobStatus.PAUSED:
        return running & (Document.paused == 1)
    is_under_way = (Document.done_tasks > 0) | (Document.failed_tasks > 0) | _has_telling_task()
    return running & (Document.paused == 0) & (is_under_way if status is JobStatus.RUNNING else ~is_under_way)


def _has_telling_task() -> Any:
    """One that is at work, that waits after an error, or that is the last one."""
    waits = (Task.state == int(TaskState.PENDING)) & ((Task.error_code != "") | (Task.task_type == TaskType.FINISH))
    which = (Task.doc_id == Document.id) & (Task.generation == Document.generation)
    return fn.EXISTS(Task.select(Task.id).where(which & ((Task.state == int(TaskState.RUNNING)) | waits)))
