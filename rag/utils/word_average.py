"""Vectors of a static model, made of the words of a text: its vector is the mean of its tokens' vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from rag.utils.doc_index import Vectors
from rag.utils.word_tokens import NO_SPACES, Ids, WordTokens


class WordAverage:
    """Thread-safe. `vectors` are those of the tokens; one that is `unknown` to the model counts for nothing."""

    def __init__(self, words: WordTokens, vectors: Vectors, unknown: int | None, max_tokens: int) -> None:
        self._words = words
        self._vectors = vectors
        self._unknown = unknown
        self._max_tokens = max_tokens

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of unit length for each text; zeros for one that says nothing."""
        found = np.zeros((len(texts), self._vectors.shape[1]), np.float32)
        for place, ids in enumerate(self._tokens(texts)):
            if ids:
                found[place] = self._vectors[np.array(ids, np.intp)].sum(axis=0)
        lengths = np.sqrt(np.vecdot(found, found))
        found /= np.where(lengths > 0, lengths, np.float32(1))[:, None]
        return found

    def _tokens(self, texts: Sequence[str]) -> Iterator[Ids]:
        parted = [text.split() for text in texts]
        known = self._words.of({word for words in parted for word in words})
        for text, words in zip(texts, parted, strict=True):
            if not text.isprintable() and [sign for sign in NO_SPACES if sign in text]:
                ids = list(self._words.of_texts([text])[0])
            else:
                ids = list(chain.from_iterable([known[word] for word in words]))
            del ids[self._max_tokens :]
            yield ids if self._unknown not in ids else [number for number in ids if number != self._unknown]
