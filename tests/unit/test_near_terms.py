"""Words that nobody wrote, taken for those that somebody did."""

from __future__ import annotations

import pytest

from rag.utils.near_terms import can_be_mistyped, nearest

WORDS = [("database", 40), ("data", 90), ("databas", 3), ("vacuum", 12), ("river", 7), ("rivet", 2), ("rivers", 1)]


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("databsae", "database"),  # two letters swapped
        ("databse", "database"),  # one left out
        ("vaccum", "vacuum"),
        ("rivre", "river"),
        ("rivez", "river"),  # as near to rivet, which is rarer
        ("vcauum", "vacuum"),
        ("elephant", None),
        ("dxtx", None),
    ],
)
def test_the_nearest(word: str, found: str | None) -> None:
    assert nearest(word, WORDS) == found


def test_short_words_and_identifiers_are_meant_as_they_are() -> None:
    assert [can_be_mistyped(word) for word in ("sql", "v1.2", "err42", "river")] == [False, False, False, True]
