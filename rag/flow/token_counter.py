"""Counts tokens as the embedding model does, without asking its tokenizer twice for the same word.

A BERT tokenizer looks at each word by itself, so the tokens of a text are those of its words; and the words of a
document are few. Other tokenizers are asked for every text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from tokenizers import Tokenizer

from rag.utils.word_average import NO_SPACES

CountTokens = Callable[[Sequence[str]], list[int]]

_BATCH_CHARS = 200_000
_MOST_WORDS = 200_000


def token_counter(tokenizer: Tokenizer) -> CountTokens:
    """Counts the tokens of many texts at once."""
    parts_words = (json.loads(tokenizer.to_str()).get("pre_tokenizer") or {}).get("type") == "BertPreTokenizer"
    ask = _asking(tokenizer)
    return _Words(ask).count if parts_words else ask


class _Words:
    """Remembers how many tokens a word has."""

    def __init__(self, ask: CountTokens) -> None:
        self._ask = ask
        self._known: dict[str, int] = {}

    def count(self, texts: Sequence[str]) -> list[int]:
        whole = "".join(texts)
        if [sign for sign in NO_SPACES if sign in whole]:
            return self._ask(texts)
        parted = [text.split() for text in texts]
        try:
            return self._sums(parted)
        except KeyError:
            self._learn({word for words in parted for word in words})
        counts = self._sums(parted)
        if len(self._known) > _MOST_WORDS:
            self._known.clear()
        return counts

    def _sums(self, parted: Sequence[Sequence[str]]) -> list[int]:
        """Raises KeyError for a word that is new."""
        known = self._known.__getitem__
        return [sum(map(known, words)) for words in parted]

    def _learn(self, words: set[str]) -> None:
        # Not `words - keys()`, which goes through all that are known.
        new = list(words.difference(self._known))
        self._known.update(zip(new, self._ask(new), strict=True))


def _asking(tokenizer: Tokenizer) -> CountTokens:
    """In batches that keep the tokenizer's memory small."""

    def count(texts: Sequence[str]) -> list[int]:
        counts: list[int] = []
        for batch in _batches(texts):
            counts += [len(found.ids) for found in tokenizer.encode_batch_fast(batch, add_special_tokens=False)]
        return counts

    return count


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and size + len(text) > _BATCH_CHARS:
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch
