"""A document's chunks for somebody who reads them: GET /datasets/{id}/documents/{id}/reading. Changing them is in
chunk_edits.py, the pages they stand on in pictures.py."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from flask import Blueprint, Response
from pydantic import Field

from api.apps.auth import require_caller
from api.apps.chunks import owned_document
from api.apps.envelope import DATA, ApiError, plain
from api.apps.openapi.operation import describe
from api.apps.requests import Paged, page_number, page_size, params, text
from api.apps.services import services
from api.apps.shapes.chunks import ReadingPage
from api.db.services.chunk_notes import NO_NOTE, ChunkNote
from api.db.services.chunk_reading import ReadChunk, ReadingFilter

bp = Blueprint("reading", __name__)
bp.before_request(require_caller)

_SWITCH = {"": None, "true": True, "1": True, "false": False, "0": False}
_MAX_PAGE_DIGITS = 9


class ReadChunks(Paged):
    near: Annotated[str, Field(description="A chunk: the page of the list that holds it")] = ""
    on_page: Annotated[str, Field(description="The number of a page of the document")] = ""
    text: Annotated[str, Field(description="What the content contains")] = ""
    available: Literal["", "true", "false", "1", "0"] = ""


@bp.get("/datasets/<dataset_id>/documents/<document_id>/reading")
@describe("Chunks", "The chunks of a document for reading", query=ReadChunks, answer=ReadingPage)
def read(dataset_id: str, document_id: str) -> Response:
    document = owned_document(dataset_id, document_id)
    found = services().chunk_reading.page(document, _filter())
    notes = services().chunk_notes.of(document.tenant_id, [one.chunk.id for one in found.chunks])
    return plain(
        {
            "total": found.total,
            "page": found.page,
            "page_count": document.page_count,
            "unit": str(document.unit),
            "units": document.units,
            "chunks": [_chunk_json(one, notes.get(one.chunk.id, NO_NOTE)) for one in found.chunks],
        }
    )


def _filter() -> ReadingFilter:
    available = params().get("available", "").lower()
    if available not in _SWITCH:
        raise ApiError(DATA, "`available` should be true or false")
    return ReadingFilter(
        page=page_number(),
        page_size=page_size(),
        near=params().get("near", ""),
        on_page=_on_page(),
        text=text(params().get("text", "")),
        available=_SWITCH[available],
    )


def _on_page() -> int:
    given = params().get("on_page", "")
    if not given:
        return 0
    if not given.isascii() or not given.isdecimal() or len(given) > _MAX_PAGE_DIGITS or not int(given):
        raise ApiError(DATA, "`on_page` should be the number of a page")
    return int(given)


def _chunk_json(one: ReadChunk, note: ChunkNote) -> dict[str, Any]:
    chunk = one.chunk
    return {
        "id": chunk.id,
        "number": one.number,
        "page": chunk.page,
        "content": chunk.text,
        "kind": chunk.kind,
        "headings": list(chunk.headings),
        "token_count": chunk.token_count,
        "available": chunk.available,
        "is_added": one.is_added,
        "important_keywords": list(note.keywords),
        "questions": list(note.questions),
        "tag_kwd": list(chunk.tags),
        "positions": [list(position) for position in chunk.positions],
        "picture": chunk.picture,
        "parent": chunk.parent,
    }
