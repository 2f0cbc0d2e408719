"""Words of a question with what each weighs in an index, by the BM25 that tantivy and Elasticsearch both compute."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rag.utils.doc_index import WordScore

_K1 = 1.2
# More words than this make no question better, only slower: the rarest are asked for.
_MAX_TERMS = 128


@dataclass(frozen=True)
class WeighedWords:
    """`meant` says for each word what is searched for, `frequencies` how many of the `documents` hold that."""

    meant: Mapping[str, str]
    frequencies: Mapping[str, int]
    documents: int

    @cached_property
    def known(self) -> Sequence[str]:
        """Those that some chunk holds, rarest first."""
        found = (term for term, frequency in self.frequencies.items() if frequency)
        return sorted(found, key=self.frequencies.__getitem__)[:_MAX_TERMS]

    @cached_property
    def highest(self) -> float:
        """The highest BM25 that all of them could get."""
        return sum(self._highest_of(frequency) for frequency in self.frequencies.values())

    def parts(self, scores: Mapping[str, float]) -> tuple[WordScore, ...]:
        """What each word of the question brought a chunk, from the BM25 of what was searched for."""
        return tuple(self._part(word, meant, scores.get(meant, 0.0)) for word, meant in self.meant.items())

    def _part(self, word: str, meant: str, score: float) -> WordScore:
        found, highest = self.frequencies[meant], self.highest or 1.0
        return WordScore(word, meant, found, self._highest_of(found) / highest, score / highest)

    def _highest_of(self, frequency: int) -> float:
        """What a word of this frequency gets at most: its idf, and as often as one likes in a chunk."""
        total = max(self.documents, frequency)
        return (_K1 + 1) * math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))
