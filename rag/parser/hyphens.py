"""Hyphens at line ends: whether one is the word's own, or there to break it."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r"\w+(?:-\w+)*")
_LAST_WORD = re.compile(r"[\w-]*\w$")
_FIRST_WORD = re.compile(r"\w[\w-]*")


def words_of(texts: Iterable[str]) -> frozenset[str]:
    """In lower case."""
    return frozenset(_WORD.findall("\n".join(texts).lower()))


def keeps_hyphen(before: str, after: str, words: frozenset[str]) -> bool:
    """Whether the hyphen between `before`, given without it, and `after` is the word's own. `words` are those that
    stand around it."""
    head, tail = _LAST_WORD.search(before), _FIRST_WORD.match(after)
    if head is None or tail is None or f"{head[0]}-{tail[0]}".lower() in words:
        return True
    if f"{head[0]}{tail[0]}".lower() in words:
        return False
    starts_anew = tail[0][0].isupper() or not (head[0][-1] + tail[0][0]).isalpha()
    return starts_anew or head[0].isupper() or "-" in head[0]
