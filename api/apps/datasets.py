"""Datasets: POST, GET /datasets; GET /datasets/{id}."""

from __future__ import annotations

from flask import Blueprint, Response

from api.apps.auth import caller, require_caller
from api.apps.envelope import DATA, ApiError, plain
from api.apps.requests import CreateDataset, ListDatasets, query, schema_body, shown
from api.apps.services import services
from api.apps.views import dataset_json, listed_dataset_json, parsing_status_json
from api.db.services.dataset_service import DatasetFilter, DatasetPage, NewDataset
from common.errors import NotFound

bp = Blueprint("datasets", __name__)
bp.before_request(require_caller)


@bp.post("/datasets")
def create() -> Response:
    asked = schema_body(CreateDataset)
    new = NewDataset(
        name=asked.name,
        avatar=asked.avatar,
        description=asked.description,
        embedding_model=asked.embedding_model,
        permission=asked.permission,
        chunk_method=asked.chunk_method,
        parser_config=asked.given_parser_config(),
    )
    return plain(dataset_json(services().datasets.create(caller(), new)))


@bp.get("/datasets")
def list_page() -> Response:
    asked = query(ListDatasets)
    if asked.id is not None and asked.ids is not None:
        raise ApiError(DATA, "`id` and `ids` can't be given together")
    ids = asked.ids if asked.id is None else [asked.id]
    wanted = DatasetFilter(
        page=asked.page,
        page_size=asked.page_size,
        orderby=asked.orderby,
        desc=asked.desc,
        ids=None if ids is None else tuple(dict.fromkeys(ids)),
        name=asked.name or None,
    )
    page = services().datasets.page(caller().tenant_id, wanted)
    _require_all(wanted, page)
    shown_datasets = [listed_dataset_json(dataset) for dataset in page.datasets]
    if asked.include_parsing_status:
        counts = services().datasets.run_counts([dataset.id for dataset in page.datasets])
        for one in shown_datasets:
            one["parsing_status"] = parsing_status_json(counts.get(one["id"], {}))
    return plain(shown_datasets, total_datasets=page.total)


@bp.get("/datasets/<dataset_id>")
def get(dataset_id: str) -> Response:
    try:
        dataset = services().datasets.get(caller().tenant_id, dataset_id)
    except NotFound as exc:
        raise _lacks_permission(dataset_id) from exc
    size = services().datasets.size_bytes(dataset.id)
    return plain(dataset_json(dataset) | {"size": size, "connectors": []})


def _require_all(wanted: DatasetFilter, page: DatasetPage) -> None:
    """A dataset that is asked for by id or name and is not there is an error, never an empty list."""
    if wanted.name is not None and not page.total:
        raise _lacks_permission(wanted.name)
    if wanted.ids is None or page.total == len(wanted.ids):
        return
    known = {dataset.id for dataset in services().datasets.get_all(caller().tenant_id, wanted.ids)}
    missing = [dataset_id for dataset_id in wanted.ids if dataset_id not in known]
    if missing:
        raise _lacks_permission(missing[0])


def _lacks_permission(which: str) -> ApiError:
    return ApiError(DATA, f"User '{caller().user_id}' lacks permission for dataset '{shown(which)}'")
