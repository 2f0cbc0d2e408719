"""Jobs: POST /jobs takes a file and begins its parse at once; GET and DELETE /jobs/{id} tell of it and cancel it; and
what the pool of executors is doing. Plain HTTP statuses; what is refused is a problem (problems.py)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Response, jsonify

from api.apps import problems
from api.apps.access import acting_in, tenant_of_document, usable, usable_all
from api.apps.auth import caller, require_caller
from api.apps.job_json import job_json
from api.apps.job_requests import JobFields, JobForm, ListJobs, job_filter, job_form
from api.apps.once import once
from api.apps.openapi.operation import Surface, describe
from api.apps.services import services
from api.apps.shapes.jobs import Job, JobPage, Pool
from api.db.services.account_service import Caller
from api.db.services.document_service import NewDocument
from api.db.services.job_pool import JobPool
from api.db.services.job_service import JobService, NewJob
from rag.utils.object_store import StoredFile

bp = Blueprint("jobs", __name__)
bp.before_request(require_caller)
problems.register(bp)

_TAG = "Jobs"
_PROBLEM = Surface.PROBLEM


def jobs() -> JobService:
    box = services()
    return JobService(box.datasets.rows, box.datasets, box.documents, box.parsing, box.settings.tasks)


@bp.post("/jobs")
@describe(
    _TAG,
    "Submit a file",
    note="Stores it, begins its parse and answers at once.",
    surface=_PROBLEM,
    form=JobFields,
    answer=Job,
    status=202,
    statuses=(404,),
    is_once=True,
)
def create() -> tuple[Response, int, dict[str, str]]:
    form = job_form()
    who = acting_in(usable(form.dataset_id)) if form.dataset_id else caller()
    file = form.stream.keep(who.tenant_id)
    decides = [form.dataset_id, form.name, file.digest, form.chunk_method, form.parser_config, form.priority.name]
    job_id: str = once("jobs", json.dumps(decides), lambda: _created(who, form, file))
    shown = job_json(jobs().get(who.tenant_id, job_id))
    return jsonify(shown), 202, {"Location": shown["links"]["self"]}


def _created(who: Caller, form: JobForm, file: StoredFile) -> str:
    new = NewJob(
        NewDocument(form.name, file),
        dataset_id=form.dataset_id,
        chunk_method=form.chunk_method,
        parser_config=form.parser_config,
        priority=form.priority,
    )
    return jobs().create(who, new)


@bp.get("/jobs")
@describe(_TAG, "List jobs", surface=_PROBLEM, query=ListJobs, answer=JobPage, statuses=(400,))
def list_page() -> Response:
    wanted = job_filter()
    page = jobs().page(_tenant_of(wanted.dataset_id), wanted)
    shown = [job_json(job) for job in page.jobs]
    return jsonify({"total": page.total, "page": wanted.page, "page_size": wanted.page_size, "jobs": shown})


def _tenant_of(dataset_id: str) -> str:
    """Of a dataset that a team shares, its owner; of an unknown one there are no jobs."""
    found = usable_all([dataset_id]) if dataset_id else []
    return found[0].tenant_id if found else caller().tenant_id


@bp.get("/jobs/<job_id>")
@describe(_TAG, "A job as it is now", surface=_PROBLEM, answer=Job)
def get(job_id: str) -> Response:
    return jsonify(job_json(jobs().get(tenant_of_document(job_id), job_id)))


@bp.delete("/jobs/<job_id>")
@describe(_TAG, "Cancel a job", surface=_PROBLEM, answer=Job, statuses=(409,))
def cancel(job_id: str) -> Response:
    return jsonify(job_json(jobs().cancel(tenant_of_document(job_id), job_id)))


@bp.get("/worker-pool-status")
@describe(_TAG, "The queue and its executors in numbers", surface=_PROBLEM, answer=Pool)
def pool_status() -> Response:
    figures = JobPool(services().datasets.rows).figures()
    executors = [_executor_json(name, beats[-1]) for name, beats in services().executor_beats().items() if beats]
    return jsonify(
        {
            "queue_size": figures.waiting,
            "active_tasks": figures.at_work,
            "paused_tasks": figures.paused,
            "num_workers": len(executors),
            "slots": sum(one["slots"] for one in executors),
            "slots_used": sum(one["slots_used"] for one in executors),
            "oldest_waiting_s": figures.oldest_s,
            "by_priority": {
                priority.name.lower(): {"waiting": lane.waiting, "oldest_waiting_s": lane.oldest_s}
                for priority, lane in figures.lanes.items()
            },
            "executors": executors,
        }
    )


def _executor_json(name: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """Counts only: what is in work is its tenants' own."""
    counts = {key: int(said.get(key, 0)) for key in ("slots", "slots_used", "parsers", "done", "failed", "retried")}
    return {"name": name, **counts, "is_draining": bool(said.get("draining", False))}
