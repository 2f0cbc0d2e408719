"""The chunks of a document: GET /datasets/{id}/documents/{id}/chunks, and one of them."""

from __future__ import annotations

from typing import Annotated, Literal

from flask import Blueprint, Response
from pydantic import Field

from api.apps.access import usable
from api.apps.auth import require_caller
from api.apps.envelope import DATA, ApiError, plain
from api.apps.openapi.operation import describe
from api.apps.requests import Paged, page_number, page_size, params
from api.apps.services import services
from api.apps.shapes.chunks import ChunkInFull, ChunkPage
from api.apps.views import chunk_json, document_json, raw_chunk_json
from api.db.services.chunk_notes import NO_NOTE
from api.db.services.chunk_service import ChunkFilter
from api.db.services.document_views import DocumentView
from api.db.services.highlight import highlight
from rag.utils.terms import analyse

bp = Blueprint("chunks", __name__)
bp.before_request(require_caller)

_MAX_IDS = 100
_SWITCH = {"": None, "true": True, "1": True, "false": False, "0": False}


class ListChunks(Paged):
    keywords: Annotated[str, Field(description="Full text; `content` then marks the words")] = ""
    id: str = ""
    chunk_ids: Annotated[list[str], Field(max_length=_MAX_IDS, description="Repeated, or parted by commas")] = Field(
        default_factory=list
    )
    available: Literal["", "true", "false", "1", "0"] = ""


@bp.get("/datasets/<dataset_id>/documents/<document_id>/chunks")
@describe("Chunks", "List the chunks of a document", query=ListChunks, answer=ChunkPage)
def list_page(dataset_id: str, document_id: str) -> Response:
    document = owned_document(dataset_id, document_id)
    wanted = _filter()
    page = services().chunks.page(document, wanted)
    notes = services().chunk_notes.of(document.tenant_id, [chunk.id for chunk in page.chunks])
    words = frozenset(analyse(wanted.keywords))
    chunks = [
        chunk_json(c, document, highlight(c.text, words) if words else c.text, notes.get(c.id, NO_NOTE))
        for c in page.chunks
    ]
    return plain({"total": page.total, "chunks": chunks, "doc": document_json(document)})


@bp.get("/datasets/<dataset_id>/documents/<document_id>/chunks/<chunk_id>")
@describe("Chunks", "Show a chunk", answer=ChunkInFull)
def get(dataset_id: str, document_id: str, chunk_id: str) -> Response:
    document = owned_document(dataset_id, document_id)
    found = services().chunks.known(document, [chunk_id])
    if not found:
        raise ApiError(DATA, "Chunk not found!")
    note = services().chunk_notes.of(document.tenant_id, [chunk_id]).get(chunk_id, NO_NOTE)
    return plain({"id": chunk_id} | raw_chunk_json(found[0], document.name, note))


def owned_document(dataset_id: str, document_id: str) -> DocumentView:
    """The document of the caller's dataset. Raises NotFound."""
    tenant_id = usable(dataset_id).tenant_id
    return services().documents.get(tenant_id, document_id, dataset_id)


def _filter() -> ChunkFilter:
    args = params()
    ids = [args["id"]] if args.get("id") else []
    ids += [one for given in args.getlist("chunk_ids") for one in given.split(",") if one]
    if len(ids) > _MAX_IDS:
        raise ApiError(DATA, f"`chunk_ids` has {len(ids)} entries; at most {_MAX_IDS} are allowed")
    available = args.get("available", "").lower()
    if available not in _SWITCH:
        raise ApiError(DATA, "`available` should be true or false")
    return ChunkFilter(
        page=page_number(),
        page_size=page_size(),
        keywords=args.get("keywords", ""),
        ids=tuple(ids),
        available=_SWITCH[available],
    )
