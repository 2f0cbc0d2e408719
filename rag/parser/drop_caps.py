"""The large letter that a text may begin with, beside its first lines: it is put before the word that it starts.

Told from the lines of its page alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from rag.parser.page_lines import Line, Span

# Against the type beside it; and how far that may stand from it, in sizes of its own.
_LARGER = 1.8
_NEAR = 0.5
_MIN_LINES = 2
_WORD = re.compile(r"\w+")
# A letter that is a word by itself in some languages.
_WORDS = frozenset("AIOY\u00c0\u00d3")


def with_drop_caps(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    """The lines, without letters that belong to the first of those beside them."""
    caps = [line for line in lines if len(line.text) == 1 and line.text.isupper() and line.block is None]
    for cap in caps:
        beside = [line for line in lines if _is_beside(cap, line)]
        if len(beside) >= _MIN_LINES:
            first = min(beside, key=lambda line: line.base)
            if first.top - cap.top < first.size and cap.base > first.base + first.size / 2:
                whole = _begun(cap, first, lines)
                lines = tuple([whole if line is first else line for line in lines if line is not cap])
    return lines


def _is_beside(cap: Line, line: Line) -> bool:
    return (
        line.size * _LARGER <= cap.size
        and -1 <= line.left - cap.right <= _NEAR * cap.size
        and line.bottom > cap.top
        and line.top < cap.bottom
    )


def _begun(cap: Line, first: Line, lines: Sequence[Line]) -> Line:
    lead = cap.text + (" " if _is_word(cap.text, first, lines) else "")
    spans = tuple([Span(span.left, span.right, span.start + len(lead)) for span in first.spans])
    if spans:
        spans = (Span(cap.left, spans[0].right, 0), *spans[1:])
    return replace(first, text=lead + first.text, left=cap.left, spans=spans)


def _is_word(letter: str, first: Line, lines: Sequence[Line]) -> bool:
    """Whether the letter is a word of its own: what follows is one elsewhere on the page, and both together are not."""
    follows = _WORD.match(first.text)
    if letter not in _WORDS or follows is None:
        return follows is None
    words = {word for line in lines for word in _WORD.findall(line.text.casefold()) if line is not first}
    return follows[0].casefold() in words and (letter + follows[0]).casefold() not in words
