"""The table of contents of a document: GET /datasets/{id}/documents/{id}/toc."""

from __future__ import annotations

from flask import Blueprint, Response

from api.apps.access import usable
from api.apps.auth import require_caller
from api.apps.envelope import plain
from api.apps.openapi.operation import describe
from api.apps.services import services
from api.apps.shapes.chunks import Contents
from api.apps.views import document_json
from rag.flow.contents import table_of_contents
from rag.parser.blocks import Heading

bp = Blueprint("toc", __name__)
bp.before_request(require_caller)


@bp.get("/datasets/<dataset_id>/documents/<document_id>/toc")
@describe("Chunks", "The table of contents of a document", answer=Contents)
def toc(dataset_id: str, document_id: str) -> Response:
    """Of the chunks that a search may see: that of a first parse grows with it."""
    tenant_id = usable(dataset_id).tenant_id
    document = services().documents.get(tenant_id, document_id, dataset_id)
    chunks = (
        (chunk.id, [Heading(title, level, page) for level, title, page in chunk.contents])
        for chunk in services().chunks.every(document)
    )
    entries = [
        {"level": entry.level, "title": entry.title, "page": entry.page, "chunk_id": entry.chunk}
        for entry in table_of_contents(chunks)
    ]
    return plain({"total": len(entries), "toc": entries, "doc": document_json(document)})
