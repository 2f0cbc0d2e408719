"""Why a search answered what it did: of the question as it was understood, and of each hit.

Owns these facts, how they come out of hits, and their form as JSON. Where a word stands is looked up here, in what the
chunk shows; what it counts for is the index's to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from api.db.services.reranking import Reranked
from api.db.services.visible_search import VisibleSearch, family_of
from rag.flow.tables import plain_text
from rag.utils.doc_index import ChunkRecord, Hit, Query, WordScore
from rag.utils.phrases import Phrase
from rag.utils.terms import analyse

TEXT, HEADINGS, FILE_NAME = "text", "headings", "file name"
_DIGITS = 4
# Of what the threshold left out, so many of the best are named.
_MOST_LEFT_OUT = 10


@dataclass(frozen=True)
class WordFound:
    """`share` is how much of the chunk's BM25 the word brought. A file's name is not searched: that a word stands in it
    counts for nothing."""

    score: WordScore
    share: float
    places: tuple[str, ...]


@dataclass(frozen=True)
class Ranks:
    """Where a hit stands by words alone and by vectors alone; None: not among as many hits as were asked for."""

    by_words: int | None
    by_vectors: int | None


@dataclass(frozen=True)
class Why:
    """`cosine` is the vectors' own, also where a reranker's score takes its place in the sum."""

    words: tuple[WordFound, ...]
    ranks: Ranks
    cosine: float
    rerank_score: float | None


@dataclass(frozen=True)
class LeftOut:
    chunk_id: str
    document_name: str
    similarity: float


@dataclass(frozen=True)
class Explanation:
    """Of the question. `words` are as the index knows them, the same for every hit, and so without a part. `left_out`
    names the best of those below the threshold, `left_out_count` counts them all."""

    words: tuple[WordScore, ...]
    phrases: tuple[Phrase, ...]
    vector_weight: float
    threshold: float
    left_out_count: int
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True)
class Explained:
    """`hits` by chunk."""

    question: Explanation
    hits: Mapping[str, Why]


def explain(
    search: VisibleSearch,
    query: Query,
    threshold: float,
    names: Mapping[str, str],
    found: Sequence[Hit],
    reranked: Reranked | None,
) -> Explained:
    """Of the hits that the index found for the query, and of what a reranker made of them. `names` are those of the
    documents."""
    by_words = search.ranks(replace(query, vector_weight=0.0, explain=False))
    by_vectors = search.ranks(replace(query, vector_weight=1.0, explain=False))
    scores = reranked.scores if reranked else {}
    hits = {}
    for hit in found:
        family = family_of(hit.chunk)
        ranks = Ranks(by_words.get(family), by_vectors.get(family))
        found_words = _words_found(hit, names[hit.chunk.document_id])
        hits[hit.chunk.id] = Why(found_words, ranks, hit.vector_similarity, scores.get(hit.chunk.id))
    left_out = [hit for hit in (reranked.hits if reranked else found) if hit.similarity < threshold]
    named = (LeftOut(hit.chunk.id, names[hit.chunk.document_id], hit.similarity) for hit in left_out[:_MOST_LEFT_OUT])
    words = _question_words(search, query, found)
    question = Explanation(words, query.phrases, query.vector_weight, threshold, len(left_out), tuple(named))
    return Explained(question, hits)


def _question_words(search: VisibleSearch, query: Query, found: Sequence[Hit]) -> tuple[WordScore, ...]:
    """As any hit has them. Where no chunk has the phrases, as those have them that hold only the words."""
    hits = found or search.best(replace(query, phrases=(), limit=1)).hits
    if hits and hits[0].words:
        return tuple(replace(word, part=0.0) for word in hits[0].words)
    return tuple(WordScore(term, term, 0, 0.0, 0.0) for term in query.terms)


def _words_found(hit: Hit, document_name: str) -> tuple[WordFound, ...]:
    total = sum({word.meant: word.part for word in hit.words}.values())
    places = _places(hit.chunk, document_name)
    return tuple(
        WordFound(
            word,
            word.part / total if total else 0.0,
            tuple(place for place, terms in places.items() if word.meant in terms),
        )
        for word in hit.words
    )


def _places(chunk: ChunkRecord, document_name: str) -> dict[str, frozenset[str]]:
    shown = {TEXT: plain_text(chunk.text), HEADINGS: "\n".join(chunk.headings), FILE_NAME: document_name}
    return {place: frozenset(analyse(text)) for place, text in shown.items()}


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    return {
        "words": [
            {
                "word": word.word,
                "searched_as": word.meant,
                "mistyped": word.meant != word.word,
                "chunks": word.chunks,
                "highest": _rounded(word.highest),
            }
            for word in explanation.words
        ],
        "phrases": [list(phrase) for phrase in explanation.phrases],
        "vector_similarity_weight": explanation.vector_weight,
        "similarity_threshold": explanation.threshold,
        "left_out_count": explanation.left_out_count,
        "left_out": [
            {"id": one.chunk_id, "document": one.document_name, "similarity": _rounded(one.similarity)}
            for one in explanation.left_out
        ],
    }


def why_json(why: Why) -> dict[str, Any]:
    return {
        "words": [
            {
                "word": found.score.word,
                "searched_as": found.score.meant,
                "found_in": list(found.places),
                "part": _rounded(found.score.part),
                "share": _rounded(found.share),
            }
            for found in why.words
        ],
        "rank_by_words": why.ranks.by_words,
        "rank_by_vectors": why.ranks.by_vectors,
        "cosine": _rounded(why.cosine),
        "rerank_score": None if why.rerank_score is None else _rounded(why.rerank_score),
    }


def _rounded(number: float) -> float:
    return round(number, _DIGITS)
