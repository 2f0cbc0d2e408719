"""A job as JSON: the same object where it is asked for, listed, and followed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from api.db.services.job_views import JobStatus, JobView
from common.task_state import Priority


def job_json(job: JobView) -> dict[str, Any]:
    """`eta_s` alone changes from one second to the next."""
    return {
        "job_id": job.id,
        "document_id": job.id,
        "dataset_id": job.dataset_id,
        "name": job.name,
        "status": str(job.status),
        "progress": job.progress,
        "step": job.step,
        "message": job.message,
        "is_final": job.is_final,
        "ranges": [{"unit": str(r.unit), "first": r.first, "last": r.last} for r in job.ranges],
        "tasks": {"done": job.done_tasks, "total": job.total_tasks, "reused": job.reused_tasks},
        "units": {"unit": str(job.units.unit), "done": job.units.done, "total": job.units.total} if job.units else None,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "queue_position": job.queue_position,
        "eta_s": job.eta_s,
        "result": _result(job),
        "error": _error(job),
        "priority": Priority(job.priority).name.lower(),
        "size_bytes": job.size_bytes,
        "created_at": time_text(job.create_ms),
        "started_at": time_text(job.begin_ms),
        "ended_at": time_text(job.end_ms) if job.is_final else None,
        "links": _links(job),
    }


def _result(job: JobView) -> dict[str, Any] | None:
    """What can be found: all of it when it is done, a part when it failed on the way."""
    if job.status is not JobStatus.DONE and not (job.status is JobStatus.FAILED and job.chunk_count):
        return None
    return {
        "chunk_count": job.chunk_count,
        "token_count": job.token_count,
        "is_partial": job.status is not JobStatus.DONE or bool(job.bad_pages),
        "unread": [{"first": first + 1, "last": end, "reason": reason} for first, end, reason in job.bad_pages],
        "chunks": _chunks_path(job),
    }


def _error(job: JobView) -> dict[str, Any] | None:
    if job.error is None:
        return None
    return {"code": job.error.code, "message": job.error.message, "is_permanent": job.error.is_permanent}


def _links(job: JobView) -> dict[str, str]:
    path = f"/api/v1/jobs/{job.id}"
    return {"self": path, "events": f"{path}/events", "websocket": f"/ws/jobs/{job.id}", "chunks": _chunks_path(job)}


def _chunks_path(job: JobView) -> str:
    return f"/api/v1/datasets/{job.dataset_id}/documents/{job.id}/chunks"


def time_text(epoch_ms: int) -> str | None:
    """RFC 3339, in UTC."""
    if not epoch_ms:
        return None
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
