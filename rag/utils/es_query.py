"""Queries in the words of Elasticsearch: which chunks are meant, and how they are ranked.

The score of a chunk is the sum of two parts, each a query with a name, so that the answer tells both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag.utils.doc_index import Scope, Vectors

Clause = dict[str, Any]
WORDS, NEAR = "words", "near"
_WORD = "word "
# Elasticsearch takes no more in one list.
_MOST_TERMS = 60_000
_COSINE = "Math.max(0, cosineSimilarity(params.question, 'vector'))"
# A float32 that is above zero at all.
LEAST_SCORE = 1e-30
READING_ORDER = [{"page": "asc"}, {"task_no": "asc"}, {"ordinal": "asc"}, {"id": "asc"}]
WRITING_ORDER = [{"task_no": "asc"}, {"ordinal": "asc"}, {"id": "asc"}]
BEST_FIRST = [{"_score": "desc"}, {"id": "asc"}]


def scope_query(scope: Scope) -> Clause:
    filters: list[Clause] = [dataset_filter([scope.dataset_id])]
    wanted: Mapping[str, object] = {"document_id": scope.document_id, "generation": scope.generation}
    filters += [{"term": {field: value}} for field, value in wanted.items() if value is not None]
    if scope.claim is not None:
        filters += [{"term": {"task_no": scope.claim[0]}}, {"term": {"claim_no": scope.claim[1]}}]
    return {"bool": {"filter": filters}}


def dataset_filter(dataset_ids: Sequence[str]) -> Clause:
    return any_of("dataset_id", dataset_ids)


def any_of(field: str, values: Sequence[str]) -> Clause:
    """Chunks whose field has one of the values, however many they are."""
    distinct = list(dict.fromkeys(values))
    lists = [distinct[start : start + _MOST_TERMS] for start in range(0, len(distinct), _MOST_TERMS)]
    clauses = [{"terms": {field: part}} for part in lists]
    return clauses[0] if len(clauses) == 1 else {"bool": {"should": clauses}}


def with_ids(ids: Sequence[str]) -> Clause:
    return {"ids": {"values": list(ids)}}


def words_clause(terms: Sequence[str], *, named: bool = False) -> Clause:
    """Chunks that hold any of the words, scored by BM25. With names the answer tells the score of each word."""
    names = [{"_name": _WORD + term} if named else {} for term in terms]
    clauses = [{"term": {"terms": {"value": term} | name}} for term, name in zip(terms, names, strict=True)]
    return {"bool": {"should": clauses}}


def word_scores(matched: Mapping[str, float]) -> dict[str, float]:
    """The scores of words that were asked for with names."""
    return {name.removeprefix(_WORD): score for name, score in matched.items() if name.startswith(_WORD)}


def all_of(terms: Sequence[str]) -> Clause:
    """Chunks that hold every word, wherever it stands."""
    return {"bool": {"filter": [{"term": {"terms": term}} for term in terms]}}


def phrase_clause(phrase: Sequence[str]) -> Clause:
    """Chunks that hold the words in this order, next to each other."""
    return {"match_phrase": {"terms": {"query": " ".join(phrase), "analyzer": "whitespace"}}}


def ranked(filters: Sequence[Clause], words: Clause | None, vector: Vectors | None, weights: Sequence[float]) -> Clause:
    """Chunks that pass the filters, scored by their words and by their cosine, each times its weight.

    The name stands inside of the weight: a part's own score is told, also where it counts for nothing."""
    parts = []
    if words is not None:
        parts.append(_weighed({"bool": words["bool"] | {"_name": WORDS}}, weights[0]))
    if vector is not None:
        script = {"source": _COSINE, "params": {"question": vector.tolist()}}
        near = {"query": {"exists": {"field": "vector"}}, "script": script, "_name": NEAR}
        parts.append(_weighed({"script_score": near}, weights[1]))
    return {"bool": {"filter": list(filters), "should": parts, "minimum_should_match": 1}}


def _weighed(clause: Clause, weight: float) -> Clause:
    return {"bool": {"must": [clause], "boost": weight}}
