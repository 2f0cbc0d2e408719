"""Counts tokens as the embedding model does, without asking its tokenizer twice for the same word.

Where it looks at each word by itself, the tokens of a text are those of its words. Other tokenizers are asked for every
text. Words in ASCII are counted by `_word_counts`, where that could be compiled."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence

from tokenizers import Tokenizer

from rag.utils.word_tokens import NO_SPACES, WordTokens, looks_at_words

try:
    from rag.flow._word_counts import Counts
except ImportError:  # there was no compiler
    Counts = None  # type: ignore[assignment, misc]

CountTokens = Callable[[Sequence[str]], list[int]]

_BATCH_CHARS = 200_000
_MOST_WORDS = 200_000


def token_counter(tokenizer: Tokenizer, words: WordTokens | None = None) -> CountTokens:
    """Counts the tokens of many texts at once. `words` are those that the model knows already, if there is one."""
    ask = _asking(tokenizer)
    if not looks_at_words(tokenizer):
        return ask
    return _Words(words or WordTokens(tokenizer), ask).count


class _Words:
    """Remembers how many tokens a word has."""

    def __init__(self, tokens: WordTokens, ask: CountTokens) -> None:
        self._tokens, self._ask = tokens, ask
        self._known: dict[str, int] = {}
        self._plain = Counts(secrets.randbits(64)) if Counts is not None else None

    def count(self, texts: Sequence[str]) -> list[int]:
        if self._plain is not None and -1 not in (counts := list(map(self._plain.count, texts))):
            return counts
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
            self._forget()
        return counts

    def _sums(self, parted: Sequence[Sequence[str]]) -> list[int]:
        """Raises KeyError for a word that is new."""
        known = self._known.__getitem__
        return [sum(map(known, words)) for words in parted]

    def _learn(self, words: set[str]) -> None:
        new = words.difference(self._known)
        tokens = self._tokens.of(new)
        for word in new:
            self._known[word] = count = len(tokens[word])
            if self._plain is not None and word.isascii():
                self._plain.learn(word, count)

    def _forget(self) -> None:
        self._known.clear()
        if self._plain is not None:
            self._plain.clear()


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
