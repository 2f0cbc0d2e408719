"""Documents started and stopped without naming their dataset, and tasks stopped by their id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from flask import Blueprint, Response
from pydantic import Field

from api.apps.access import tenants, usable_documents
from api.apps.auth import require_caller
from api.apps.envelope import ARGUMENT, AUTHENTICATION, DATA, UNCAUGHT, ApiError, expect_full, full
from api.apps.openapi.operation import Surface, describe
from api.apps.parsing import in_slices
from api.apps.requests import Loose, id_list, loose_body, shown
from api.apps.services import services

bp = Blueprint("ingest", __name__)
bp.before_request(expect_full)
bp.before_request(require_caller)

_START, _CANCEL = "1", "2"


class Ingest(Loose):
    doc_ids: Annotated[list[str], Field(min_length=1)]
    run: Annotated[Literal["1", "2", 1, 2], Field(description="1: start, 2: cancel")]
    delete: Annotated[bool, Field(description="Without an effect: old chunks go when the new ones are there")] = False
    apply_kb: Annotated[bool, Field(description="Take over the dataset's `parser_config`")] = False


class TaskAction(Loose):
    action: Literal["stop"]


@bp.post("/documents/ingest")
@describe(
    "Parsing",
    "Start or cancel parses without naming their dataset",
    surface=Surface.FULL,
    body=Ingest,
    answer=Literal[True],
)
def ingest() -> Response:
    """`delete` changes nothing: old chunks go when the new ones are there. `apply_kb` takes over the dataset's
    parser_config."""
    body = loose_body()
    for key in ("doc_ids", "run"):
        if key not in body:
            raise ApiError(UNCAUGHT, f"`{key}` is required")
    ids = list(dict.fromkeys(id_list(body, "doc_ids")))
    run = _run(body)
    known = usable_documents(ids)
    if len(known) < len(ids):
        raise ApiError(AUTHENTICATION, "No authorization.")
    if run == _START:
        if body.get("apply_kb") is True:
            services().document_changes.use_dataset_config(ids)
        in_slices(services().parsing.start, ids)
    elif len(in_slices(services().parsing.stop, ids)) < len(ids):
        raise ApiError(DATA, "Cannot cancel a task that is not in RUNNING status")
    return full(True)


@bp.post("/tasks/<task_id>/cancel")
@describe("Parsing", "Stop the parse that a task is part of", surface=Surface.FULL, answer=Literal[True])
def cancel(task_id: str) -> Response:
    """True also for a task that is unknown. A task is a part of a document's parse, which ends as a whole."""
    found = (services().tasks.document_at_work(tenant_id, task_id) for tenant_id in tenants())
    document_id = next((one for one in found if one is not None), None)
    if document_id is not None and usable_documents([document_id]):
        services().parsing.stop([document_id])
    return full(True)


@bp.patch("/tasks/<task_id>")
@describe(
    "Parsing",
    "Stop the parse that a task is part of, by an action",
    surface=Surface.FULL,
    body=TaskAction,
    answer=Literal[True],
)
def change(task_id: str) -> Response:
    action = loose_body().get("action")
    if action != "stop":
        raise ApiError(ARGUMENT, f"Only 'stop' is supported as `action`, not {shown(action)}")
    return cancel(task_id)


def _run(body: Mapping[str, Any]) -> str:
    given = str(body["run"])
    if given not in (_START, _CANCEL):
        raise ApiError(ARGUMENT, "`run` should be 1 (start) or 2 (cancel)")
    return given
