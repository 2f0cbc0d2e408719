"""Documents of a dataset: upload and list."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

from flask import Blueprint, Response, request
from pydantic import Field

from api.apps.access import acting_in, usable
from api.apps.auth import require_caller
from api.apps.document_filter import ListDocuments, document_filter
from api.apps.envelope import ARGUMENT, DATA, SERVER, ApiError, expect_full, full, plain
from api.apps.once import once
from api.apps.openapi.operation import Surface, describe
from api.apps.requests import Loose, file_name, loose_body, params
from api.apps.services import services
from api.apps.shapes.documents import Document, DocumentFilterCounts, DocumentPage
from api.apps.uploads import BinaryFile, IncomingFile
from api.apps.views import document_json, listed_document_json
from api.db.services.dataset_service import DatasetView
from api.db.services.document_list import DocumentCounts
from api.db.services.document_service import NewDocument
from api.db.services.file_types import type_of
from common.errors import NotFound, StoreUnavailable

bp = Blueprint("documents", __name__)
bp.before_request(require_caller)

_WAYS = ("local", "web", "empty")


class UploadQuery(Loose):
    type: Annotated[
        Literal["local", "web", "empty"],
        Field(description="`local`: files of a form; `empty`: a document without a file; `web` is not available"),
    ] = "local"


class UploadForm(Loose):
    file: Annotated[list[BinaryFile], Field(min_length=1, description="Repeated for each file")]
    parent_path: Annotated[str, Field(description="Taken, and without an effect")] = ""
    name: Annotated[str, Field(description="With `type=web`")] = ""
    url: Annotated[str, Field(description="With `type=web`")] = ""


class EmptyDocument(Loose):
    """With `type=empty`."""

    name: Annotated[str, Field(min_length=1, max_length=255)]


@bp.post("/datasets/<dataset_id>/documents")
@describe(
    "Documents",
    "Upload files",
    note="A name that is taken becomes `name(1).ext`. Of files that can't be kept a line each is told, with code 500;"
    " the others are stored, and stand in `data`. `type=empty` answers one document, the others a list.",
    query=UploadQuery,
    form=UploadForm,
    body=EmptyDocument,
    answer=list[Document] | Document,
    is_once=True,
    example={"name": "notes.txt"},
)
def upload(dataset_id: str) -> Response:
    way = params().get("type", "local").lower()
    if way not in _WAYS:
        raise ApiError(ARGUMENT, f"`type` must be one of: {', '.join(_WAYS)}")
    try:
        dataset = usable(dataset_id)
    except NotFound as exc:
        raise ApiError(DATA, f"Can't find the dataset with ID {dataset_id}!") from exc
    if way == "web":
        raise _cannot_fetch()
    return _upload_empty(dataset) if way == "empty" else _upload_files(dataset)


def _upload_files(dataset: DatasetView) -> Response:
    """Files that can't be stored are told line by line, with code 500; the others of the call are stored."""
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
            kept.append(NewDocument(name, stream.keep(dataset.tenant_id)))
        except StoreUnavailable as exc:
            refused.append(f"{name}: {exc.public_message}")
    body = json.dumps([dataset.id, refused, [[one.name, one.file.digest] for one in kept]])
    shown: list[Any] = once("upload", body, lambda: _added(dataset, kept)) if kept else []
    if refused:
        raise ApiError(SERVER, "\n".join(refused), shown)
    return plain(shown)


def _upload_empty(dataset: DatasetView) -> Response:
    """A document without a file: its chunks are those that are added to it."""
    given = loose_body().get("name")
    if not isinstance(given, str) or not given.strip():
        raise ApiError(ARGUMENT, "File name can't be empty.")
    name = file_name(given.strip())
    file = services().store.begin_upload().keep(dataset.tenant_id)
    body = json.dumps([dataset.id, name])
    new = [NewDocument(name, file, is_virtual=True)]
    (shown,) = once("upload", body, lambda: _added(dataset, new))
    return plain(shown)


def _cannot_fetch() -> ApiError:
    """What is wrong with the request is told first, as if it could be done."""
    for field in ("name", "url"):
        if not request.form.get(field):
            return ApiError(ARGUMENT, f'Lack of "{field}"')
    try:
        parts = urlsplit(request.form["url"])
    except ValueError:
        return ApiError(ARGUMENT, "The URL format is invalid")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return ApiError(ARGUMENT, "The URL format is invalid")
    return ApiError(DATA, "`type` web is not available: this server fetches no pages; upload the file instead")


def _added(dataset: DatasetView, kept: list[NewDocument]) -> list[Any]:
    added = services().documents.add(acting_in(dataset), dataset.id, kept)
    return [document_json(document) for document in added]


@bp.get("/datasets/<dataset_id>/documents")
@describe(
    "Documents",
    "List documents",
    surface=Surface.FULL,
    query=ListDocuments,
    answer=DocumentPage | DocumentFilterCounts,
)
def list_page(dataset_id: str) -> Response:
    expect_full()
    tenant_id = usable(dataset_id).tenant_id
    kind = params().get("type") or ""
    if kind not in ("", "filter"):
        raise ApiError(ARGUMENT, "`type` must be one of: filter")
    wanted = document_filter()
    if kind:
        return full(_counts_json(services().documents.counts(tenant_id, dataset_id, wanted)))
    page = services().documents.page(tenant_id, dataset_id, wanted)
    if (wanted.ids or wanted.name) and not page.total:
        which = params().get("id") or wanted.name or ", ".join(wanted.ids)
        raise ApiError(DATA, f"You don't own the document {which}.")
    return full({"total": page.total, "docs": [listed_document_json(d) for d in page.documents]})


def _counts_json(counts: DocumentCounts) -> dict[str, Any]:
    return {
        "total": counts.total,
        "filter": {
            "suffix": dict(counts.suffixes),
            "run_status": {str(int(run)): count for run, count in sorted(counts.runs.items())},
            "metadata": counts.metadata | {"empty_metadata": {"true": counts.without_metadata}},
        },
    }
