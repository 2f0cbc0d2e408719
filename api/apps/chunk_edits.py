"""Single chunks added, changed, switched and deleted under /datasets/{id}/documents/{id}/chunks."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from flask import Blueprint, Response

from api.apps.auth import require_caller
from api.apps.chunk_requests import (
    AddChunk,
    ChunkBody,
    DeleteChunks,
    SwitchChunks,
    UpdateChunk,
    keyword_list,
    positions,
    question_list,
    refuse_image,
    switch,
    tag_weights,
    text_or_none,
)
from api.apps.chunks import owned_document
from api.apps.envelope import DATA, ApiError, full, plain
from api.apps.openapi.operation import Surface, describe
from api.apps.requests import id_list, loose_body
from api.apps.services import services
from api.apps.shapes.chunks import Added
from api.apps.shapes.documents import Started
from api.apps.views import added_chunk_json
from api.db.services.chunk_edits import ChunkChange, NewChunk
from api.db.services.chunk_notes import ChunkNote
from api.db.services.document_views import DocumentView

bp = Blueprint("chunk_edits", __name__)
bp.before_request(require_caller)

_CHUNKS = "/datasets/<dataset_id>/documents/<document_id>/chunks"


@bp.post(_CHUNKS)
@describe(
    "Chunks",
    "Add a chunk",
    body=AddChunk,
    answer=Added,
    example={"content": "The filter is cleaned weekly.", "important_keywords": ["filter"], "questions": []},
)
def add(dataset_id: str, document_id: str) -> Response:
    document = owned_document(dataset_id, document_id)
    body = loose_body()
    content = text_or_none(body, "content")
    if content is None or not content.strip():
        raise ApiError(DATA, "`content` is required")
    note = ChunkNote(keyword_list(body, "important_keywords") or (), question_list(body) or (), tag_weights(body) or {})
    refuse_image(body)
    new = NewChunk(content, note, keyword_list(body, "tag_kwd") or ())
    chunk = services().chunk_edits.add(document, _model(document), new)
    return plain({"chunk": added_chunk_json(chunk, note)})


@bp.put(f"{_CHUNKS}/<chunk_id>")
@bp.patch(f"{_CHUNKS}/<chunk_id>")
@describe("Chunks", "Change a chunk", body=UpdateChunk, example={"content": "The filter is cleaned daily."})
def update(dataset_id: str, document_id: str, chunk_id: str) -> Response:
    document = owned_document(dataset_id, document_id)
    body = loose_body()
    refuse_image(body)
    change = ChunkChange(
        content=_new_content(document, body),
        keywords=keyword_list(body, "important_keywords"),
        questions=question_list(body),
        tag_weights=tag_weights(body),
        tags=keyword_list(body, "tag_kwd"),
        available=switch(body, "available"),
        positions=positions(body),
    )
    services().chunk_edits.update(document, _model(document), chunk_id, change)
    return plain()


@bp.patch(_CHUNKS)
@describe("Chunks", "Switch chunks on or off", surface=Surface.FULL, body=SwitchChunks, answer=Literal[True])
def switch_chunks(dataset_id: str, document_id: str) -> Response:
    document = owned_document(dataset_id, document_id)
    body = loose_body()
    ids = list(dict.fromkeys(id_list(body, "chunk_ids")))
    available = switch(body, "available_int")
    available = switch(body, "available") if available is None else available
    if available is None:
        raise ApiError(DATA, "`available_int` or `available` is required")
    services().chunk_edits.switch(document, ids, available)
    return full(True)


@bp.delete(_CHUNKS)
@describe(
    "Chunks",
    "Delete chunks",
    note="Without ids nothing is deleted, unless `delete_all` says so. `data` is there only for repeated ids.",
    body=DeleteChunks,
    needs_body=False,
    answer=Started | None,
)
def delete(dataset_id: str, document_id: str) -> Response:
    """Without ids nothing is deleted, unless `delete_all` says so."""
    document = owned_document(dataset_id, document_id)
    body = loose_body()
    delete_all = body.get("delete_all")
    if not isinstance(delete_all, bool | None):
        raise ApiError(DATA, "`delete_all` should be true or false")
    if not body.get("chunk_ids"):
        if delete_all:
            services().chunk_edits.delete_all(document)
        return plain()
    counts = Counter(id_list(body, "chunk_ids"))
    deleted = services().chunk_edits.delete(document, list(counts))
    if deleted < len(counts):
        raise ApiError(DATA, f"rm_chunk deleted chunks {deleted}, expect {len(counts)}")
    remarks = [f"Duplicate chunk ids: {one}" for one, count in counts.items() if count > 1]
    return plain({"success_count": deleted, "errors": remarks} if remarks else None)


def _new_content(document: DocumentView, body: ChunkBody) -> str | None:
    content = text_or_none(body, "content")
    if content is None:
        return None
    if not content.strip():
        raise ApiError(DATA, "`content` is required")
    if document.chunk_method == "qa" and len([p for p in content.replace("\t", "\n").split("\n") if p.strip()]) < 2:
        raise ApiError(DATA, "Q&A must be separated by TAB/ENTER key.")
    return content


def _model(document: DocumentView) -> str:
    return services().datasets.get(document.tenant_id, document.dataset_id).embedding_model
