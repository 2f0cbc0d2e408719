"""A document's bytes: GET /datasets/{id}/documents/{id}, /documents/{id}, /documents/{id}/preview."""

from __future__ import annotations

import mimetypes
from typing import Annotated, cast

from flask import Blueprint, Response, request, send_file
from pydantic import Field
from werkzeug.wsgi import wrap_file

from api.apps.access import tenant_of_document, usable, usable_documents
from api.apps.auth import require_caller
from api.apps.conditions import conditions_for
from api.apps.envelope import DATA, ApiError, plain
from api.apps.openapi.operation import describe
from api.apps.requests import Loose, params
from api.apps.services import services
from api.db.services.document_views import DocumentView
from common.errors import NotFound

bp = Blueprint("downloads", __name__)
bp.before_request(require_caller)

# What a browser shows without running anything that stands in it. Pages and drawings are handed out as text.
_SHOWN = ("application/pdf", "image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "text/plain")
_BYTES = ("*/*",)
_PARTS = (206, 304, 412, 416)


class DocumentIdsQuery(Loose):
    doc_ids: Annotated[list[str], Field(min_length=1, description="Repeated, or parted by commas")]


_NOTHING_RUNS = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


@bp.get("/datasets/<dataset_id>/documents/<document_id>")
@describe("Documents", "Download a document", media=_BYTES, statuses=_PARTS)
def download(dataset_id: str, document_id: str) -> Response:
    try:
        tenant_id = usable(dataset_id).tenant_id
    except NotFound as exc:
        raise ApiError(DATA, f"You do not own the dataset {dataset_id}: document not found") from exc
    try:
        document = services().documents.get(tenant_id, document_id, dataset_id)
    except NotFound as exc:
        message = f"The dataset does not own the document {document_id}: document not found"
        raise ApiError(DATA, message) from exc
    return _send(document)


@bp.get("/documents/<document_id>")
@describe("Documents", "Download a document without naming its dataset", media=_BYTES, statuses=_PARTS)
def download_by_id(document_id: str) -> Response:
    return _send(_document(document_id))


@bp.get("/documents/<document_id>/preview")
@describe("Documents", "Look at a document in a browser", media=_BYTES, statuses=_PARTS)
def preview(document_id: str) -> Response:
    """To be looked at in a browser, and so without the right to run anything."""
    return _send(_document(document_id), inline=True)


@bp.get("/thumbnails")
@describe("Documents", "Thumbnails, which are empty", query=DocumentIdsQuery, answer=dict[str, str])
def thumbnails() -> Response:
    """None are made: every document that is the caller's has an empty one."""
    given = [one for ids in params().getlist("doc_ids") for one in ids.split(",") if one]
    if not given:
        raise ApiError(DATA, 'Lack of "doc_ids"')
    known = usable_documents(given)
    return plain({document_id: "" for document_id in given if document_id in known})


def _document(document_id: str) -> DocumentView:
    try:
        return services().documents.get(tenant_of_document(document_id), document_id)
    except NotFound as exc:
        raise ApiError(DATA, "Document not found!") from exc


def _send(document: DocumentView, *, inline: bool = False) -> Response:
    if not document.size_bytes:
        raise ApiError(DATA, "This file is empty.")
    conditions = conditions_for(document.file_digest, document.size_bytes)
    file = services().store.open(document.tenant_id, document.file_digest)
    kind = mimetypes.guess_type(document.name)[0] or "application/octet-stream"
    if inline and kind not in _SHOWN:
        kind = "text/plain" if kind.startswith("text/") else "application/octet-stream"
    response = send_file(
        file, mimetype=kind, as_attachment=not inline, download_name=document.name, conditional=False, etag=False
    )
    response.content_length = document.size_bytes
    response.headers["Content-Security-Policy"] = _NOTHING_RUNS
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    response.set_etag(document.file_digest)
    whole = document.size_bytes
    answer = cast(Response, response.make_conditional(conditions, accept_ranges=True, complete_length=whole))
    start = answer.content_range.start
    if start is not None and "wsgi.file_wrapper" in request.environ:
        # From here on, and as much as the length says (PEP 3333): the server reads it itself, without a thread.
        file.seek(start)
        answer.response = wrap_file(request.environ, file)
    return answer
