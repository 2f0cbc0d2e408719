"""The tags of chunks: which a dataset's chunks have, and how many of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from flask import Blueprint, Response

from api.apps.auth import require_caller
from api.apps.datasets import owned, seen
from api.apps.envelope import DATA, ApiError, plain
from api.apps.metadata_requests import DatasetIdsQuery
from api.apps.openapi.operation import describe
from api.apps.requests import params
from api.apps.services import services
from api.apps.shapes.datasets import TagCount
from api.db.services.dataset_service import DatasetView

bp = Blueprint("tags", __name__)
bp.before_request(require_caller)


@bp.get("/datasets/<dataset_id>/tags")
@describe("Metadata", "The tags of a dataset's chunks", answer=list[TagCount])
def list_tags(dataset_id: str) -> Response:
    return plain(_json(_counts([seen(dataset_id)])))


@bp.get("/datasets/tags/aggregation")
@describe("Metadata", "The tags of several datasets", query=DatasetIdsQuery, answer=list[TagCount])
def aggregate() -> Response:
    ids = [one for given in params().getlist("dataset_ids") for one in given.split(",") if one]
    if not ids:
        raise ApiError(DATA, "Lack of dataset_ids in query parameters: `dataset_ids` is required")
    return plain(_json(_counts([seen(dataset_id) for dataset_id in dict.fromkeys(ids)])))


@bp.put("/datasets/<dataset_id>/tags")
@bp.delete("/datasets/<dataset_id>/tags")
@describe("Metadata", "Change the tags of a whole dataset", note="Not available: tags are changed chunk by chunk.")
def change(dataset_id: str) -> Response:
    owned(dataset_id)
    raise ApiError(DATA, "Tags of a whole dataset can't be changed: change `tag_kwd` of its chunks")


def _counts(datasets: Sequence[DatasetView]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for dataset in datasets:
        counts += services().tags.counts(dataset.tenant_id, [dataset.id])
    return counts


def _json(counts: Counter[str]) -> list[dict[str, object]]:
    return [{"value": tag, "count": count} for tag, count in counts.most_common()]
