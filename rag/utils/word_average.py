"""Vectors of a static model, made of the words of a text: its vector is the mean of its tokens' vectors, and a BERT
tokenizer looks at each word by itself. So it is asked for a word once, and the words of documents are few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from tokenizers import Tokenizer

from rag.utils.doc_index import Vectors

# Python parts words at these, and BERT does not.
NO_SPACES = "\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029"
_MOST_WORDS = 200_000
_Ids = Sequence[int]


class WordAverage:
    """Thread-safe. `vectors` are those of the tokens; one that is `unknown` to the model counts for nothing."""

    def __init__(self, tokenizer: Tokenizer, vectors: Vectors, unknown: int | None, max_tokens: int) -> None:
        self._tokenizer = tokenizer
        self._vectors = vectors
        self._unknown = unknown
        self._max_tokens = max_tokens
        self._known: dict[str, _Ids] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of unit length for each text; zeros for one that says nothing."""
        found = np.zeros((len(texts), self._vectors.shape[1]), np.float32)
        for place, ids in enumerate(self._tokens(texts)):
            if ids:
                found[place] = self._vectors[np.array(ids, np.intp)].sum(axis=0)
        lengths = np.sqrt(np.vecdot(found, found))
        found /= np.where(lengths > 0, lengths, np.float32(1))[:, None]
        return found

    def _tokens(self, texts: Sequence[str]) -> Iterator[_Ids]:
        parted = [text.split() for text in texts]
        known = self._knowing({word for words in parted for word in words})
        for text, words in zip(texts, parted, strict=True):
            if not text.isprintable() and [sign for sign in NO_SPACES if sign in text]:
                ids = list(self._ask([text])[0])
            else:
                ids = list(chain.from_iterable([known[word] for word in words]))
            del ids[self._max_tokens :]
            yield ids if self._unknown not in ids else [number for number in ids if number != self._unknown]

    def _knowing(self, words: set[str]) -> dict[str, _Ids]:
        """The tokens of these words and others. Whoever has it keeps it: when it is full, a new one is begun."""
        known = self._known
        new = list(words.difference(known))
        if len(known) + len(new) > _MOST_WORDS:
            known = self._known = {}
            new = list(words)
        if new:
            known.update(zip(new, self._ask(new), strict=True))
        return known

    def _ask(self, texts: Sequence[str]) -> list[_Ids]:
        return [found.ids for found in self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
