"""Retrieval: the question analysed and embedded, the index asked, and only what a search may see answered.

Ranking is the index's work, and the reranker's where there is one (reranking.py); what may be seen is decided by
visibility.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from api.db.database import Rows
from api.db.services.explanation import Explained, Explanation, Why, explain
from api.db.services.highlight import as_found, highlight, telling
from api.db.services.metadata_conditions import Conditions
from api.db.services.metadata_service import MetadataService
from api.db.services.reranking import Reranked, Reranking, rerank
from api.db.services.task_sql import marks
from api.db.services.visibility import SearchedDocument
from api.db.services.visible_search import Seen, VisibleSearch, families
from common.errors import InvalidInput
from rag.utils.doc_index import ChunkRecord, DocIndex, Hit, Query
from rag.utils.embedder import Embedder
from rag.utils.phrases import quoted
from rag.utils.reranker import Reranker
from rag.utils.terms import analyse

# A page is cut out of a window of candidates: this many, rounded up to whole pages.
_WINDOW = 64


@dataclass(frozen=True)
class Question:
    """`metadata` chooses documents where none are named. `rerank` asks for the reranker, if there is one."""

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
    rerank: bool = False
    explain: bool = False

    @property
    def threshold(self) -> float:
        """None without a weight for meaning: word scores depend on how rare the words are."""
        return self.similarity_threshold if self.vector_similarity_weight else 0.0


@dataclass(frozen=True)
class Found:
    """`vector_similarity` is the reranker's score where one took part."""

    chunk: ChunkRecord
    document_name: str
    similarity: float
    term_similarity: float
    vector_similarity: float
    highlight: str | None
    why: Why | None = None


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
    reranking: Reranking | None = None
    explanation: Explanation | None = None


_NOTHING = Answer(0, [], [])
# Dataset ids by tenant.
Owners = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class _Window:
    """The page is cut out of the hits from `start` to `end`, and begins at `first`."""

    first: int
    start: int
    end: int


class RetrievalService:
    def __init__(self, rows: Rows, index: DocIndex, embedder: Embedder, reranker: Reranker | None = None) -> None:
        self._rows = rows
        self._search = VisibleSearch(rows, index)
        self._embedder = embedder
        self._reranker = reranker

    @property
    def embedder(self) -> Embedder:
        return self._embedder

    @property
    def rerank_model(self) -> str | None:
        return self._reranker.name if self._reranker else None

    def ask(self, tenant_id: str, question: Question) -> Answer:
        """Best first. Raises IndexUnavailable: an outage is no empty answer; and InvalidInput for datasets of another
        embedding model."""
        return self.ask_owners({tenant_id: question.dataset_ids}, question)

    def ask_owners(self, owners: Owners, question: Question) -> Answer:
        """The same of datasets of several tenants: each is searched, and the hits are put in one order."""
        window = _window(question)
        if not question.text.strip() or window.end <= window.start:
            return _NOTHING
        if question.explain and len(owners) > 1:
            raise InvalidInput("`explain` tells of datasets of one owner: ask those of others by themselves")
        self._require_model(question.dataset_ids)
        if question.metadata is not None and not question.document_ids:
            meeting = MetadataService(self._rows).documents_meeting
            chosen = [one for owner, ids in owners.items() for one in meeting(owner, ids, question.metadata)]
            if not chosen:
                return _NOTHING
            question = replace(question, document_ids=tuple(chosen))
        tenant_id, dataset_ids = next(iter(owners.items()))
        query = Query(
            tenant_id=tenant_id,
            dataset_ids=tuple(dataset_ids),
            terms=tuple(dict.fromkeys(analyse(question.text))),
            vector=self._embedder.embed([question.text])[0],
            vector_weight=question.vector_similarity_weight,
            limit=window.end,
            document_ids=question.document_ids or None,
            phrases=quoted(question.text),
            explain=question.explain,
        )
        queries = [replace(query, tenant_id=owner, dataset_ids=tuple(ids)) for owner, ids in owners.items()]
        return self._answer(question, query, self._seen(queries), window)

    def _require_model(self, dataset_ids: Sequence[str]) -> None:
        """The question is embedded by the model at hand, and can't be compared with vectors of another."""
        sql = f"SELECT DISTINCT embedding_model FROM knowledgebase WHERE id IN ({marks(dataset_ids)})"
        for (model,) in self._rows.read(self._rows.rows, sql, dataset_ids) if dataset_ids else ():
            if model != self._embedder.name:
                raise InvalidInput(
                    f"The datasets are embedded with {model}, and this server embeds with {self._embedder.name}."
                )

    def _seen(self, queries: Sequence[Query]) -> Seen:
        parts = [self._search.best(query) for query in queries]
        if len(parts) == 1:
            return parts[0]
        hits = sorted((hit for part in parts for hit in part.hits), key=lambda hit: -hit.similarity)
        documents = {key: value for part in parts for key, value in part.documents.items()}
        return Seen(hits, documents, sum(part.dropped for part in parts))

    def _answer(self, question: Question, query: Query, seen: Seen, window: _Window) -> Answer:
        found = families(seen.hits)[window.start : window.end]
        reranked = self._reranked(question, found)
        ranked = reranked.hits if reranked else found
        hits = [hit for hit in ranked if hit.similarity >= question.threshold]
        page = hits[window.first - window.start :][: question.page_size]
        words = None
        if question.highlight:
            words = telling(as_found(query.terms, [hit.chunk.terms for hit in page]), query.phrases)
        told = self._explained(question, query, seen.documents, found, reranked) if question.explain else None
        chunks = [
            _found(hit, seen.documents[hit.chunk.document_id], words, told.hits[hit.chunk.id] if told else None)
            for hit in page
        ]
        return Answer(
            len(hits),
            chunks,
            _documents(hits, seen.documents),
            reranked.outcome if reranked else None,
            told.question if told else None,
        )

    def _reranked(self, question: Question, hits: Sequence[Hit]) -> Reranked | None:
        if self._reranker is None or not (question.rerank or self._reranker.always):
            return None
        return rerank(self._reranker, question.text, hits, question.vector_similarity_weight)

    def _explained(
        self,
        question: Question,
        query: Query,
        documents: Mapping[str, SearchedDocument],
        found: Sequence[Hit],
        reranked: Reranked | None,
    ) -> Explained:
        """Asks the index twice more: what stands where by words alone, and by vectors alone."""
        names = {document_id: document.name for document_id, document in documents.items()}
        return explain(self._search, query, question.threshold, names, found, reranked)


def _window(question: Question) -> _Window:
    size = -(-_WINDOW // question.page_size) * question.page_size
    first = (question.page - 1) * question.page_size
    start = first - first % size
    return _Window(first, start, min(start + size, question.top_k))


def _found(hit: Hit, document: SearchedDocument, words: frozenset[str] | None, why: Why | None) -> Found:
    return Found(
        chunk=hit.chunk,
        document_name=document.name,
        similarity=hit.similarity,
        term_similarity=hit.term_similarity,
        vector_similarity=hit.vector_similarity,
        highlight=None if words is None else highlight(hit.chunk.parent or hit.chunk.text, words),
        why=why,
    )


def _documents(hits: Sequence[Hit], documents: Mapping[str, SearchedDocument]) -> list[DocumentCount]:
    counts = Counter(hit.chunk.document_id for hit in hits)
    return [DocumentCount(doc_id, documents[doc_id].name, count) for doc_id, count in counts.most_common()]
