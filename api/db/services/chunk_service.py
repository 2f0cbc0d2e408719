"""The chunks of one document, as a reader may see them: those of the active generation that no lost claim wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from api.db.database import Rows
from api.db.services.document_views import DocumentView
from api.db.services.stale_service import Claim, StaleService
from api.db.services.visibility import claim_of
from common.errors import NotFound
from rag.utils.doc_index import ChunkPage, ChunkRecord, DocIndex, Scope
from rag.utils.terms import analyse

_READ_AT_ONCE = 1000


@dataclass(frozen=True)
class ChunkFilter:
    page: int = 1
    page_size: int = 30
    keywords: str = ""
    ids: tuple[str, ...] = ()
    available: bool | None = None


class ChunkService:
    def __init__(self, rows: Rows, index: DocIndex) -> None:
        self._rows = rows
        self._index = index

    def page(self, document: DocumentView, wanted: ChunkFilter) -> ChunkPage:
        """In reading order. Raises NotFound for an id that is none of the document's chunks."""
        if wanted.ids:
            return _cut(self._by_id(document, wanted.ids), wanted)
        if not document.active_generation:
            return ChunkPage(0)
        lost = self._lost(document)
        if not wanted.keywords and wanted.available is None and not lost:
            offset = (wanted.page - 1) * wanted.page_size
            return self._index.list(scope_of(document), min(offset, 2**62), wanted.page_size)
        terms = set(analyse(wanted.keywords))
        return _cut(
            [
                chunk
                for chunk in self.every(document)
                if wanted.available in (None, chunk.available) and terms.issubset(chunk.terms.split())
            ],
            wanted,
        )

    def every(self, document: DocumentView) -> Iterator[ChunkRecord]:
        """All that a reader may see, in reading order."""
        if not document.active_generation:
            return
        lost = self._lost(document)
        yield from (chunk for chunk in self._all(document) if claim_of(chunk) not in lost)

    def known(self, document: DocumentView, ids: Sequence[str]) -> list[ChunkRecord]:
        """Those of the chunks that are the document's and may be seen, each once."""
        lost = self._lost(document)
        unique = list(dict.fromkeys(ids))
        return [
            chunk
            for start in range(0, len(unique), _READ_AT_ONCE)
            for chunk in self._index.get(document.tenant_id, unique[start : start + _READ_AT_ONCE])
            if chunk.document_id == document.id
            and chunk.generation == document.active_generation
            and claim_of(chunk) not in lost
        ]

    def _by_id(self, document: DocumentView, ids: Sequence[str]) -> list[ChunkRecord]:
        found = {chunk.id: chunk for chunk in self.known(document, ids)}
        for chunk_id in ids:
            if chunk_id not in found:
                raise NotFound(f"Chunk not found: {document.dataset_id}/{chunk_id}")
        return list(found.values())

    def _lost(self, document: DocumentView) -> Set[Claim]:
        """Claims of the active generation whose chunks are not shown."""
        lost = StaleService(self._rows).lost_claims([document.id]).get(document.id, set())
        return {claim for claim in lost if claim[0] == document.active_generation}

    def _all(self, document: DocumentView) -> Iterator[ChunkRecord]:
        offset = 0
        while part := self._index.list(scope_of(document), offset, _READ_AT_ONCE).chunks:
            yield from part
            offset += len(part)


def scope_of(document: DocumentView) -> Scope:
    return Scope(document.tenant_id, document.dataset_id, document.id, document.active_generation)


def _cut(chunks: list[ChunkRecord], wanted: ChunkFilter) -> ChunkPage:
    start = (wanted.page - 1) * wanted.page_size
    return ChunkPage(len(chunks), chunks[start : start + wanted.page_size])
