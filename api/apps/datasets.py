"""Datasets: POST, GET /datasets; GET, PUT /datasets/{id}."""

from __future__ import annotations

from flask import Blueprint, Response

from api.apps.access import usable, usable_all
from api.apps.auth import caller, require_caller
from api.apps.dataset_fields import as_uuid
from api.apps.dataset_requests import CreateDataset, ListDatasets, UpdateDataset
from api.apps.envelope import ARGUMENT, DATA, ApiError, plain
from api.apps.openapi.operation import describe
from api.apps.requests import query, require_page_size, schema_body, shown
from api.apps.services import services
from api.apps.shapes.common import Count
from api.apps.shapes.datasets import Dataset, DatasetInFull, DatasetOwners, ListedDataset
from api.apps.views import dataset_json, listed_dataset_json, parsing_status_json
from api.db.services.dataset_changes import DatasetChange
from api.db.services.dataset_service import DatasetFilter, DatasetPage, DatasetView, NewDataset
from common.errors import NotFound

bp = Blueprint("datasets", __name__)
bp.before_request(require_caller)

_TAG = "Datasets"


@bp.post("/datasets")
@describe(
    _TAG,
    "Make a dataset",
    note="A name that is taken becomes `name(1)`.",
    body=CreateDataset,
    answer=Dataset,
    example={"name": "manuals", "chunk_method": "naive", "parser_config": {"chunk_token_num": 256}},
)
def create() -> Response:
    asked = schema_body(CreateDataset)
    if asked.pipeline_id is not None:
        raise ApiError(DATA, "`pipeline_id` names an ingestion pipeline, and this server has none")
    new = NewDataset(
        name=asked.name,
        avatar=asked.avatar,
        description=asked.description,
        embedding_model=asked.embedding_model,
        permission=asked.permission,
        chunk_method=asked.chunk_method,
        parser_config=asked.given_parser_config(),
    )
    dataset = services().datasets.create(caller(), new)
    if asked.auto_metadata_config is not None:
        kept = DatasetChange({}, parser_config=asked.auto_metadata_config.model_dump())
        services().dataset_changes.update(dataset.id, kept)
        dataset = services().datasets.get(caller().tenant_id, dataset.id)
    return plain(dataset_json(dataset))


@bp.get("/datasets")
@describe(
    _TAG,
    "List datasets",
    note="One that is asked for by id or name and is not there is an error, never an empty list.",
    query=ListDatasets,
    answer=list[ListedDataset] | DatasetOwners,
    beside={"total_datasets": Count},
)
def list_page() -> Response:
    asked = query(ListDatasets)
    require_page_size(asked.page_size)
    if asked.id is not None and asked.ids is not None:
        raise ApiError(DATA, "`id` and `ids` can't be given together")
    extras = asked.extras()
    ids = asked.ids if asked.id is None else [asked.id]
    wanted = DatasetFilter(
        page=asked.page,
        page_size=asked.page_size,
        orderby=asked.orderby,
        desc=asked.desc,
        ids=None if ids is None else tuple(dict.fromkeys(ids)),
        name=asked.name or None,
        keywords=extras.keywords,
        chunk_method=extras.parser_id,
        owner_ids=tuple(extras.owner_ids),
        teams=services().team.tenants_of(caller().user_id),
    )
    page = services().datasets.page(caller().tenant_id, wanted)
    _require_all(wanted, page)
    if asked.type == "filter":
        owners = services().datasets.owners(caller().tenant_id, wanted)
        shown_owners = [{"id": one.id, "label": one.nickname, "count": one.count} for one in owners]
        return plain({"total": page.total, "filter": {"owner": shown_owners}})
    shown_datasets = [listed_dataset_json(dataset) for dataset in page.datasets]
    if asked.include_parsing_status:
        counts = services().datasets.run_counts([dataset.id for dataset in page.datasets])
        for one in shown_datasets:
            one["parsing_status"] = parsing_status_json(counts.get(one["id"], {}))
    return plain(shown_datasets, total_datasets=page.total)


@bp.get("/datasets/<dataset_id>")
@describe(_TAG, "Show a dataset", answer=DatasetInFull)
def get(dataset_id: str) -> Response:
    dataset = seen(dataset_id)
    return plain(dataset_json(dataset) | {"size": dataset.size_bytes, "connectors": []})


@bp.put("/datasets/<dataset_id>")
@describe(
    _TAG,
    "Change a dataset",
    note="What is not sent stays. `parser_config` is laid over the one that is kept.",
    body=UpdateDataset,
    answer=Dataset,
    example={"name": "manuals of 2026", "parser_config": {"chunk_token_num": 512}},
)
def update(dataset_id: str) -> Response:
    asked = schema_body(UpdateDataset)
    dataset_id = _as_uuid(dataset_id)
    if not asked.model_fields_set:
        raise ApiError(DATA, "no properties were modified")
    dataset = owned(dataset_id)
    if asked.connectors:
        raise ApiError(DATA, "`connectors` is not available: this server fetches from no other sources")
    services().dataset_changes.update(dataset.id, asked.change())
    return plain(dataset_json(services().datasets.get(caller().tenant_id, dataset.id)))


@bp.post("/datasets/<dataset_id>/embedding/check")
@describe(_TAG, "Compare another embedding model", note="Not available: there is one model.")
def check_embedding(dataset_id: str) -> Response:
    """Whether vectors of another model come near the dataset's. There is no other to compare with."""
    seen(dataset_id)
    served = services().datasets.embedding_model
    raise ApiError(DATA, f"The check of another embedding model is not available: this server has only {served}")


def seen(dataset_id: str) -> DatasetView:
    """The caller's dataset, or one that a team shares. Raises ApiError 102, also for one that is unknown."""
    try:
        return usable(dataset_id)
    except NotFound as exc:
        raise _lacks_permission(dataset_id) from exc


def owned(dataset_id: str) -> DatasetView:
    """The caller's own dataset, for what only its owner may do. Raises ApiError 102."""
    try:
        return services().datasets.get(caller().tenant_id, dataset_id)
    except NotFound as exc:
        raise _lacks_permission(dataset_id) from exc


def _as_uuid(dataset_id: str) -> str:
    """Without dashes, as it is kept. Raises ApiError 101."""
    try:
        return as_uuid(dataset_id)
    except ValueError as exc:
        line = f"Field: <dataset_id> - Message: <Invalid UUID format> - Value: <{shown(dataset_id)}>"
        raise ApiError(ARGUMENT, line) from exc


def _require_all(wanted: DatasetFilter, page: DatasetPage) -> None:
    """A dataset that is asked for by id or name and is not there is an error, never an empty list."""
    if wanted.name is not None and not page.total:
        raise _lacks_permission(wanted.name)
    if not wanted.ids or page.total == len(wanted.ids):
        return
    known = {dataset.id for dataset in usable_all(wanted.ids)}
    missing = [dataset_id for dataset_id in wanted.ids if dataset_id not in known]
    if missing:
        raise _lacks_permission(missing[0])


def _lacks_permission(which: str) -> ApiError:
    return ApiError(DATA, f"User '{caller().user_id}' lacks permission for dataset '{shown(which)}'")
