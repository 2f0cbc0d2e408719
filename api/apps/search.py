"""A search of datasets under the raw names of an index: POST /datasets/search, /datasets/{id}/search."""

from __future__ import annotations

from typing import Annotated, Any

from flask import Blueprint, Response
from pydantic import BaseModel, Field

from api.apps.access import usable_all
from api.apps.auth import require_caller
from api.apps.envelope import DATA, ApiError, plain
from api.apps.openapi.operation import describe
from api.apps.requests import MAX_NUMBER, schema_body, shown, text
from api.apps.retrieval import notes_of, owners, require_in, require_one_model
from api.apps.retrieval_requests import conditions, require_supported, rerank
from api.apps.services import services
from api.apps.shapes.chunks import Searched
from api.apps.sizes import max_page_size
from api.apps.views import raw_answer_json
from api.db.services.retrieval_service import Question

bp = Blueprint("search", __name__)
bp.before_request(require_caller)

_MOST = 2048
Share = Annotated[float, Field(ge=0, le=1)]


class SearchDataset(BaseModel):
    """Unknown fields are ignored, and numbers may come as text."""

    question: Annotated[str, Field(min_length=1)]
    doc_ids: list[str] | None = None
    page: Annotated[int, Field(ge=1, le=MAX_NUMBER)] = 1
    size: Annotated[int, Field(ge=1)] = 30
    top_k: Annotated[int, Field(ge=1)] = 1024
    similarity_threshold: Share = 0.0
    vector_similarity_weight: Share = 0.3
    use_kg: bool | None = False
    keyword: bool | None = False
    cross_languages: list[str] | None = None
    rerank_id: str | None = None
    search_id: str | None = None
    meta_data_filter: dict[str, Any] | None = None


class SearchDatasets(SearchDataset):
    dataset_ids: Annotated[list[str], Field(min_length=1)]


@bp.post("/datasets/search")
@describe("Retrieval", "Search datasets, under the index's names", body=SearchDatasets, answer=Searched)
def search_all() -> Response:
    asked = schema_body(SearchDatasets)
    return _search(list(dict.fromkeys(map(text, asked.dataset_ids))), asked)


@bp.post("/datasets/<dataset_id>/search")
@describe("Retrieval", "Search a dataset, under the index's names", body=SearchDataset, answer=Searched)
def search_one(dataset_id: str) -> Response:
    return _search([dataset_id], schema_body(SearchDataset))


def _search(dataset_ids: list[str], asked: SearchDataset) -> Response:
    datasets = usable_all(dataset_ids)
    known = {dataset.id for dataset in datasets}
    for dataset_id in dataset_ids:
        if dataset_id not in known:
            raise ApiError(DATA, f"Only owner of dataset {shown(dataset_id)} authorized for this operation.")
    require_one_model(datasets)
    body = asked.model_dump()
    require_supported(body)
    if asked.search_id:
        raise ApiError(DATA, "`search_id` names a search app, and this server has none")
    doc_ids = list(dict.fromkeys(map(text, asked.doc_ids or [])))
    require_in(datasets, doc_ids)
    question = Question(
        text=text(asked.question),
        dataset_ids=tuple(dataset_ids),
        document_ids=tuple(doc_ids),
        page=asked.page,
        page_size=min(asked.size, max_page_size()),
        similarity_threshold=asked.similarity_threshold,
        vector_similarity_weight=asked.vector_similarity_weight,
        top_k=min(asked.top_k, _MOST),
        metadata=conditions(body, "meta_data_filter"),
        rerank=rerank(body),
    )
    answer = services().retrieval.ask_owners(owners(datasets), question)
    return plain(raw_answer_json(answer, notes_of(answer)))
