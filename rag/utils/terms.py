"""Text as words that are looked up: the same for chunks and for questions.

Owns normalisation, word borders, stems and bigrams. Ranking, and how rare words weigh, is the index's work,
so no word is left out here."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator
from itertools import chain

import Stemmer

# So many words are remembered with their terms: some 20 megabytes.
_MOST_WORDS = 100_000
# Longer runs are no words; what is left is still the same in a chunk and in a question.
_MAX_TERM = 64
# Sorting the marks of one letter takes quadratic time, so text is normalised in pieces.
_PIECES = re.compile(r".{1,1024}(?!\S)|.{1,1024}", re.DOTALL)
# Vowel signs and accents that stay apart from their letter; Python's \w leaves them out.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0963\u0966-\u0df3\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0"
)
# Scripts written without blanks: Chinese, Japanese, Korean, Thai, Lao, Burmese, Khmer.
_UNSPACED = (
    "\u3005-\u3007\u3031-\u3035\u303b\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u1000-\u103f\u1780-\u17d3"
    "\U00020000-\U0003ffff"
)
_W = rf"[\w{_MARKS}{_UNSPACED}]"
# A word, or words joined by one hyphen, dot or apostrophe; the bound keeps the matcher's memory flat.
_TOKEN = re.compile(rf"{_W}+(?:[-.'\u2019]{_W}+){{0,15}}(?:\+\+|#(?!{_W}))?")
_SCRIPTS = re.compile(rf"([{_UNSPACED}]+)")
_JOINTS = re.compile(r"[-._]")
_LETTER = re.compile(r"[^\W\d_]")
_IDENTIFIER = re.compile(r"[\d_]|\+\+$|#$")

_local = threading.local()


class _Words:
    """What stands between two blanks, and its terms: a text says few words many times. Thread-safe."""

    def __init__(self) -> None:
        self._known: dict[str, list[str]] = {}

    def terms(self, words: list[str]) -> list[str]:
        try:
            return list(chain.from_iterable(map(self._known.__getitem__, words)))
        except KeyError:
            known = self._learnt(set(words))
        return list(chain.from_iterable([known[word] if len(word) <= _MAX_TERM else _terms(word) for word in words]))

    def _learnt(self, words: set[str]) -> dict[str, list[str]]:
        """All that hold these, but for long runs. When there are too many, others are begun: whoever has the old ones
        keeps them."""
        known = self._known
        new = words.difference(known)
        if len(known) + len(new) > _MOST_WORDS:
            known, new = {}, words
        for word in new:
            if len(word) <= _MAX_TERM:
                known[word] = _terms(word)
        if len(known) <= _MOST_WORDS:
            self._known = known
        return known


_words = _Words()


def analyse(text: str) -> list[str]:
    """The words of `text` in order: folded, stemmed, bigrams where a script has no blanks.

    Names with digits or underscores (foo_bar, v1.2.3, ISO-9001) stay whole and are followed by the parts that
    dots, hyphens and underscores join. Takes linear time, whatever the text holds."""
    return _words.terms(text.split())


def _terms(text: str) -> list[str]:
    """Nothing of a word depends on what stands beyond the blanks around it."""
    terms: list[str] = []
    for match in _TOKEN.finditer(_fold(text)):
        token = match[0]
        if token.isalpha() and token.isascii():
            terms.append(_stem(token))
        elif token.isascii():
            terms.extend(_joined(token))
        else:
            terms.extend(_mixed(token))
    return terms


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    pieces = (unicodedata.normalize("NFKC", piece) for piece in _PIECES.findall(text))
    return "".join(pieces).casefold().replace("\u2019", "'")


def _mixed(token: str) -> Iterator[str]:
    """A token with letters beyond ASCII: split where a script without blanks begins or ends."""
    for number, run in enumerate(_SCRIPTS.split(token)):
        if number % 2:
            yield from _bigrams(run)
        elif run := run.strip("-.'"):
            yield from _joined(run)


def _bigrams(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for start in range(len(run) - 1):
        yield run[start : start + 2]


def _joined(token: str) -> Iterator[str]:
    """One word, or several that are joined: an identifier is kept whole, before its parts."""
    if not _IDENTIFIER.search(token):
        for word in _JOINTS.split(token):
            yield _stem(word)
        return
    yield token[:_MAX_TERM]
    names = [part for part in token.split(".") if _LETTER.search(part)]
    if len(names) > 1:  # a version number is known as a whole only
        for name in names:
            yield from _joined(name)
    elif "-" in token or "_" in token.strip("_"):
        for part in re.split("[-_]", token):
            if len(part) > 1:
                yield part[:_MAX_TERM] if _IDENTIFIER.search(part) else _stem(part.strip(".'"))


def _stem(word: str) -> str:
    """English stems; words of other languages come through nearly as they are."""
    # A stemmer has a buffer of its own: one for each thread.
    stemmer = getattr(_local, "stemmer", None)
    if stemmer is None:
        stemmer = _local.stemmer = Stemmer.Stemmer("english")
    stem: str = stemmer.stemWord(word[:_MAX_TERM])
    return stem
