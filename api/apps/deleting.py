"""Deleting: DELETE /datasets, DELETE /datasets/{id}/documents. An empty or missing list deletes nothing."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from flask import Blueprint, Response
from pydantic import AfterValidator, Field

from api.apps.access import usable
from api.apps.auth import caller, require_caller
from api.apps.dataset_fields import as_uuid
from api.apps.envelope import ARGUMENT, DATA, ApiError, plain
from api.apps.openapi.operation import describe
from api.apps.parser_config import Strict
from api.apps.requests import MAX_IDS, schema_body
from api.apps.services import services
from api.apps.shapes.datasets import SuccessCount
from api.apps.shapes.documents import Deleted
from api.db.services.dataset_service import DatasetFilter
from api.db.services.document_list import DocumentFilter

bp = Blueprint("deleting", __name__)
bp.before_request(require_caller)

_PAGE = 500


class DeleteDatasets(Strict):
    ids: Annotated[list[Annotated[str, AfterValidator(as_uuid)]], Field(max_length=MAX_IDS)] | None = None
    delete_all: bool = False


class DeleteDocuments(Strict):
    ids: Annotated[list[str], Field(max_length=MAX_IDS)] | None = None
    delete_all: bool = False


@bp.delete("/datasets")
@describe(
    "Datasets",
    "Delete datasets",
    note="All of those that are named, or none. Without ids nothing is deleted, unless `delete_all` says so.",
    body=DeleteDatasets,
    answer=SuccessCount,
    example={"ids": ["6f0c2a1e5b3d4c7f8a9b0c1d2e3f4a5b"]},
)
def delete_datasets() -> Response:
    asked = schema_body(DeleteDatasets)
    ids = _once_each(asked.ids or [])
    tenant_id = caller().tenant_id
    if asked.delete_all and not ids:
        return plain({"success_count": _delete_all_datasets(tenant_id)})
    known = {dataset.id for dataset in services().datasets.get_all(tenant_id, ids)} if ids else set()
    foreign = [one for one in ids if one not in known]
    if foreign:
        raise ApiError(DATA, f"User '{caller().user_id}' lacks permission for datasets: {', '.join(foreign)}")
    return plain({"success_count": _delete_datasets(ids)})


@bp.delete("/datasets/<dataset_id>/documents")
@describe(
    "Documents",
    "Delete documents",
    note="All of those that are named, or none. Without ids nothing is deleted, unless `delete_all` says so.",
    body=DeleteDocuments,
    answer=Deleted,
)
def delete_documents(dataset_id: str) -> Response:
    asked = schema_body(DeleteDocuments)
    tenant_id = usable(dataset_id).tenant_id
    ids = _once_each(asked.ids or [])
    if ids and asked.delete_all:
        raise ApiError(DATA, "should not provide both doc ids and delete_all(true)")
    if not ids and not asked.delete_all:
        raise ApiError(DATA, "should either provide doc ids or set delete_all(true)")
    if asked.delete_all:
        return plain({"deleted": _delete_all(tenant_id, dataset_id)})
    known = services().documents.known(tenant_id, [dataset_id], ids)
    unknown = [one for one in ids if one not in known]
    if unknown:
        raise ApiError(DATA, f"These documents do not belong to dataset {dataset_id} or Document not found: {unknown}")
    return plain({"deleted": _delete(ids)})


def _delete_datasets(ids: list[str]) -> int:
    deleted = 0
    for one in ids:
        deleted += services().control.delete_dataset(one)
        services().chunk_notes.forget_dataset(one)
    return deleted


def _delete_all_datasets(tenant_id: str) -> int:
    deleted = 0
    while found := services().datasets.page(tenant_id, DatasetFilter(page_size=_PAGE)).datasets:
        deleted += _delete_datasets([dataset.id for dataset in found])
    return deleted


def _delete_all(tenant_id: str, dataset_id: str) -> int:
    deleted = 0
    while found := services().documents.page(tenant_id, dataset_id, DocumentFilter(page_size=_PAGE)).documents:
        deleted += _delete([document.id for document in found])
    return deleted


def _delete(ids: list[str]) -> int:
    deleted = services().control.delete(ids)
    services().chunk_notes.forget(ids)
    return len(deleted)


def _once_each(ids: list[str]) -> list[str]:
    repeated = [one for one, count in Counter(ids).items() if count > 1]
    if repeated:
        raise ApiError(ARGUMENT, f"Duplicate ids: '{', '.join(repeated)}'")
    return ids
