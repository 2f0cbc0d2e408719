"""Hits put into a reranker's order. That it is away never fails a search: the index's order stays, and is told so."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from common.errors import Outage
from rag.flow.searched import searched_text
from rag.utils.doc_index import Hit
from rag.utils.reranker import Reranker

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reranking:
    """What became of it: with `failure` the hits stand in the index's order, and it says why."""

    model: str
    count: int = 0
    failure: str = ""


def reranking_json(outcome: Reranking) -> dict[str, object]:
    return {
        "model": outcome.model,
        "used": not outcome.failure,
        "count": outcome.count,
        "failure": outcome.failure or None,
    }


@dataclass(frozen=True)
class Reranked:
    """`scores` are the reranker's, by chunk."""

    hits: list[Hit]
    scores: dict[str, float]
    outcome: Reranking


def rerank(reranker: Reranker, question: str, hits: Sequence[Hit], vector_weight: float) -> Reranked:
    """The reranker's score takes the place of the vectors' similarity. Hits that were too many to be asked for follow
    behind, as they were."""
    asked, others = hits[: reranker.top_n], hits[reranker.top_n :]
    if not asked:
        return Reranked([], {}, Reranking(reranker.name))
    try:
        scores = reranker.scores(question, [searched_text(hit.chunk.text, hit.chunk.headings) for hit in asked])
    except Outage as exc:
        log.warning("a search keeps the index's order: %s", exc.public_message)
        return Reranked(list(hits), {}, Reranking(reranker.name, failure=exc.public_message))
    found = [_with_score(hit, score, vector_weight) for hit, score in zip(asked, scores, strict=True)]
    found.sort(key=lambda hit: -hit.similarity)
    known = {hit.chunk.id: hit.vector_similarity for hit in found}
    return Reranked([*found, *others], known, Reranking(reranker.name, len(found)))


def _with_score(hit: Hit, score: float, vector_weight: float) -> Hit:
    similarity = (1 - vector_weight) * hit.term_similarity + vector_weight * score
    return replace(hit, similarity=similarity, vector_similarity=score)
