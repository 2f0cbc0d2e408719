"""What a search may see: available chunks of a document's active generation that no lost claim wrote.

The index answers every chunk it holds; the rows decide here which of them count."""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import dataclass

from api.db.database import Rows
from api.db.models import Document
from api.db.services.stale_service import Claim, StaleService
from rag.utils.doc_index import ChunkRecord

_SLICE = 500


@dataclass(frozen=True)
class SearchedDocument:
    """A document that a search may answer from."""

    id: str
    name: str
    active_generation: int
    lost_claims: Set[Claim]

    def shows(self, chunk: ChunkRecord) -> bool:
        return (
            chunk.available and chunk.generation == self.active_generation and claim_of(chunk) not in self.lost_claims
        )


def claim_of(chunk: ChunkRecord) -> Claim:
    return chunk.generation, chunk.task_no, chunk.claim_no


def searched_documents(rows: Rows, tenant_id: str, document_ids: Collection[str]) -> dict[str, SearchedDocument]:
    """Those of the documents that are enabled and not deleted."""
    ordered = sorted(document_ids)
    # Lost claims first: a claim that is lost meanwhile belongs to a search that began before.
    lost = StaleService(rows).lost_claims(ordered)
    enabled = (Document.tenant_id == tenant_id) & (Document.deleted_ms == 0) & (Document.status == 1)
    found: dict[str, SearchedDocument] = {}
    for start in range(0, len(ordered), _SLICE):
        query = Document.select(Document.id, Document.name, Document.active_generation).where(
            enabled & Document.id.in_(ordered[start : start + _SLICE])
        )
        for row in rows.read(list, query):
            found[row.id] = SearchedDocument(row.id, row.name, row.active_generation, lost.get(row.id, set()))
    return found
