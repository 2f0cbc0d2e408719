"""Retrieval: the question analysed and embedded, the index asked, and only what a search may see answered.

Ranking is the index's work; what may be seen is decided by visibility.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from peewee import fn

from api.db.database import Rows
from api.db.models import Document
from api.db.services.highlight import highlight
from api.db.services.metadata_conditions import Conditions
from api.db.services.metadata_service import MetadataService
from api.db.services.visibility import SearchedDocument, searched_documents
from rag.utils.doc_index import ChunkRecord, DocIndex, Hit, Query
from rag.utils.embedder import Embedder
from rag.utils.terms import analyse

# A page is cut out of a window of candidates: this many, rounded up to whole pages.
_WINDOW = 64
# A document may be made visible between the search and the look at its row; then the search is repeated.
_ROUNDS = 3


@dataclass(frozen=True)
class Question:
    """`metadata` chooses documents where none are named."""

    text: str
    dataset_ids: tuple[str, ...]
    document_ids: tuple[str, ...] = ()
    page: int = 1
    page_size: int = 30
    similarity_threshold: float = 0.2
    vector_similarity_weight: float = 0.3
    top_k: int = 1024
    highlight: bool = False
    metadata: Conditions | None = None


@dataclass(frozen=True)
class Found:
    chunk: ChunkRecord
    document_name: str
    similarity: float
    term_similarity: float
    vector_similarity: float
    highlight: str | None


@dataclass(frozen=True)
class DocumentCount:
    document_id: str
    document_name: str
    count: int


@dataclass(frozen=True)
class Answer:
    """`total` counts the hits over the threshold in the window that holds the page, `documents` their documents."""

    total: int
    chunks: list[Found]
    documents: list[DocumentCount]


@dataclass(frozen=True)
class _Seen:
    hits: list[Hit]
    documents: dict[str, SearchedDocument]
    dropped: int


class RetrievalService:
    def __init__(self, rows: Rows, index: DocIndex, embedder: Embedder) -> None:
        self._rows = rows
        self._index = index
        self._embedder = embedder

    def ask(self, tenant_id: str, question: Question) -> Answer:
        """Best first. Raises IndexUnavailable: an outage is no empty answer."""
        if not question.text.strip():
            return Answer(0, [], [])
        terms = tuple(dict.fromkeys(analyse(question.text)))
        window = -(-_WINDOW // question.page_size) * question.page_size
        first = (question.page - 1) * question.page_size
        start = first - first % window
        wanted = min(start + window, question.top_k)
        if wanted <= start:
            return Answer(0, [], [])
        if question.metadata is not None and not question.document_ids:
            chosen = MetadataService(self._rows).documents_meeting(tenant_id, question.dataset_ids, question.metadata)
            if not chosen:
                return Answer(0, [], [])
            question = replace(question, document_ids=chosen)
        seen = self._search(tenant_id, question, terms, wanted)
        found = _families(seen.hits)
        # Without a weight for meaning a threshold says nothing: word scores depend on how rare the words are.
        threshold = question.similarity_threshold if question.vector_similarity_weight else 0.0
        hits = [hit for hit in found[start:wanted] if hit.similarity >= threshold]
        words = frozenset(terms) if question.highlight else None
        page = hits[first - start : first - start + question.page_size]
        chunks = [_found(hit, seen.documents[hit.chunk.document_id], words) for hit in page]
        return Answer(len(hits), chunks, _documents(hits, seen.documents))

    def _search(self, tenant_id: str, question: Question, terms: tuple[str, ...], wanted: int) -> _Seen:
        vector = self._embedder.embed([question.text])[0]
        limit = wanted
        rounds = 0
        while True:
            at_least = self._rows.read(_visible_seq, question.dataset_ids)
            query = Query(
                tenant_id=tenant_id,
                dataset_ids=question.dataset_ids,
                terms=terms,
                vector=vector,
                vector_weight=question.vector_similarity_weight,
                limit=limit,
                document_ids=question.document_ids or None,
            )
            found = self._index.search(query, at_least)
            seen = self._only_visible(tenant_id, found)
            rounds += 1
            if len(seen.hits) < wanted and len(found) >= limit:
                limit *= 2
            elif not seen.dropped or rounds >= _ROUNDS or not self._moved_on(question, at_least):
                return seen

    def _only_visible(self, tenant_id: str, hits: Sequence[Hit]) -> _Seen:
        documents = searched_documents(self._rows, tenant_id, {hit.chunk.document_id for hit in hits})
        kept = [
            hit
            for hit in hits
            if (document := documents.get(hit.chunk.document_id)) is not None and document.shows(hit.chunk)
        ]
        return _Seen(kept, documents, len(hits) - len(kept))

    def _moved_on(self, question: Question, at_least: int) -> bool:
        return self._rows.read(_visible_seq, question.dataset_ids) > at_least


def _families(hits: Sequence[Hit]) -> list[Hit]:
    """Of the children of one parent the best, which stands for it."""
    kept: dict[tuple[object, ...], Hit] = {}
    for hit in hits:
        chunk = hit.chunk
        family = (chunk.document_id, chunk.generation, chunk.task_no, chunk.claim_no, chunk.parent_ordinal)
        kept.setdefault(family if chunk.parent_ordinal >= 0 else (chunk.id,), hit)
    return list(kept.values())


def _visible_seq(dataset_ids: Sequence[str]) -> int:
    """How far the index must be for everything that is DONE in these datasets to be found."""
    query = Document.select(fn.MAX(Document.visible_seq)).where(
        Document.kb_id.in_(list(dataset_ids)) & (Document.deleted_ms == 0)
    )
    return int(query.scalar() or 0)


def _found(hit: Hit, document: SearchedDocument, words: frozenset[str] | None) -> Found:
    return Found(
        chunk=hit.chunk,
        document_name=document.name,
        similarity=hit.similarity,
        term_similarity=hit.term_similarity,
        vector_similarity=hit.vector_similarity,
        highlight=None if words is None else highlight(hit.chunk.parent or hit.chunk.text, words),
    )


def _documents(hits: Sequence[Hit], documents: dict[str, SearchedDocument]) -> list[DocumentCount]:
    counts = Counter(hit.chunk.document_id for hit in hits)
    return [DocumentCount(doc_id, documents[doc_id].name, count) for doc_id, count in counts.most_common()]
