"""A document's page: what state it is in and why, its chunks beside the pictures of its pages, and its timeline. What
changes while one looks is kept up to date by static/js/document.js."""

from __future__ import annotations

import re
from typing import Any

from flask import Response, url_for

from api.apps.access import usable
from api.apps.job_json import job_json
from api.apps.jobs import jobs
from api.apps.services import services
from api.apps.ui.chunk_methods import METHODS, NAMES
from api.apps.ui.page import page_blueprint
from api.apps.ui.rendering import render_page
from api.apps.views import document_json
from api.db.services.chunk_notes import NotedDocument
from api.db.services.document_views import DocumentView
from api.db.services.file_types import chunk_method_of
from api.db.services.job_views import JobStatus

bp = page_blueprint("ui_document", "datasets")

_ANY = "any"
_FILE_NAME = re.compile(r"\S*\.\w")
# What one wants to know first is how it goes, or what went wrong.
_TIMELINE_FIRST = (JobStatus.QUEUED, JobStatus.RUNNING, JobStatus.PAUSED, JobStatus.FAILED)


@bp.get("/datasets/<dataset_id>/documents/<document_id>")
def show(dataset_id: str, document_id: str) -> Response:
    dataset = usable(dataset_id)
    tenant_id = dataset.tenant_id
    document = services().documents.get(tenant_id, document_id, dataset_id)
    job = jobs().get(tenant_id, document_id)
    values = {
        "dataset": {"id": dataset.id, "name": dataset.name, "url": url_for("ui_documents.show", dataset_id=dataset.id)},
        "document": document_json(document) | {"page_count": document.page_count},
        "job": job_json(job),
        "edits": _edits(document),
        "methods": _methods(document),
        "opensWith": "timeline" if job.status in _TIMELINE_FIRST else "chunks",
    }
    method = NAMES.get(document.chunk_method, document.chunk_method)
    return render_page(
        "document.html",
        dataset=dataset,
        document=document,
        job=job,
        message=_sentence(job.message),
        method=method,
        values=values,
    )


def _sentence(message: str) -> str:
    """The badge beside it says that it is done, or failed. A name of a file stays as it is."""
    rest = message.removeprefix("done: ").removeprefix("failed: ")
    return rest if _FILE_NAME.match(rest) else rest[:1].upper() + rest[1:]


def _edits(document: DocumentView) -> int:
    """How many chunks people have added, changed or deleted: a parse would undo it."""
    noted = NotedDocument(document.tenant_id, document.id, document.active_generation)
    return services().datasets.rows.read(services().chunk_notes.count, noted)


def _methods(document: DocumentView) -> list[dict[str, Any]]:
    """Those that this kind of file may have, and the one it has."""
    own = chunk_method_of(document.name, _ANY)
    allowed = [method for method in METHODS if own in (_ANY, method.key)]
    shown = [
        {"key": one.key, "label": one.name, "help": f"{one.does} Good for: {one.good_for}", "hasSize": one.has_size}
        for one in allowed
    ]
    if document.chunk_method not in {method.key for method in allowed}:
        name = NAMES.get(document.chunk_method, document.chunk_method)
        shown.insert(0, {"key": document.chunk_method, "label": name, "help": "", "hasSize": False})
    return shown
