"""The tokens of words, asked for once: a BERT tokenizer looks at each word by itself, and a document has few words.

Fewer still are what they are made of: such a tokenizer parts a word at every sign of punctuation, and knows no case. So
of a word in ASCII its runs of letters and digits are asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from tokenizers import Tokenizer

# Python parts words at these, and BERT does not.
NO_SPACES = "\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029"
_MOST_WORDS = 200_000
_RUNS = re.compile("[0-9a-z]+|[^0-9a-z]")

Ids = Sequence[int]


def looks_at_words(tokenizer: Tokenizer) -> bool:
    """Whether the tokens of a text are those of its words."""
    return (_described(tokenizer).get("pre_tokenizer") or {}).get("type") == "BertPreTokenizer"


class WordTokens:
    """Thread-safe. Of a tokenizer that looks at words."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._known: dict[str, Ids] = {}
        self._runs: dict[str, Ids] = {}
        described = _described(tokenizer)
        self._knows_no_case = bool((described.get("normalizer") or {}).get("lowercase"))
        # A word that stands for a token, as "[SEP]" does, is taken whole.
        self._whole = [token["content"] for token in described.get("added_tokens") or ()]

    def of(self, words: Iterable[str]) -> dict[str, Ids]:
        """The tokens of these words and others. Whoever has it keeps it: when it is full, a new one is begun."""
        known = self._known
        # Not `words - keys()`, which goes through all that are known.
        new = list(set(words).difference(known))
        if len(known) + len(new) > _MOST_WORDS:
            known = self._known = {}
            new = list(set(words))
        if new:
            self._learn(new, known)
        return known

    def of_texts(self, texts: Sequence[str]) -> list[Ids]:
        """The tokens of texts that Python parts otherwise."""
        return [found.ids for found in self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    def _learn(self, new: Sequence[str], known: dict[str, Ids]) -> None:
        parted = {word: _RUNS.findall(word.lower()) for word in new if self._may_be_parted(word)}
        runs = self._runs
        unknown = list(set(chain.from_iterable(parted.values())).difference(runs))
        if len(runs) + len(unknown) > _MOST_WORDS:
            runs = self._runs = {}
            unknown = list(set(chain.from_iterable(parted.values())))
        runs.update(zip(unknown, self.of_texts(unknown), strict=True))
        for word, its in parted.items():
            known[word] = runs[its[0]] if len(its) == 1 else list(chain.from_iterable([runs[run] for run in its]))
        whole = [word for word in new if word not in parted]
        known.update(zip(whole, self.of_texts(whole), strict=True))

    def _may_be_parted(self, word: str) -> bool:
        if not (self._knows_no_case and word.isascii() and word.isprintable()):
            return False
        return not ("[" in word and [token for token in self._whole if token in word])


def _described(tokenizer: Tokenizer) -> dict[str, Any]:
    described: dict[str, Any] = json.loads(tokenizer.to_str())
    return described
