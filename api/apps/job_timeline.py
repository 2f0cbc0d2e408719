"""How a job went, task by task: GET /jobs/{id}/timeline. Errors come with what to do about them."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Any, Literal

from flask import Blueprint, Response, jsonify
from pydantic import Field

from api.apps import problems
from api.apps.access import tenant_of_document
from api.apps.auth import require_caller
from api.apps.job_json import time_text
from api.apps.openapi.operation import Surface, describe
from api.apps.problems import FieldError, wrong_fields
from api.apps.requests import Loose, params, shown
from api.apps.services import services
from api.apps.shapes.jobs import JobTimeline
from api.db.services.advice import advice
from api.db.services.timeline_service import TaskFilter, TimelineService
from api.db.services.timeline_views import Attempt, ShownState, Timeline, TimelineTask, UnreadPages
from common.errors import BY_CODE, Verdict
from common.task_state import TaskType

bp = Blueprint("job_timeline", __name__)
bp.before_request(require_caller)
problems.register(bp)

_MOST_TASKS = 200
_MOST = 10**9


class TimelineQuery(Loose):
    state: ShownState | Literal[""] = ""
    at: Annotated[int, Field(ge=0, le=_MOST, description="Only tasks that hold this page, row or slide")] = 0
    offset: Annotated[int, Field(ge=0, le=_MOST)] = 0
    limit: Annotated[int, Field(ge=0, le=_MOST_TASKS)] = 50


@bp.get("/jobs/<job_id>/timeline")
@describe(
    "Jobs",
    "How a job went, task by task",
    surface=Surface.PROBLEM,
    query=TimelineQuery,
    answer=JobTimeline,
    statuses=(400,),
)
def timeline(job_id: str) -> Response:
    box = services()
    found = TimelineService(box.datasets.rows, box.settings.tasks).get(tenant_of_document(job_id), job_id, _filter())
    return jsonify(timeline_json(found))


def _filter() -> TaskFilter:
    wrong: list[FieldError] = []
    state = params().get("state", "")
    if state and state not in tuple(ShownState):
        wrong.append(FieldError("state", f"should be one of {', '.join(ShownState)}, not {shown(state)}"))
    at = _number("at", 0, _MOST, wrong)
    offset = _number("offset", 0, _MOST, wrong)
    limit = _number("limit", 50, _MOST_TASKS, wrong)
    if wrong:
        raise wrong_fields(*wrong, status=HTTPStatus.BAD_REQUEST)
    return TaskFilter(offset, limit, ShownState(state) if state else None, at - 1 if at else None)


def _number(name: str, default: int, most: int, wrong: list[FieldError]) -> int:
    given = params().get(name, "")
    if not given:
        return default
    if given.isascii() and given.isdigit() and len(given) <= len(str(most)) and int(given) <= most:
        return int(given)
    wrong.append(FieldError(name, f"should be a number from 0 to {most}, not {shown(given)}"))
    return default


def timeline_json(timeline: Timeline) -> dict[str, Any]:
    """Units are counted from 1, and the last one is part of its range."""
    return {
        "job_id": timeline.document_id,
        "generation": timeline.generation,
        "is_searched": timeline.is_searched,
        "is_unchanged": timeline.is_unchanged,
        "unit": str(timeline.unit),
        "units": timeline.units,
        "now": time_text(timeline.now_ms),
        "max_attempts": timeline.max_attempts,
        "counts": {str(state): timeline.counts[state] for state in ShownState if timeline.counts.get(state)},
        "stages": dict(timeline.stages),
        "spans": [
            {"first": span.first + 1, "last": span.end, "state": str(span.state), "tasks": span.tasks}
            for span in timeline.spans
        ],
        "unread": _unread_json(timeline.unread),
        "total": timeline.matching,
        "tasks": [_task_json(task) for task in timeline.tasks],
    }


def _task_json(task: TimelineTask) -> dict[str, Any]:
    is_range = task.task_type is TaskType.RANGE
    return {
        "id": task.id,
        "type": str(task.task_type),
        "first": task.first + 1 if is_range else None,
        "last": task.end if is_range else None,
        "state": str(task.state),
        "stage": task.stage,
        "progress": round(task.progress, 4),
        "attempt": task.attempt + 1,
        "losses": task.losses,
        "executor": task.executor,
        "created_at": time_text(task.created_ms),
        "started_at": time_text(task.started_ms),
        "ended_at": time_text(task.ended_ms),
        "due_at": time_text(task.due_ms),
        "chunk_count": task.chunk_count,
        "error": _error_json(task.error_code, task.error_message),
        "unread": _unread_json(task.unread),
        "attempts": [_attempt_json(attempt) for attempt in task.attempts],
    }


def _attempt_json(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "executor": attempt.executor,
        "started_at": time_text(attempt.started_ms),
        "ended_at": time_text(attempt.ended_ms),
        "outcome": attempt.outcome,
        "error": _error_json(attempt.error_code, attempt.message),
        "stages": dict(attempt.stages),
    }


def _error_json(code: str, message: str) -> dict[str, str] | None:
    return {"code": code, "message": message, "advice": advice(code)} if code else None


def _unread_json(unread: Sequence[UnreadPages]) -> list[dict[str, Any]]:
    return [
        {"first": page.first + 1, "last": page.end, "code": page.code, "reason": page.reason, "advice": _reread(page)}
        for page in unread
    ]


def _reread(page: UnreadPages) -> str:
    """Pages that were left out belong to a task that is done: another parse tries them again, and reuses the rest."""
    known = BY_CODE.get(page.code)
    if known is not None and known.verdict is Verdict.PERMANENT:
        return advice(page.code)
    return f"{advice(page.code).replace('Replay it', 'Parse it again')} Parsing again reads only what is missing."
