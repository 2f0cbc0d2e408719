"""Rows and chunks as JSON, under the names that RAGFlow's clients read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from api.apps.parser_config import MASK
from api.db.services.chunk_notes import NO_NOTE, ChunkNote
from api.db.services.dataset_service import DatasetView
from api.db.services.document_views import DocumentView
from api.db.services.retrieval_service import Answer, Found
from common.ids import chunk_id
from common.task_state import DocumentRun
from rag.utils.doc_index import ChunkRecord


def date_text(epoch_ms: int) -> str:
    """The server's local time, without a zone."""
    return datetime.fromtimestamp(epoch_ms / 1000).isoformat(timespec="seconds")


def dataset_json(dataset: DatasetView) -> dict[str, Any]:
    return {
        "id": dataset.id,
        "name": dataset.name,
        "avatar": dataset.avatar or "",
        "description": dataset.description,
        "tenant_id": dataset.tenant_id,
        "created_by": dataset.created_by,
        "language": dataset.language,
        "embedding_model": dataset.embedding_model,
        "permission": dataset.permission,
        "chunk_method": dataset.chunk_method,
        "parser_config": _without_secrets(dataset.parser_config),
        "pagerank": dataset.pagerank,
        "pipeline_id": None,
        "document_count": dataset.document_count,
        "chunk_count": dataset.chunk_count,
        "token_num": dataset.token_count,
        "similarity_threshold": dataset.similarity_threshold,
        "vector_similarity_weight": dataset.vector_similarity_weight,
        "status": "1",
        **{f"{kind}_task_{part}": None for kind in ("graphrag", "raptor", "mindmap") for part in ("id", "finish_at")},
        **_times(dataset.create_ms, dataset.update_ms),
    }


def _without_secrets(parser_config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A password is never shown again; that there is one, is."""
    return {**parser_config, "password": MASK} if parser_config.get("password") else parser_config


def listed_dataset_json(dataset: DatasetView) -> dict[str, Any]:
    return dataset_json(dataset) | {
        "nickname": dataset.nickname,
        "tenant_avatar": None,
        "embedding_model_name": dataset.embedding_model.partition("@")[0],
    }


def parsing_status_json(counts: Mapping[DocumentRun, int]) -> dict[str, int]:
    return {f"{run.name.lower()}_count": counts.get(run, 0) for run in DocumentRun}


def document_json(document: DocumentView) -> dict[str, Any]:
    return {
        "id": document.id,
        "name": document.name,
        "dataset_id": document.dataset_id,
        "chunk_method": document.chunk_method,
        "parser_config": _without_secrets(document.parser_config),
        "pipeline_id": "",
        "source_type": "local",
        "type": document.type,
        "suffix": document.suffix,
        "created_by": document.created_by,
        "location": document.name,
        "size": document.size_bytes,
        "thumbnail": "",
        "token_count": document.token_count,
        "chunk_count": document.chunk_count,
        "progress": document.progress,
        "progress_msg": document.progress_msg,
        "process_begin_at": date_text(document.begin_ms) if document.begin_ms else None,
        "process_duration": document.duration_s,
        "run": document.run.name,
        "status": "1" if document.is_enabled else "0",
        **_times(document.create_ms, document.update_ms),
    }


def listed_document_json(document: DocumentView) -> dict[str, Any]:
    return document_json(document) | {
        "meta_fields": document.meta_fields,
        "pipeline_name": "",
        "nickname": document.nickname,
    }


def chunk_json(chunk: ChunkRecord, document: DocumentView, content: str, note: ChunkNote = NO_NOTE) -> dict[str, Any]:
    """A chunk of a document that is switched off can't be found, whatever its own switch says."""
    return {
        "id": chunk.id,
        "content": content,
        "document_id": chunk.document_id,
        "docnm_kwd": document.name,
        "important_keywords": list(note.keywords),
        "questions": list(note.questions),
        "tag_kwd": list(chunk.tags),
        "dataset_id": chunk.dataset_id,
        "image_id": _image_id(chunk),
        "available": chunk.available and document.is_enabled,
        "positions": [list(position) for position in chunk.positions],
        "doc_type_kwd": chunk.kind,
    }


def added_chunk_json(chunk: ChunkRecord, note: ChunkNote) -> dict[str, Any]:
    shown = {
        "id": chunk.id,
        "content": chunk.text,
        "document_id": chunk.document_id,
        "dataset_id": chunk.dataset_id,
        "important_keywords": list(note.keywords),
        "questions": list(note.questions),
        "create_time": datetime.fromtimestamp(chunk.created_ms / 1000).strftime("%Y-%m-%d %H:%M:%S"),
        "create_timestamp": chunk.created_ms / 1000,
        "doc_type_kwd": chunk.kind,
    }
    return shown | ({"tag_kwd": list(chunk.tags)} if chunk.tags else {})


def raw_chunk_json(chunk: ChunkRecord, document_name: str, note: ChunkNote = NO_NOTE) -> dict[str, Any]:
    """Under the names that RAGFlow's index has for them."""
    return {
        "content_with_weight": chunk.parent or chunk.text,
        "content_ltks": chunk.terms,
        "doc_id": chunk.document_id,
        "docnm_kwd": document_name,
        "kb_id": chunk.dataset_id,
        "important_kwd": list(note.keywords),
        "question_kwd": list(note.questions),
        "tag_kwd": list(chunk.tags),
        "tag_feas": dict(note.tag_weights),
        "img_id": _image_id(chunk),
        "available_int": int(chunk.available),
        "position_int": [list(position) for position in chunk.positions],
        "page_num_int": sorted({position[0] for position in chunk.positions}),
        "doc_type_kwd": chunk.kind,
        "create_timestamp_flt": chunk.created_ms / 1000,
    }


Notes = Mapping[str, ChunkNote]


def answer_json(answer: Answer, notes: Notes) -> dict[str, Any]:
    return {
        "total": answer.total,
        "chunks": [_found_json(found, notes.get(found.chunk.id, NO_NOTE)) for found in answer.chunks],
        "doc_aggs": _documents_json(answer),
    }


def raw_answer_json(answer: Answer, notes: Notes) -> dict[str, Any]:
    """As the search of datasets answers: `total` is how many chunks are in the answer."""
    chunks = [
        raw_chunk_json(found.chunk, found.document_name, notes.get(found.chunk.id, NO_NOTE))
        | {
            "chunk_id": found.chunk.id,
            "similarity": found.similarity,
            "vector_similarity": found.vector_similarity,
            "term_similarity": found.term_similarity,
        }
        for found in answer.chunks
    ]
    return {"total": len(chunks), "chunks": chunks, "doc_aggs": _documents_json(answer), "labels": []}


def _documents_json(answer: Answer) -> list[dict[str, Any]]:
    return [{"doc_name": d.document_name, "doc_id": d.document_id, "count": d.count} for d in answer.documents]


def _found_json(found: Found, note: ChunkNote) -> dict[str, Any]:
    chunk = found.chunk
    shown = {
        "id": chunk.id,
        "content": chunk.parent or chunk.text,
        "content_ltks": chunk.terms,
        "document_id": chunk.document_id,
        "document_keyword": found.document_name,
        "dataset_id": chunk.dataset_id,
        "important_keywords": list(note.keywords),
        "tag_kwd": list(chunk.tags),
        "image_id": _image_id(chunk),
        "mom_id": _mother_id(chunk),
        "row_id": None,
        "similarity": found.similarity,
        "vector_similarity": found.vector_similarity,
        "term_similarity": found.term_similarity,
        "positions": [list(position) for position in chunk.positions],
        "doc_type_kwd": chunk.kind,
    }
    return shown if found.highlight is None else shown | {"highlight": found.highlight}


def _image_id(chunk: ChunkRecord) -> str:
    """The picture of a figure: the rest of the address of the document's pictures."""
    return f"{chunk.dataset_id}/documents/{chunk.document_id}/pictures?{chunk.picture}" if chunk.picture else ""


def _mother_id(chunk: ChunkRecord) -> str:
    if chunk.parent_ordinal < 0:
        return ""
    return chunk_id(chunk.document_id, chunk.generation, chunk.task_no, chunk.claim_no, chunk.parent_ordinal)


def _times(create_ms: int, update_ms: int) -> dict[str, Any]:
    return {
        "create_time": create_ms,
        "create_date": date_text(create_ms),
        "update_time": update_ms,
        "update_date": date_text(update_ms),
    }
