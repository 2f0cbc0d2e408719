"""The documents of a knowledge base: the page, and the table's data, which only this page needs. What is done with
documents goes through the REST API."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from flask import Blueprint, Response, jsonify, request

from api.apps import problems
from api.apps.access import usable
from api.apps.auth import require_caller
from api.apps.job_json import job_json
from api.apps.problems import FieldError, wrong_fields
from api.apps.requests import bounded, shown
from api.apps.services import services
from api.apps.ui.chunk_methods import NAMES
from api.apps.ui.datasets import outage
from api.apps.ui.page import page_blueprint
from api.apps.ui.rendering import render_page
from api.db.services.document_table import DocumentTable, TableFilter, TableOrder, TablePage, TableRow, TableState

bp = page_blueprint("ui_documents", "datasets")
data_bp = Blueprint("ui_documents_data", __name__)
data_bp.before_request(require_caller)
problems.register(data_bp)

_PAGE_SIZE = 50
_MOST_ROWS = 200
_MAX_SEARCH = 255


@bp.get("/datasets/<dataset_id>")
def show(dataset_id: str) -> Response:
    dataset = usable(dataset_id)
    page = _table().page(dataset.tenant_id, dataset.id, TableFilter())
    return render_page(
        "documents.html",
        dataset=dataset,
        method_name=NAMES.get(dataset.chunk_method, dataset.chunk_method),
        outage=outage(),
        page_data={
            "dataset": {"id": dataset.id, "name": dataset.name},
            "page": page_json(page),
            "maxUploadBytes": services().settings.server.max_body_mb * 1024 * 1024,
        },
    )


@data_bp.get("/ui/datasets/<dataset_id>/documents")
def rows(dataset_id: str) -> Response:
    tenant_id = usable(dataset_id).tenant_id
    return jsonify(page_json(_table().page(tenant_id, dataset_id, _filter())))


@data_bp.get("/ui/datasets/<dataset_id>/document-ids")
def ids(dataset_id: str) -> Response:
    """Of all that the filter lets through: to act on more than a page of them."""
    tenant_id = usable(dataset_id).tenant_id
    most = services().settings.server.max_ids
    return jsonify({"ids": _table().ids(tenant_id, dataset_id, _filter(), most)})


def page_json(page: TablePage) -> dict[str, Any]:
    return {
        "total": page.total,
        "size_bytes": page.size_bytes,
        "states": {str(state): count for state, count in page.states.items()},
        "suffixes": dict(sorted(page.suffixes.items())),
        "documents": [_row_json(row) for row in page.rows],
    }


def _row_json(row: TableRow) -> dict[str, Any]:
    return job_json(row.job) | {
        "suffix": row.suffix,
        "chunk_method": row.chunk_method,
        "is_enabled": row.is_enabled,
        "chunk_count": row.job.chunk_count,
    }


def _table() -> DocumentTable:
    return DocumentTable(services().datasets.rows, services().settings.tasks)


def _filter() -> TableFilter:
    order = request.args.get("order", "") or TableOrder.CREATED
    _require_known("order", [order], tuple(TableOrder))
    states = [one for one in request.args.getlist("state") if one]
    _require_known("state", states, tuple(TableState))
    return TableFilter(
        page=bounded(request.args.get("page"), 1),
        page_size=bounded(request.args.get("page_size"), _PAGE_SIZE, _MOST_ROWS),
        order=TableOrder(order),
        desc=request.args.get("desc", "true") != "false",
        keywords=request.args.get("keywords", "")[:_MAX_SEARCH].strip(),
        states=tuple(TableState(one) for one in states),
        suffixes=tuple(one.lower() for one in request.args.getlist("suffix") if one),
    )


def _require_known(field: str, given: Sequence[str], known: Sequence[str]) -> None:
    wrong = [one for one in given if one not in known]
    if wrong:
        message = f"should be one of {', '.join(known)}, not {shown(wrong[0])}"
        raise wrong_fields(FieldError(field, message), status=HTTPStatus.BAD_REQUEST)
