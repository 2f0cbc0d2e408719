"""Documents of a dataset: upload, list, download."""

from __future__ import annotations

import json
import mimetypes
from typing import Any, cast

from flask import Blueprint, Response, request, send_file

from api.apps.auth import caller, require_caller
from api.apps.envelope import ARGUMENT, DATA, SERVER, ApiError, expect_full, full, plain
from api.apps.once import once
from api.apps.requests import file_name, page_number, page_size
from api.apps.services import services
from api.apps.uploads import IncomingFile
from api.apps.views import document_json, listed_document_json
from api.db.services.document_service import DocumentFilter, NewDocument
from api.db.services.document_views import DocumentView
from api.db.services.file_types import type_of
from common.errors import NotFound, StoreUnavailable
from common.task_state import DocumentRun

bp = Blueprint("documents", __name__)
bp.before_request(require_caller)

_NOT_AVAILABLE = ("metadata", "metadata_condition", "type", "return_empty_metadata")
_ORDERS = ("create_time", "update_time", "name")
_MAX_IDS = 100


@bp.post("/datasets/<dataset_id>/documents")
def upload(dataset_id: str) -> Response:
    """Files that can't be stored are told line by line, with code 500; the others of the call are stored."""
    if request.args.get("type", "local").lower() != "local":
        raise ApiError(ARGUMENT, "`type` must be one of: local")
    try:
        services().datasets.get(caller().tenant_id, dataset_id)
    except NotFound as exc:
        raise ApiError(DATA, f"Can't find the dataset with ID {dataset_id}!") from exc
    files = request.files.getlist("file")
    if not files:
        raise ApiError(ARGUMENT, "No file part!")
    incoming = [(file_name(file.filename or ""), cast(IncomingFile, file.stream)) for file in files]
    kept: list[NewDocument] = []
    refused: list[str] = []
    for name, stream in incoming:
        if type_of(name) is None:
            refused.append(f"{name}: This type of file has not been supported yet!")
            continue
        try:
            kept.append(NewDocument(name, stream.keep(caller().tenant_id)))
        except StoreUnavailable as exc:
            refused.append(f"{name}: {exc.public_message}")
    body = json.dumps([dataset_id, refused, [[one.name, one.file.digest] for one in kept]])
    shown: list[Any] = once("upload", body, lambda: _added(dataset_id, kept)) if kept else []
    if refused:
        raise ApiError(SERVER, "\n".join(refused), shown)
    return plain(shown)


def _added(dataset_id: str, kept: list[NewDocument]) -> list[Any]:
    return [document_json(document) for document in services().documents.add(caller(), dataset_id, kept)]


@bp.get("/datasets/<dataset_id>/documents")
def list_page(dataset_id: str) -> Response:
    expect_full()
    _require_dataset(dataset_id)
    wanted = _filter()
    page = services().documents.page(caller().tenant_id, dataset_id, wanted)
    if (wanted.ids or wanted.name) and not page.total:
        which = request.args.get("id") or wanted.name or ", ".join(wanted.ids)
        raise ApiError(DATA, f"You don't own the document {which}.")
    return full({"total": page.total, "docs": [listed_document_json(d) for d in page.documents]})


@bp.get("/datasets/<dataset_id>/documents/<document_id>")
def download(dataset_id: str, document_id: str) -> Response:
    tenant_id = caller().tenant_id
    _require_dataset(dataset_id)
    try:
        document = services().documents.get(tenant_id, document_id, dataset_id)
    except NotFound as exc:
        message = f"The dataset does not own the document {document_id}: document not found"
        raise ApiError(DATA, message) from exc
    return _send(document)


@bp.get("/documents/<document_id>")
def download_by_id(document_id: str) -> Response:
    try:
        document = services().documents.get(caller().tenant_id, document_id)
    except NotFound as exc:
        raise ApiError(DATA, "Document not found!") from exc
    return _send(document)


def _send(document: DocumentView) -> Response:
    if not document.size_bytes:
        raise ApiError(DATA, "This file is empty.")
    file = services().store.open(document.tenant_id, document.file_digest)
    kind = mimetypes.guess_type(document.name)[0] or "application/octet-stream"
    response = send_file(
        file, mimetype=kind, as_attachment=True, download_name=document.name, conditional=False, etag=False
    )
    response.content_length = document.size_bytes
    response.set_etag(document.file_digest)
    return cast(
        Response,
        response.make_conditional(request.environ, accept_ranges=True, complete_length=document.size_bytes),
    )


def _require_dataset(dataset_id: str) -> None:
    services().datasets.get(caller().tenant_id, dataset_id)


def _filter() -> DocumentFilter:
    args = request.args
    for unknown in _NOT_AVAILABLE:
        if args.get(unknown):
            # Left out, the filter would not filter: better no answer than a wrong one.
            raise ApiError(DATA, f"The filter `{unknown}` is not available.")
    orderby = args.get("orderby") or "create_time"
    if orderby not in _ORDERS:
        raise ApiError(ARGUMENT, f"invalid orderby field: {orderby}; allowed: {', '.join(_ORDERS)}")
    ids = [one for given in args.getlist("ids") for one in given.split(",") if one]
    if len(ids) > _MAX_IDS:
        raise ApiError(ARGUMENT, f"`ids` has {len(ids)} entries; at most {_MAX_IDS} are allowed")
    if args.get("id"):
        ids = [args["id"]] if not ids or args["id"] in ids else [""]
    return DocumentFilter(
        page=page_number(),
        page_size=page_size(),
        orderby=orderby,
        desc=args.get("desc", "true").lower() != "false",
        keywords=args.get("keywords", ""),
        ids=tuple(dict.fromkeys(ids)),
        name=args.get("name", ""),
        suffixes=_given("suffix"),
        types=_given("types"),
        runs=tuple(_run(value) for value in _given("run")),
        create_ms_from=_time("create_time_from"),
        create_ms_to=_time("create_time_to"),
    )


def _given(key: str) -> tuple[str, ...]:
    return tuple(value for value in request.args.getlist(key) if value)


def _run(value: str) -> DocumentRun:
    names = {run.name: run for run in DocumentRun} | {str(int(run)): run for run in DocumentRun}
    if value.upper() not in names:
        raise ApiError(DATA, f"Invalid filter run status conditions: {value}")
    return names[value.upper()]


def _time(key: str) -> int:
    value = request.args.get(key) or "0"
    try:
        return int(value)
    except ValueError as exc:
        raise ApiError(ARGUMENT, f"`{key}` should be a time in milliseconds, not {value}") from exc
