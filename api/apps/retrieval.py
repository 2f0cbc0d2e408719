"""Retrieval: POST /retrieval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from flask import Blueprint, Response

from api.apps.access import usable_all
from api.apps.auth import require_caller
from api.apps.envelope import DATA, ApiError, plain
from api.apps.openapi.operation import describe
from api.apps.requests import bounded, id_list, loose_body, shown, text
from api.apps.retrieval_requests import Retrieve, conditions, flag, require_supported, rerank, share, top_k
from api.apps.services import services
from api.apps.shapes.chunks import Retrieved
from api.apps.sizes import max_page_size
from api.apps.views import answer_json
from api.db.services.chunk_notes import ChunkNote
from api.db.services.dataset_service import DatasetView
from api.db.services.explanation import explanation_json, why_json
from api.db.services.reranking import reranking_json
from api.db.services.retrieval_service import Answer, Question

bp = Blueprint("retrieval", __name__)
bp.before_request(require_caller)


@bp.post("/retrieval")
@describe(
    "Retrieval",
    "Ask datasets a question",
    note="Best first, and only what a search may see. A blank question has an empty answer.",
    body=Retrieve,
    answer=Retrieved,
    example={"dataset_ids": ["6f0c2a1e5b3d4c7f8a9b0c1d2e3f4a5b"], "question": "How is the filter cleaned?"},
)
def retrieve() -> Response:
    body = loose_body()
    datasets = _datasets(body)
    dataset_ids = [dataset.id for dataset in datasets]
    require_one_model(datasets)
    question = body.get("question")
    if question is None:
        raise ApiError(DATA, "`question` is required.")
    if not isinstance(question, str):
        raise ApiError(DATA, "`question` should be a string")
    require_supported(body)
    asked = Question(
        text=text(question),
        dataset_ids=tuple(dataset_ids),
        document_ids=tuple(_document_ids(body, datasets)),
        page=bounded(body.get("page"), 1),
        page_size=bounded(body.get("page_size"), 30, max_page_size()),
        similarity_threshold=share(body, "similarity_threshold", 0.2),
        vector_similarity_weight=share(body, "vector_similarity_weight", 0.3),
        top_k=top_k(body),
        highlight=flag(body, "highlight"),
        metadata=conditions(body, "metadata_condition"),
        rerank=rerank(body),
        explain=flag(body, "explain"),
    )
    with_metadata, fields = flag(body, "include_metadata"), _metadata_fields(body)
    if not question.strip():
        return plain({"total": 0, "chunks": [], "doc_aggs": {}})
    answer = services().retrieval.ask_owners(owners(datasets), asked)
    shown = _answer_json(answer)
    if with_metadata:
        _add_metadata(shown["chunks"], {found.chunk.tenant_id for found in answer.chunks}, fields)
    return plain(shown)


def owners(datasets: Sequence[DatasetView]) -> dict[str, tuple[str, ...]]:
    """The datasets by tenant."""
    found: dict[str, tuple[str, ...]] = {}
    for dataset in datasets:
        found[dataset.tenant_id] = (*found.get(dataset.tenant_id, ()), dataset.id)
    return found


def notes_of(answer: Answer) -> dict[str, ChunkNote]:
    ids: dict[str, list[str]] = {}
    for found in answer.chunks:
        ids.setdefault(found.chunk.tenant_id, []).append(found.chunk.id)
    notes: dict[str, ChunkNote] = {}
    for tenant_id, chunk_ids in ids.items():
        notes |= services().chunk_notes.of(tenant_id, chunk_ids)
    return notes


def _add_metadata(chunks: list[dict[str, Any]], tenants: Set[str], fields: Sequence[str] | None) -> None:
    ids = list({chunk["document_id"] for chunk in chunks})
    known: dict[str, Mapping[str, Any]] = {}
    for tenant_id in tenants:
        known |= services().metadata.of(tenant_id, ids)
    for chunk in chunks:
        metadata = known.get(chunk["document_id"], {})
        kept = metadata if fields is None else {key: metadata[key] for key in fields if key in metadata}
        chunk["document_metadata"] = kept


def _metadata_fields(body: Mapping[str, Any]) -> list[str] | None:
    return id_list(body, "metadata_fields") if body.get("metadata_fields") else None


def _answer_json(answer: Answer) -> dict[str, Any]:
    """As RAGFlow has it; with what was asked for beyond."""
    shown = answer_json(answer, notes_of(answer))
    if answer.reranking is not None:
        shown["rerank"] = reranking_json(answer.reranking)
    if answer.explanation is not None:
        shown["explain"] = explanation_json(answer.explanation)
        for chunk, found in zip(shown["chunks"], answer.chunks, strict=True):
            if found.why is not None:
                chunk["explain"] = why_json(found.why)
    return shown


def _datasets(body: Mapping[str, Any]) -> list[DatasetView]:
    given = body.get("dataset_ids")
    if given and not isinstance(given, list):
        raise ApiError(DATA, "`dataset_ids` should be a list")
    ids = list(dict.fromkeys(id_list(body, "dataset_ids")))
    known = {dataset.id: dataset for dataset in usable_all(ids)}
    for dataset_id in ids:
        if dataset_id not in known:
            raise ApiError(DATA, f"You don't own the dataset {shown(dataset_id)}.")
    return [known[dataset_id] for dataset_id in ids]


def require_one_model(datasets: Sequence[DatasetView]) -> None:
    """The question is embedded once, with the model that this server has."""
    models = {dataset.embedding_model for dataset in datasets}
    if len(models) > 1:
        raise ApiError(DATA, "Datasets use different embedding models.")
    served = services().datasets.embedding_model
    for model in models - {served}:
        raise ApiError(DATA, f"The datasets are embedded with {model}, and this server embeds with {served}.")


def _document_ids(body: Mapping[str, Any], datasets: Sequence[DatasetView]) -> list[str]:
    given = body.get("document_ids")
    if not given:
        return []
    if not isinstance(given, list):
        raise ApiError(DATA, "`documents` should be a list")
    ids = id_list(body, "document_ids")
    require_in(datasets, ids)
    return ids


def require_in(datasets: Sequence[DatasetView], document_ids: Sequence[str]) -> None:
    """Raises ApiError 102 for a document that is in none of the datasets."""
    known: set[str] = set()
    for tenant_id, dataset_ids in owners(datasets).items():
        known |= services().documents.known(tenant_id, dataset_ids, document_ids)
    for document_id in document_ids:
        if document_id not in known:
            raise ApiError(DATA, f"The datasets don't own the document {shown(document_id)}")
