"""Search in Elasticsearch, with both scores for every hit and by the same measure as the embedded index.

Up to some number of chunks every one of them is scored. Beyond, the best by words and the nearest by Elasticsearch's
graph of vectors are the candidates, and only those are scored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.errors import InvalidInput
from rag.utils.chunk_input import checked_question, scores
from rag.utils.doc_index import Hit, Query, Vectors
from rag.utils.es_link import Link, reason_of
from rag.utils.es_phrases import phrase_filters
from rag.utils.es_places import Place, Places, names
from rag.utils.es_query import (
    BEST_FIRST,
    LEAST_SCORE,
    NEAR,
    WORDS,
    Clause,
    any_of,
    dataset_filter,
    ranked,
    with_ids,
    word_scores,
    words_clause,
)
from rag.utils.es_records import decoded
from rag.utils.es_refresh import Refreshes
from rag.utils.es_words import weigh
from rag.utils.weighed_words import WeighedWords

# So many chunks are all scored: it takes about as long as asking for candidates first.
_FEW = 10_000
# Each half proposes at least so many chunks: the best of both together may be first in neither.
_MIN_CANDIDATES = 128
# More can't be asked of the graph of vectors; the search then scores every chunk.
_MOST_CANDIDATES = 5000
# How many the graph looks at for each that it gives.
_BREADTH = 2
# No answer is longer, whatever was asked for (max_result_window in conf/es_mapping.json).
_MOST_HITS = 100_000


class Searches:
    def __init__(self, link: Link, places: Places, refreshes: Refreshes) -> None:
        self._link = link
        self._places = places
        self._refreshes = refreshes

    def best(self, query: Query) -> list[Hit]:
        if not query.dataset_ids or query.limit < 1 or query.document_ids == ():
            return []
        vector = checked_question(query.vector)
        places = self._places.of(query.tenant_id, now=False)
        if len(vector):
            others = [place for place in places if place.dimension != len(vector)]
            self._require_none_in(others, query)
            places = tuple(place for place in places if place.dimension == len(vector))
        hits = [hit for place in places for hit in self._search(place, query, vector)]
        return sorted(hits, key=lambda hit: (-hit.similarity, hit.chunk.id))[: query.limit]

    def _search(self, place: Place, query: Query, vector: Vectors) -> list[Hit]:
        words = weigh(self._link, place, query.terms)
        near = vector if vector.any() else None
        if not words.known and near is None:
            return []
        clause = words_clause(words.known, named=query.explain) if words.known else None
        filters = [dataset_filter(query.dataset_ids)]
        if query.document_ids is not None:
            filters.append(any_of("document_id", query.document_ids))
        filters += phrase_filters(self._link, place, query.phrases, filters)
        if query.limit <= _MOST_CANDIDATES and not self._are_few(place, filters):
            filters = [with_ids(self._candidates(place, filters, clause, near, max(query.limit, _MIN_CANDIDATES)))]
        weights = ((1 - query.vector_weight) / (words.highest or 1.0), query.vector_weight)
        with self._link.asking() as client:
            found = client.search(
                index=place.alias,
                query=ranked(filters, clause, near, weights),
                sort=BEST_FIRST,
                size=min(query.limit, _MOST_HITS),
                min_score=LEAST_SCORE,
                source_excludes=["vector"],
                track_total_hits=False,
                include_named_queries_score=True,
                allow_partial_search_results=False,
                ignore_unavailable=True,
            )
        hits = [_hit(hit, query, words) for hit in found["hits"]["hits"]]
        return [hit for hit in hits if hit.similarity > 0]

    def _are_few(self, place: Place, filters: Sequence[Clause]) -> bool:
        with self._link.asking() as client:
            found = client.search(
                index=place.alias,
                query={"bool": {"filter": list(filters)}},
                size=0,
                track_total_hits=_FEW + 1,
                allow_partial_search_results=False,
                ignore_unavailable=True,
            )
        return int(found["hits"]["total"]["value"]) <= _FEW

    def _candidates(
        self, place: Place, filters: Sequence[Clause], words: Clause | None, near: Vectors | None, limit: int
    ) -> list[str]:
        """Ids of the best by words and of the nearest, from one request."""
        asked: list[dict[str, Any]] = []
        # By the column of ids: a stored field, as _id is one, is unpacked with a whole block of chunks.
        common = {"size": limit, "stored_fields": "_none_", "docvalue_fields": ["id"], "track_total_hits": False}
        head = {"index": place.alias, "allow_partial_search_results": False, "ignore_unavailable": True}
        if words is not None:
            asked += [head, common | {"query": {"bool": {"filter": list(filters), "must": [words]}}}]
        if near is not None:
            knn = {"field": "vector", "query_vector": near.tolist(), "k": limit, "filter": list(filters)}
            asked += [head, common | {"knn": knn | {"num_candidates": _BREADTH * limit}}]
        with self._link.asking() as client:
            answers = client.msearch(searches=asked)["responses"]
        for answer in answers:
            if "error" in answer:
                raise self._link.unavailable(reason_of(answer))
        return list(dict.fromkeys(hit["fields"]["id"][0] for answer in answers for hit in answer["hits"]["hits"]))

    def _require_none_in(self, others: Sequence[Place], query: Query) -> None:
        """Chunks whose vectors are of another length can't be compared with the question."""
        if not others:
            return
        self._refreshes.make_findable(query.tenant_id)
        with self._link.asking() as client:
            held = client.search(
                index=names(others),
                query=dataset_filter(query.dataset_ids),
                size=1,
                source=False,
                allow_partial_search_results=False,
                ignore_unavailable=True,
            )
        for hit in held["hits"]["hits"]:
            length = next(place.dimension for place in others if place.index == hit["_index"])
            raise InvalidInput(f"the question's vector has {len(query.vector)} numbers; the chunks' have {length}")


def _hit(hit: Any, query: Query, words: WeighedWords) -> Hit:
    parts = hit.get("matched_queries", {})
    word = parts.get(WORDS, 0.0) / (words.highest or 1.0)
    told = words.parts(word_scores(parts)) if query.explain else ()
    return Hit(decoded(hit["_source"]), *scores(query.vector_weight, word, parts.get(NEAR, 0.0)), told)
