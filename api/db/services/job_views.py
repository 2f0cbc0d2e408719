"""A job as it is shown: a document and its newest parse, told as states, numbers and a sentence.

Called within a read: any number of documents costs a fixed number of queries a tenant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from api.db.database import Rows
from api.db.models import Document
from api.db.services.document_facts import facts_of
from api.db.services.status_facts import OpenTask, StatusFacts
from api.db.services.status_text import progress_of, status_text
from common.errors import BY_CODE, InvalidInput, PagesOutside, Verdict
from common.task_state import DocumentRun, TaskState, TaskType
from rag.flow.split import asked_units
from rag.parser.blocks import Unit

_RANGES_SHOWN = 16


class JobStatus(StrEnum):
    """`queued`: nothing of it is at work or done yet. `unstarted`: uploaded, and nobody asked for more."""

    UNSTARTED = "unstarted"
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DELETED = "deleted"


FINAL = (JobStatus.DONE, JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.DELETED)
_BY_RUN = {
    DocumentRun.UNSTART: JobStatus.UNSTARTED,
    DocumentRun.DONE: JobStatus.DONE,
    DocumentRun.FAIL: JobStatus.FAILED,
    DocumentRun.CANCEL: JobStatus.CANCELLED,
}


@dataclass(frozen=True)
class WorkRange:
    """Pages, rows or slides in work, as people count: both ends from 1."""

    unit: Unit
    first: int
    last: int


@dataclass(frozen=True)
class UnitCount:
    """Of the pages, rows or slides that were asked for, how many have been read."""

    unit: Unit
    done: int
    total: int


@dataclass(frozen=True)
class JobError:
    """`is_permanent`: the file itself is the cause, and another try would end the same."""

    code: str
    message: str
    is_permanent: bool


@dataclass(frozen=True)
class JobView:
    """`queue_position` counts from 1, and is there only while all of it waits. `eta_s` is None where nobody knows."""

    id: str
    tenant_id: str
    dataset_id: str
    name: str
    size_bytes: int
    priority: int
    status: JobStatus
    progress: float
    step: str
    message: str
    ranges: Sequence[WorkRange]
    attempt: int
    max_attempts: int
    queue_position: int | None
    eta_s: int | None
    done_tasks: int
    total_tasks: int
    reused_tasks: int
    units: UnitCount | None
    chunk_count: int
    token_count: int
    error: JobError | None
    bad_pages: Sequence[tuple[int, int, str]]
    create_ms: int
    begin_ms: int
    end_ms: int
    update_ms: int

    @property
    def is_final(self) -> bool:
        return self.status in FINAL


def job_views(rows: Rows, found: Sequence[Document], max_attempts: int) -> list[JobView]:
    """In the order of the documents, of however many tenants; a deleted one is told as such."""
    facts = facts_of(rows, found, max_attempts)
    return [_view(row, facts[row.id]) for row in found]


def _view(row: Document, facts: StatusFacts) -> JobView:
    status = JobStatus.DELETED if row.deleted_ms else _status(facts)
    at_work = _at_work(facts)
    growing = facts.run is DocumentRun.RUNNING and facts.is_searchable_run
    return JobView(
        id=row.id,
        tenant_id=row.tenant_id,
        dataset_id=row.kb_id,
        name=row.name,
        size_bytes=row.size_bytes,
        priority=row.priority,
        status=status,
        progress=_progress(facts),
        step=_step(status, facts, at_work),
        message="deleted by the user" if row.deleted_ms else status_text(facts) or "uploaded, not started",
        ranges=_ranges(facts, at_work),
        attempt=1 + max((t.attempt for t in facts.tasks), default=0),
        max_attempts=facts.max_attempts,
        queue_position=_queue_position(status, facts),
        eta_s=None if facts.left_s is None or status in FINAL else round(facts.left_s),
        done_tasks=row.done_tasks,
        total_tasks=row.total_tasks,
        reused_tasks=row.reused_tasks,
        units=_units(row, facts),
        chunk_count=row.run_chunks if growing else row.chunk_count,
        token_count=row.run_tokens if growing else row.token_count,
        error=_error(facts) if status is JobStatus.FAILED else None,
        bad_pages=facts.bad_pages,
        create_ms=row.create_ms,
        begin_ms=row.begin_ms,
        end_ms=row.end_ms,
        update_ms=max(row.update_ms, row.deleted_ms),
    )


def _units(row: Document, facts: StatusFacts) -> UnitCount | None:
    """None before anybody has looked at the file, and for files that have no parts to count."""
    known = int((row.profile or {}).get("units", 0))
    if facts.unit is Unit.WHOLE or not known:
        return None
    try:
        total = asked_units(facts.unit, known, row.parser_config.get("pages"))
    except (InvalidInput, PagesOutside):
        return None  # the parse fails of it, and says so
    return UnitCount(facts.unit, min(facts.units, total), total)


def _status(facts: StatusFacts) -> JobStatus:
    if facts.run is not DocumentRun.RUNNING:
        return _BY_RUN[facts.run]
    if facts.is_paused:
        return JobStatus.PAUSED
    return JobStatus.RUNNING if facts.tasks or facts.done_tasks or facts.failed_tasks else JobStatus.QUEUED


def _at_work(facts: StatusFacts) -> list[OpenTask]:
    running = [t for t in facts.tasks if t.state == TaskState.RUNNING and t.lease_until_ms >= facts.now_ms]
    return sorted(running, key=lambda t: (t.from_page, t.id))


def _step(status: JobStatus, facts: StatusFacts, at_work: Sequence[OpenTask]) -> str:
    """One word or two for what is done now; the sentence says the rest."""
    if status is JobStatus.QUEUED:
        return "waiting"
    if status is not JobStatus.RUNNING:
        return str(status)
    reading = [t for t in at_work if t.task_type != TaskType.FINISH]
    if reading:
        return reading[0].stage or "starting"
    if any(t.task_type == TaskType.FINISH for t in facts.tasks):
        return "making findable"
    return "waiting to try again" if facts.tasks else "waiting"


def _ranges(facts: StatusFacts, at_work: Sequence[OpenTask]) -> list[WorkRange]:
    if facts.unit is Unit.WHOLE:
        return []
    ranges = [t for t in at_work if t.task_type == TaskType.RANGE]
    return [WorkRange(facts.unit, t.from_page + 1, t.to_page) for t in ranges[:_RANGES_SHOWN]]


def _queue_position(status: JobStatus, facts: StatusFacts) -> int | None:
    return facts.queued_before + 1 if status is JobStatus.QUEUED and facts.queued_before is not None else None


def _progress(facts: StatusFacts) -> float:
    """Between 0 and 1, also for what was ended early: as far as it came."""
    if facts.run in (DocumentRun.FAIL, DocumentRun.CANCEL):
        return round(facts.done_tasks / facts.total_tasks, 4) if facts.total_tasks else 0.0
    return progress_of(facts)


def _error(facts: StatusFacts) -> JobError:
    known = BY_CODE.get(facts.error_code)
    is_permanent = known is not None and known.verdict is Verdict.PERMANENT
    return JobError(facts.error_code, facts.error_message, is_permanent)
