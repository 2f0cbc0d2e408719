"""A word that no chunk holds, taken for the nearest one that some chunk does: most such words are typing errors.

The first two letters count as right, as they mostly are: only the words that begin with them are compared."""

from __future__ import annotations

from collections.abc import Iterable

SHORTEST = 4
PREFIX = 2
_TWO_EDITS = 6


def most_edits(word: str) -> int:
    return 2 if len(word) >= _TWO_EDITS else 1


def can_be_mistyped(word: str) -> bool:
    """Numbers and identifiers are meant as they are."""
    return len(word) >= SHORTEST and word.isalpha()


def nearest(word: str, candidates: Iterable[tuple[str, int]]) -> str | None:
    """Of words with their frequencies, the one with the fewest edits, of these the most frequent; None where all are
    too far away."""
    limit = most_edits(word)
    best: tuple[int, int, str] | None = None
    for candidate, frequency in candidates:
        if abs(len(candidate) - len(word)) > limit or not candidate.isalpha():
            continue
        edits = _edits(word, candidate, limit)
        if edits <= limit and (best is None or (edits, -frequency, candidate) < best):
            best = (edits, -frequency, candidate)
            limit = edits
    return best[2] if best else None


def _edits(left: str, right: str, limit: int) -> int:
    """Letters changed, left out, added, or swapped with their neighbour; more than `limit` once it is more."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for place, letter in enumerate(left, 1):
        last, before, row = before, row, [place] * (len(right) + 1)
        for other, its in enumerate(right, 1):
            row[other] = min(before[other] + 1, row[other - 1] + 1, before[other - 1] + (letter != its))
            if place > 1 and other > 1 and letter == right[other - 2] and left[place - 2] == its:
                row[other] = min(row[other], last[other - 2] + 1)
        if min(row) > limit:
            return limit + 1
    return row[-1]
