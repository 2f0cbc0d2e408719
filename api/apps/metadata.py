"""Metadata of many documents: summaries, changes, and which fields a dataset is to have."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from flask import Blueprint, Response

from api.apps.access import usable
from api.apps.auth import caller, require_caller
from api.apps.dataset_fields import MetadataFields
from api.apps.datasets import owned, seen
from api.apps.document_updates import clean_values, require_storable
from api.apps.envelope import DATA, ApiError, plain
from api.apps.metadata_requests import MAX_EDITS, ChangeMetadata, DatasetIdsQuery, SummaryQuery
from api.apps.openapi.operation import describe
from api.apps.requests import id_list, loose_body, params, schema_body, shown
from api.apps.retrieval_requests import conditions
from api.apps.services import services
from api.apps.shapes.datasets import MetadataChanged, MetadataConfig, MetadataSummary
from api.db.services.dataset_changes import DatasetChange
from api.db.services.metadata_edits import DropValue, SetValue, flattened, summary

bp = Blueprint("metadata", __name__)
bp.before_request(require_caller)

_TAG = "Metadata"


@bp.get("/datasets/<dataset_id>/metadata/summary")
@describe(_TAG, "What a dataset's metadata amounts to", query=SummaryQuery, answer=MetadataSummary)
def metadata_summary(dataset_id: str) -> Response:
    tenant_id = usable(dataset_id).tenant_id
    ids = [one for given in params().getlist("doc_ids") for one in given.split(",") if one]
    if not ids:
        return plain(
            {"summary": summary(metadata for _, metadata in services().metadata.noted(tenant_id, [dataset_id]))}
        )
    _require_in(tenant_id, dataset_id, ids)
    return plain({"summary": summary(services().metadata.of(tenant_id, ids).values())})


@bp.get("/datasets/metadata/flattened")
@describe(
    _TAG,
    "The documents of each value of each key",
    query=DatasetIdsQuery,
    answer=dict[str, dict[str, list[str]]],
)
def metadata_flattened() -> Response:
    ids = [one for given in params().getlist("dataset_ids") for one in given.split(",") if one]
    if not ids:
        raise ApiError(DATA, "Lack of dataset_ids in query parameters: `dataset_ids` is required")
    datasets = [seen(dataset_id) for dataset_id in dict.fromkeys(ids)]
    noted = (services().metadata.noted(dataset.tenant_id, [dataset.id]) for dataset in datasets)
    return plain(flattened(chain.from_iterable(noted)))


@bp.post("/datasets/<dataset_id>/metadata/update")
@bp.patch("/datasets/<dataset_id>/documents/metadatas")
@describe(
    _TAG,
    "Change the metadata of documents",
    note="Documents that are not named are left alone.",
    body=ChangeMetadata,
    answer=MetadataChanged,
    example={
        "selector": {"document_ids": ["6f0c2a1e5b3d4c7f8a9b0c1d2e3f4a5b"]},
        "updates": [{"key": "year", "value": 2026}],
        "deletes": [{"key": "draft"}],
    },
)
def update(dataset_id: str) -> Response:
    """Documents that are not named are left alone: a condition chooses among those that are."""
    tenant_id = caller().tenant_id
    services().datasets.get(tenant_id, dataset_id)
    body = loose_body()
    selector = body.get("selector") or {}
    if not isinstance(selector, dict):
        raise ApiError(DATA, "selector must be an object.")
    updates, deletes = _updates(body), _deletes(body)
    ids = list(dict.fromkeys(id_list(selector, "document_ids"))) if selector.get("document_ids") else []
    _require_in(tenant_id, dataset_id, ids)
    met = conditions(selector, "metadata_condition")
    if met is not None:
        meeting = set(services().metadata.documents_meeting(tenant_id, [dataset_id], met))
        ids = [one for one in ids if one in meeting]
    return plain({"updated": services().metadata.change(ids, updates, deletes), "matched_docs": len(ids)})


@bp.get("/datasets/<dataset_id>/metadata/config")
@bp.get("/datasets/<dataset_id>/auto_metadata")
@describe(_TAG, "Which fields a dataset is to have", answer=MetadataConfig)
def get_config(dataset_id: str) -> Response:
    return plain(_config_json(seen(dataset_id).parser_config))


@bp.put("/datasets/<dataset_id>/metadata/config")
@bp.put("/datasets/<dataset_id>/auto_metadata")
@describe(_TAG, "Say which fields a dataset is to have", body=MetadataFields, answer=MetadataConfig)
def put_config(dataset_id: str) -> Response:
    asked = schema_body(MetadataFields)
    dataset = owned(dataset_id)
    services().dataset_changes.update(dataset.id, DatasetChange({}, parser_config=asked.model_dump()))
    return plain(_config_json(asked.model_dump()))


def _config_json(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: config.get(key) or [] for key in ("metadata", "built_in_metadata")}


def _require_in(tenant_id: str, dataset_id: str, document_ids: list[str]) -> None:
    known = services().documents.known(tenant_id, [dataset_id], document_ids)
    foreign = [one for one in document_ids if one not in known]
    if foreign:
        raise ApiError(DATA, f"These documents do not belong to dataset {dataset_id}: {', '.join(map(shown, foreign))}")


def _edits(body: Mapping[str, Any], key: str) -> list[Any]:
    given = body.get(key) or []
    if not isinstance(given, list):
        raise ApiError(DATA, f"updates and deletes must be lists: `{key}` is none")
    if len(given) > MAX_EDITS:
        raise ApiError(DATA, f"`{key}` has {len(given)} entries; at most {MAX_EDITS} are allowed")
    return given


def _updates(body: Mapping[str, Any]) -> list[SetValue]:
    found = []
    for one in _edits(body, "updates"):
        if not isinstance(one, dict) or not isinstance(one.get("key"), str) or not one["key"] or "value" not in one:
            raise ApiError(DATA, "Each update requires key and value.")
        require_storable("updates", one["key"], one["value"])
        ((key, value),) = clean_values({one["key"]: one["value"]}).items()
        found.append(SetValue(key, value, one.get("match")))
    return found


def _deletes(body: Mapping[str, Any]) -> list[DropValue]:
    found = []
    for one in _edits(body, "deletes"):
        if not isinstance(one, dict) or not isinstance(one.get("key"), str) or not one["key"]:
            raise ApiError(DATA, "Each delete requires key.")
        found.append(DropValue(one["key"], one.get("value")))
    return found
