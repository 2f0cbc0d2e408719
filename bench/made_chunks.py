"""Chunks for benches that need a million of them: words as frequent as in real text, vectors in clusters as those of
real text are. Quick to make, and the same for the same number."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from common.ids import chunk_id
from rag.utils.doc_index import ChunkRecord, Vectors

TENANT = "bench"
DIMENSION = 256
_VOCABULARY = 50_000
_WORDS = 119
_CLUSTERS = 2_000
OF_A_DOCUMENT = 256
# How far a chunk lies from the middle of its cluster: cosines of neighbours are then about 0.8, as those of one topic.
_SPREAD = 0.5
# Every maker has the same topics, so that questions are about something.
_CENTRES_SEED = 1


class Maker:
    """`datasets` get shares of 1, 1/2, 1/3, ... of the chunks."""

    def __init__(self, datasets: int, seed: int = 7) -> None:
        self._dice = np.random.default_rng(seed)
        self._words = np.array([_word(number) for number in range(_VOCABULARY)])
        frequency = 1.0 / np.arange(1, _VOCABULARY + 1)
        self._bounds = np.cumsum(frequency / frequency.sum())
        centres = np.random.default_rng(_CENTRES_SEED).standard_normal((_CLUSTERS, DIMENSION))
        self._centres = _unit(centres.astype(np.float32))
        shares = 1.0 / np.arange(1, datasets + 1)
        self._dataset_bounds = np.cumsum(shares / shares.sum())

    def batch(self, first: int, count: int) -> tuple[list[ChunkRecord], Vectors]:
        """Chunks with the numbers from `first` on, which are all of one document."""
        document = first // OF_A_DOCUMENT
        dataset = int(np.searchsorted(self._dataset_bounds, (document * 0.6180339887) % 1.0))
        picked = np.searchsorted(self._bounds, self._dice.random((count, _WORDS)))
        texts = [" ".join(row) for row in self._words[picked]]
        records = [
            self._record(first + place, f"d{document}", f"set{dataset}", text) for place, text in enumerate(texts)
        ]
        return records, self._vectors(count)

    def question(self) -> tuple[tuple[str, ...], Vectors]:
        """Three words, one of them common, and a vector near some chunks."""
        ranks = (*self._dice.integers(200, 20_000, 2), self._dice.integers(0, 50))
        return tuple(str(self._words[rank]) for rank in ranks), self._vectors(1)[0]

    def _vectors(self, count: int) -> Vectors:
        centres = self._centres[self._dice.integers(0, _CLUSTERS, count)]
        noise = self._dice.standard_normal((count, DIMENSION)).astype(np.float32) * (_SPREAD / DIMENSION**0.5)
        return _unit(centres + noise)

    def _record(self, number: int, document: str, dataset: str, text: str) -> ChunkRecord:
        ordinal = number % OF_A_DOCUMENT
        return ChunkRecord(
            id=chunk_id(document, 1, 0, 1, ordinal),
            tenant_id=TENANT,
            dataset_id=dataset,
            document_id=document,
            generation=1,
            task_no=0,
            claim_no=1,
            ordinal=ordinal,
            page=1 + ordinal // 3,
            text=text,
            terms=text,
            token_count=_WORDS,
        )


def batches(maker: Maker, first: int, last: int, size: int) -> Iterator[tuple[list[ChunkRecord], Vectors]]:
    """At most `size` chunks each. One ends where its document does."""
    while first < last:
        count = min(size, last - first, OF_A_DOCUMENT - first % OF_A_DOCUMENT)
        yield maker.batch(first, count)
        first += count


def _word(number: int) -> str:
    """Syllables, so that words are as long as words are."""
    text = ""
    number += 26
    while number:
        number, rest = divmod(number, 26)
        text += chr(97 + rest) + "aeiou"[rest % 5]
    return text


def _unit(vectors: Vectors) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)
