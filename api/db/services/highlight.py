"""Words of a text that a question asks for, put between `<em>` and `</em>`. A word counts if its analysed form does.
The markup of tables stays as it is, also where somebody asks for a table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from rag.utils.near_terms import PREFIX, can_be_mistyped, nearest
from rag.utils.terms import analyse

_WORD = re.compile(r"\w+(?:[-.'\u2019]\w+)*")
_MARKUP = re.compile(r"(</?(?:table|caption|tr|th|td)(?: (?:col|row)span=\"\d+\"){0,2}>|&(?:amp|lt|gt|quot|#x27);)")
_BIGRAM = 2
# Words of questions that stand in every text: marked, they would hide the others.
_EVERYWHERE = frozenset(
    analyse(
        "a an and are as at be been but by can did do does for from had has have he her his how i if in into is it its"
        " me my no not of on or our she so than that the their them then there these they this those to was we were"
        " what when where which who whom whose why will with would you your"
    )
)


def telling(terms: Iterable[str], phrases: Iterable[Sequence[str]] = ()) -> frozenset[str]:
    """Those of a question's words that are worth marking: not the ones that stand everywhere, unless they are asked for
    in quotes, or there are no others."""
    words = frozenset(terms)
    quoted = frozenset(word for phrase in phrases for word in phrase)
    return (words - _EVERYWHERE) | quoted or words


def as_found(terms: Sequence[str], found: Iterable[str]) -> list[str]:
    """A question's words, each that no hit holds as the nearest that one does: the index took it for that one. `found`
    are the analysed texts of the hits."""
    held = Counter(word for text in found for word in text.split())
    return [term if term in held or not can_be_mistyped(term) else _meant(term, held) for term in terms]


def _meant(term: str, held: Counter[str]) -> str:
    return nearest(term, ((word, count) for word, count in held.items() if word[:PREFIX] == term[:PREFIX])) or term


def highlight(text: str, terms: frozenset[str]) -> str:
    known: dict[str, str] = {}

    def marked(match: re.Match[str]) -> str:
        word = match[0]
        if word not in known:
            known[word] = _mark(word, terms)
        return known[word]

    if "<table>" not in text:
        return _WORD.sub(marked, text)
    # Every second piece is markup.
    pieces = _MARKUP.split(text)
    pieces[::2] = [_WORD.sub(marked, piece) for piece in pieces[::2]]
    return "".join(pieces)


def _mark(word: str, terms: frozenset[str]) -> str:
    matched = terms.intersection(analyse(word))
    if not matched:
        return word
    spans = [] if word.isascii() else _bigram_spans(word, matched)
    if not spans:
        return f"<em>{word}</em>"
    parts, at = [], 0
    for start, end in spans:
        parts += [word[at:start], "<em>", word[start:end], "</em>"]
        at = end
    return "".join([*parts, word[at:]])


def _bigram_spans(word: str, matched: frozenset[str]) -> list[tuple[int, int]]:
    """In a script without blanks a "word" is a whole clause: only the letters that match are marked."""
    spans: list[tuple[int, int]] = []
    for start in range(len(word) - 1):
        pair = word[start : start + _BIGRAM]
        if pair not in matched or pair.isascii():
            continue
        if spans and spans[-1][1] >= start:
            spans[-1] = (spans[-1][0], start + _BIGRAM)
        else:
            spans.append((start, start + _BIGRAM))
    return spans
