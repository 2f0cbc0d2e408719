"""Phrases in Elasticsearch: the filters that only chunks with every phrase pass.

An index that an older version made does not know where in a chunk a word stands. There the chunks that hold all words
of the phrases are read, and compared one by one."""

from __future__ import annotations

from collections.abc import Sequence

from rag.utils.es_link import Link
from rag.utils.es_places import Place
from rag.utils.es_query import Clause, all_of, phrase_clause, with_ids, words_clause
from rag.utils.phrases import Phrase, all_words, holds_all

# So many chunks with all the words are compared, the best by words first.
_MOST_COMPARED = 10_000


def phrase_filters(link: Link, place: Place, phrases: Sequence[Phrase], filters: Sequence[Clause]) -> list[Clause]:
    """What to add to these filters."""
    if not phrases:
        return []
    if _has_positions(link, place):
        return [phrase_clause(phrase) for phrase in phrases]
    return [with_ids(_compared(link, place, phrases, filters))]


def _has_positions(link: Link, place: Place) -> bool:
    """As the mapping says; "positions" is what a text field has where it says nothing."""
    with link.asking() as client:
        told = client.indices.get_field_mapping(index=place.alias, fields="terms")
    made = [index["mappings"]["terms"]["mapping"]["terms"] for index in told.values() if "terms" in index["mappings"]]
    return all(field.get("index_options", "positions") == "positions" for field in made)


def _compared(link: Link, place: Place, phrases: Sequence[Phrase], filters: Sequence[Clause]) -> list[str]:
    words = all_words(phrases)
    with link.asking() as client:
        found = client.search(
            index=place.alias,
            query={"bool": {"filter": [*filters, all_of(words)], "must": [words_clause(words)]}},
            size=_MOST_COMPARED,
            source_includes=["terms"],
            track_total_hits=False,
            allow_partial_search_results=False,
            ignore_unavailable=True,
        )
    return [hit["_id"] for hit in found["hits"]["hits"] if holds_all(hit["_source"]["terms"], phrases)]
