"""Words of a question as Elasticsearch knows them: which of them chunks hold, and what was meant by the others."""

from __future__ import annotations

from collections.abc import Sequence

from rag.utils.es_link import Link
from rag.utils.es_places import Place
from rag.utils.near_terms import PREFIX, SHORTEST, can_be_mistyped, nearest
from rag.utils.weighed_words import WeighedWords

# How many near words Elasticsearch proposes for one that is mistyped, and how many it compares for each.
_SUGGESTED = 20
_INSPECTED = 50


def weigh(link: Link, place: Place, terms: Sequence[str]) -> WeighedWords:
    """From the statistics that BM25 itself uses."""
    distinct = list(dict.fromkeys(terms))
    if not distinct:
        return WeighedWords({}, {}, 0)
    with link.asking() as client:
        told = client.termvectors(
            index=place.alias,
            doc={"terms": " ".join(distinct)},
            fields=["terms"],
            term_statistics=True,
            positions=False,
            offsets=False,
        )
    field = told["term_vectors"].get("terms", {"terms": {}, "field_statistics": {}})
    documents = max(0, field["field_statistics"].get("doc_count", 0))
    held = {term: int(field["terms"].get(term, {}).get("doc_freq", 0)) for term in distinct}
    mistyped = [term for term in distinct if not held[term] and can_be_mistyped(term)]
    nearer = _nearest(link, place, mistyped) if mistyped else {}
    both = {term: nearer.get(term, (term, found)) for term, found in held.items()}
    return WeighedWords({term: near for term, (near, _) in both.items()}, dict(both.values()), documents)


def _nearest(link: Link, place: Place, mistyped: Sequence[str]) -> dict[str, tuple[str, int]]:
    """For words that no chunk holds, the nearest that some chunk does, and how many do."""
    suggester = {
        "field": "terms",
        "suggest_mode": "missing",
        "prefix_length": PREFIX,
        "min_word_length": SHORTEST,
        "max_edits": 2,
        "size": _SUGGESTED,
        "shard_size": _SUGGESTED,
        "max_inspections": _INSPECTED,
    }
    with link.asking() as client:
        told = client.search(
            index=place.alias,
            size=0,
            suggest={"near": {"text": " ".join(mistyped), "term": suggester}},
            allow_partial_search_results=False,
            ignore_unavailable=True,
        )
    found: dict[str, tuple[str, int]] = {}
    for entry in told.get("suggest", {}).get("near", ()):
        options = {option["text"]: int(option["freq"]) for option in entry["options"]}
        if meant := nearest(entry["text"], options.items()):
            found[entry["text"]] = (meant, options[meant])
    return found
