"""Search in the embedded index: both scores for everything that its text half or its vector half finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rag.utils import embedded_reads as reads
from rag.utils.chunk_input import checked_question, scores
from rag.utils.doc_index import Hit, Query
from rag.utils.embedded_log import Database
from rag.utils.embedded_twins import TwinView
from rag.utils.embedded_vectors import VectorReader
from rag.utils.embedded_view import TextView
from rag.utils.phrases import holds_all

# Each half proposes at least so many chunks: the best of both together may be first in neither.
_MIN_CANDIDATES = 128
# So many chunks with a phrase are all scored, words and vectors: what is nearest need not hold it.
_MOST_WITH_PHRASE = 10_000
_Words = TextView | TwinView | None
_Scored = Mapping[int, tuple[float, float, float]]


class Searches:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._vectors = VectorReader(database)

    def best(self, query: Query, numbers: Sequence[int], view: _Words) -> list[Hit]:
        """In these datasets. Without a view nothing is found by words."""
        limit = max(query.limit, _MIN_CANDIDATES)
        scan = self._vectors.scan(checked_question(query.vector), numbers, query.document_ids)
        if query.phrases:
            words = self._with_phrases(query, numbers, view, max(limit, _MOST_WITH_PHRASE))
            nearest = np.zeros(0, np.int64)
        else:
            nearest = scan.best(limit) if len(query.vector) else np.zeros(0, np.int64)
            words = _by_words(query, numbers, view, nearest.tolist(), limit)
        candidates = np.union1d(np.fromiter(words, np.int64, len(words)), nearest)
        cosines = scan.cosines_of(candidates)
        scored = {row: scores(query.vector_weight, words.get(row, 0.0), cosine) for row, cosine in cosines.items()}
        hits = self._ranked(scored, query.limit)
        if query.explain and view is not None:
            parts = view.parts(query.terms, list(hits))
            return [replace(hit, words=parts[row]) for row, hit in hits.items()]
        return list(hits.values())

    def _with_phrases(self, query: Query, numbers: Sequence[int], view: _Words, limit: int) -> Mapping[int, float]:
        if view is None:
            return {}
        words = view.search(query.terms, numbers, query.document_ids, limit, query.phrases)
        if view.has_positions:
            return words
        with self._database.reading() as link:
            terms = reads.terms(link, words)
        return {row: score for row, score in words.items() if holds_all(terms.get(row, ""), query.phrases)}

    def _ranked(self, scored: _Scored, limit: int) -> dict[int, Hit]:
        """Best first, by row."""
        ranked = sorted((row for row in scored if scored[row][0] > 0), key=lambda row: -scored[row][0])
        if len(ranked) > limit:
            # Ties are broken by id, which only the chunk knows: all that tie with the last are read.
            lowest = scored[ranked[limit - 1]][0]
            ranked = [row for row in ranked if scored[row][0] >= lowest]
        with self._database.reading() as link:
            found = reads.by_row(link, ranked)
        hits = {row: Hit(found[row], *scored[row]) for row in ranked if row in found}
        return dict(sorted(hits.items(), key=lambda pair: (-pair[1].similarity, pair[1].chunk.id))[:limit])


def _by_words(
    query: Query, numbers: Sequence[int], view: _Words, nearest: Sequence[int], limit: int
) -> Mapping[int, float]:
    """The best by words, and how the nearest by meaning are by theirs."""
    if view is None:
        return {}
    words = view.search(query.terms, numbers, query.document_ids, limit)
    if len(words) < limit:  # it found every chunk that holds one of the words
        return words
    others = [row for row in nearest if row not in words]
    return {**words, **view.scores(query.terms, others)}
