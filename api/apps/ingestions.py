"""How the documents of a dataset came in: one log for the newest parse of each, and the sums."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response

from api.apps.auth import require_caller
from api.apps.datasets import seen
from api.apps.document_filter import FilterDocuments, document_filter
from api.apps.envelope import DATA, ApiError, plain
from api.apps.openapi.operation import describe
from api.apps.requests import shown
from api.apps.services import services
from api.apps.shapes.documents import IngestionLog, IngestionPage, IngestionSummary
from api.apps.views import document_json
from api.db.services.document_views import DocumentView
from common.errors import NotFound

bp = Blueprint("ingestions", __name__)
bp.before_request(require_caller)


@bp.get("/datasets/<dataset_id>/ingestions")
@describe("Documents", "The newest parse of each document", query=FilterDocuments, answer=IngestionPage)
def list_page(dataset_id: str) -> Response:
    """Filtered, ordered and paged like documents."""
    dataset = seen(dataset_id)
    page = services().documents.page(dataset.tenant_id, dataset.id, document_filter())
    return plain({"total": page.total, "logs": [_log_json(document) for document in page.documents]})


@bp.get("/datasets/<dataset_id>/ingestions/summary")
@describe("Documents", "Documents and chunks of a dataset in numbers", answer=IngestionSummary)
def summary(dataset_id: str) -> Response:
    dataset = seen(dataset_id)
    counts = services().datasets.run_counts([dataset.id]).get(dataset.id, {})
    return plain(
        {
            "doc_num": dataset.document_count,
            "chunk_num": dataset.chunk_count,
            "token_num": dataset.token_count,
            "status": {run.name.lower(): count for run, count in counts.items()},
        }
    )


@bp.get("/datasets/<dataset_id>/ingestions/<log_id>")
@describe("Documents", "The newest parse of a document", answer=IngestionLog)
def get(dataset_id: str, log_id: str) -> Response:
    dataset = seen(dataset_id)
    try:
        document = services().documents.get(dataset.tenant_id, log_id, dataset.id)
    except NotFound as exc:
        raise ApiError(DATA, f"Ingestion log {shown(log_id)} not found") from exc
    return plain(_log_json(document))


def _log_json(document: DocumentView) -> dict[str, Any]:
    shown_document = document_json(document)
    kept = ("progress", "progress_msg", "process_begin_at", "process_duration", "create_time", "create_date",
            "update_time", "update_date")  # fmt: skip
    return {
        "id": document.id,
        "document_id": document.id,
        "tenant_id": document.tenant_id,
        "kb_id": document.dataset_id,
        "pipeline_id": "",
        "parser_id": document.chunk_method,
        "document_name": document.name,
        "document_suffix": document.suffix,
        "document_type": document.type,
        "source_from": "local",
        "task_type": "PARSE",
        "operation_status": str(int(document.run)),
        "status": shown_document["status"],
        **{key: shown_document[key] for key in kept},
    }
