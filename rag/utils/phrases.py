"""Phrases: words that a question puts between quotes, and that must stand so in a chunk.

Knows which signs quote, and compares phrases with the words of a chunk; the indexes do the same with positions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag.utils.terms import analyse

Phrase = tuple[str, ...]
# Straight, typographic and full-width quotes; each of them closes what any of them opened, as people type them.
_QUOTES = '"\u201c\u201d\u201e\u201f\uff02'
# Behind a letter or a digit a quote opens nothing: it is an inch, as in 5" disks.
_QUOTED = re.compile(
    rf"(?<![0-9A-Za-z])[{_QUOTES}]([^{_QUOTES}]*)[{_QUOTES}]|\u00ab([^\u00ab\u00bb]*)\u00bb|\u00bb([^\u00ab\u00bb]*)\u00ab"
)
# More phrases, or longer ones, choose no better: the first words of the first ones do.
_MOST_PHRASES = 16
_MOST_WORDS = 64


def quoted(question: str) -> tuple[Phrase, ...]:
    """The phrases of a question, each once, as analysed words. A quote that nothing closes is an ordinary sign."""
    texts = (match[match.lastindex or 0] for match in _QUOTED.finditer(question))
    phrases = dict.fromkeys(tuple(analyse(text)[:_MOST_WORDS]) for text in texts)
    return tuple(phrase for phrase in phrases if phrase)[:_MOST_PHRASES]


def holds_all(terms: str, phrases: Sequence[Phrase]) -> bool:
    """Whether each of the phrases stands in these words, which blanks part: in order, and next to each other."""
    padded = f" {terms} "
    return all(f" {' '.join(phrase)} " in padded for phrase in phrases)


def all_words(phrases: Sequence[Phrase]) -> list[str]:
    """The words of all phrases, each once."""
    return list(dict.fromkeys(word for phrase in phrases for word in phrase))
