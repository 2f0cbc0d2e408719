"""Failed tasks: GET /tasks/failed; POST /tasks/replay, /tasks/discard for one, a document's, or all of a cause."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Annotated

from flask import Blueprint, Response
from pydantic import Field

from api.apps.auth import caller, require_caller
from api.apps.envelope import ARGUMENT, ApiError, expect_full, full
from api.apps.openapi.operation import Surface, describe
from api.apps.requests import Loose, PageSize, id_list, loose_body, page_size, params
from api.apps.services import services
from api.apps.shapes.documents import Acted, FailedTasks
from api.db.services.failed_service import FailedFilter

bp = Blueprint("tasks", __name__)
bp.before_request(expect_full)
bp.before_request(require_caller)

_AT_MOST = 10_000
_TAG = "Tasks"


class FailedQuery(Loose):
    document_id: Annotated[list[str], Field(description="May be repeated")] = Field(default_factory=list)
    error_code: str = ""
    page_size: PageSize = 30


class WhichFailed(Loose):
    """All that are given must fit, and one must be."""

    task_ids: list[str] = Field(default_factory=list)
    document_ids: list[str] = Field(default_factory=list)
    error_code: str = ""


@bp.get("/tasks/failed")
@describe(_TAG, "Tasks that failed, by cause", surface=Surface.FULL, query=FailedQuery, answer=FailedTasks)
def failed() -> Response:
    tenant_id = caller().tenant_id
    wanted = FailedFilter(document_ids=params().getlist("document_id"), error_code=params().get("error_code", ""))
    tasks = services().failed.find(tenant_id, wanted, page_size())
    return full({"causes": services().failed.by_cause(tenant_id), "tasks": [asdict(task) for task in tasks]})


@bp.post("/tasks/replay")
@describe(_TAG, "Let failed tasks run again", surface=Surface.FULL, body=WhichFailed, answer=Acted)
def replay() -> Response:
    return _act(services().control.replay)


@bp.post("/tasks/discard")
@describe(_TAG, "Forget failed tasks", surface=Surface.FULL, body=WhichFailed, answer=Acted)
def discard() -> Response:
    return _act(services().control.discard)


def _act(act: Callable[[Sequence[str]], list[str] | int]) -> Response:
    found = services().failed.find(caller().tenant_id, _wanted(), _AT_MOST)
    done = act([task.id for task in found])
    count = done if isinstance(done, int) else len(done)
    return full({"success_count": count, "refused_count": len(found) - count})


def _wanted() -> FailedFilter:
    body = loose_body()
    error_code = body.get("error_code") or ""
    if not isinstance(error_code, str):
        raise ApiError(ARGUMENT, "`error_code` should be a string")
    wanted = FailedFilter(
        task_ids=id_list(body, "task_ids") if body.get("task_ids") else (),
        document_ids=id_list(body, "document_ids") if body.get("document_ids") else (),
        error_code=error_code,
    )
    if wanted.is_empty:
        raise ApiError(ARGUMENT, "`task_ids`, `document_ids` or `error_code` is required")
    return wanted
