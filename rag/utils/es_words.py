"""Words of a question as Elasticsearch knows them: which of them chunks hold, what was meant by the others, and what
each weighs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag.utils.doc_index import WordScore
from rag.utils.es_link import Link
from rag.utils.es_places import Place
from rag.utils.near_terms import PREFIX, SHORTEST, can_be_mistyped, nearest

# More words than this make no question better, only slower: the rarest are asked for.
_MAX_TERMS = 128
_K1 = 1.2
# How many near words Elasticsearch proposes for one that is mistyped, and how many it compares for each.
_SUGGESTED = 20
_INSPECTED = 50


@dataclass(frozen=True)
class Words:
    """`known` are those that some chunk holds, rarest first; `highest` is the highest BM25 that all could get.

    `meant` says for each word what is searched for, and `frequencies` how many chunks hold that."""

    known: Sequence[str]
    highest: float
    meant: Mapping[str, str]
    frequencies: Mapping[str, int]
    documents: int

    def parts(self, scores: Mapping[str, float]) -> tuple[WordScore, ...]:
        """What each word of the question brought a chunk, from the BM25 of what was searched for."""
        return tuple(self._part(word, meant, scores.get(meant, 0.0)) for word, meant in self.meant.items())

    def _part(self, word: str, meant: str, score: float) -> WordScore:
        found, highest = self.frequencies[meant], self.highest or 1.0
        return WordScore(word, meant, found, (_K1 + 1) * _weight(found, self.documents) / highest, score / highest)


def weigh(link: Link, place: Place, terms: Sequence[str]) -> Words:
    """From the statistics that BM25 itself uses."""
    distinct = list(dict.fromkeys(terms))
    if not distinct:
        return Words([], 0.0, {}, {}, 0)
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
    frequencies = dict(both.values())
    known = sorted((term for term, found in frequencies.items() if found), key=frequencies.__getitem__)
    highest = (_K1 + 1) * sum(_weight(found, documents) for found in frequencies.values())
    meant = {term: near for term, (near, _) in both.items()}
    return Words(known[:_MAX_TERMS], highest, meant, frequencies, documents)


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


def _weight(frequency: int, documents: int) -> float:
    """A word's idf as Elasticsearch computes it."""
    total = max(documents, frequency)
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))
