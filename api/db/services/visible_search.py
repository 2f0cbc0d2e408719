"""The index asked until enough of what it answers may be seen. What may be, is decided by visibility.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from peewee import fn

from api.db.database import Rows
from api.db.models import Document
from api.db.services.visibility import SearchedDocument, searched_documents
from rag.utils.doc_index import ChunkRecord, DocIndex, Hit, Query

# A document may be made visible between the search and the look at its row; then the search is repeated.
_ROUNDS = 3
Family = tuple[object, ...]


@dataclass(frozen=True)
class Seen:
    """`dropped` counts what may not be seen."""

    hits: list[Hit]
    documents: Mapping[str, SearchedDocument]
    dropped: int


class VisibleSearch:
    def __init__(self, rows: Rows, index: DocIndex) -> None:
        self._rows = rows
        self._index = index

    def best(self, query: Query) -> Seen:
        """As many as the query's limit where there are so many, and perhaps more."""
        wanted, limit, rounds = query.limit, query.limit, 0
        while True:
            at_least = self._rows.read(_visible_seq, query.dataset_ids)
            found = self._index.search(replace(query, limit=limit), at_least)
            seen = self._only_visible(query.tenant_id, found)
            rounds += 1
            if len(seen.hits) < wanted and len(found) >= limit:
                limit *= 2
            elif not seen.dropped or rounds >= _ROUNDS or not self._moved_on(query, at_least):
                return seen

    def ranks(self, query: Query) -> dict[Family, int]:
        """Which place each family of chunks has, counted from 1."""
        hits = families(self.best(query).hits)[: query.limit]
        return {family_of(hit.chunk): place for place, hit in enumerate(hits, 1)}

    def _only_visible(self, tenant_id: str, hits: Sequence[Hit]) -> Seen:
        documents = searched_documents(self._rows, tenant_id, {hit.chunk.document_id for hit in hits})
        kept = [
            hit
            for hit in hits
            if (document := documents.get(hit.chunk.document_id)) is not None and document.shows(hit.chunk)
        ]
        return Seen(kept, documents, len(hits) - len(kept))

    def _moved_on(self, query: Query, at_least: int) -> bool:
        return self._rows.read(_visible_seq, query.dataset_ids) > at_least


def family_of(chunk: ChunkRecord) -> Family:
    """The children of one parent are a family; any other chunk is its own."""
    if chunk.parent_ordinal < 0:
        return (chunk.id,)
    return chunk.document_id, chunk.generation, chunk.task_no, chunk.claim_no, chunk.parent_ordinal


def families(hits: Sequence[Hit]) -> list[Hit]:
    """Of the children of one parent the best, which stands for it."""
    kept: dict[Family, Hit] = {}
    for hit in hits:
        kept.setdefault(family_of(hit.chunk), hit)
    return list(kept.values())


def _visible_seq(dataset_ids: Sequence[str]) -> int:
    """How far the index must be for everything that is DONE in these datasets to be found."""
    query = Document.select(fn.MAX(Document.visible_seq)).where(
        Document.kb_id.in_(list(dataset_ids)) & (Document.deleted_ms == 0)
    )
    return int(query.scalar() or 0)
