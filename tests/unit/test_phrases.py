"""Phrases of a question: which signs quote, and what stands in a chunk."""

from __future__ import annotations

import time

import pytest

from rag.utils.phrases import all_words, holds_all, quoted
from rag.utils.terms import analyse


@pytest.mark.parametrize(
    ("question", "phrases"),
    [
        ("no quotes at all", ()),
        ('the "exact words" of it', (("exact", "word"),)),
        ("the \u201cexact words\u201d of it", (("exact", "word"),)),
        ("\u201eganz genau\u201c", (("ganz", "genau"),)),
        ("\u00abmot juste\u00bb, \u00bbgenau so\u00ab", (("mot", "just"), ("genau", "so"))),
        ("\uff02full width\uff02", (("full", "width"),)),
        ('a \u201cmixed" pair', (("mix",),)),
        ('"one" and "two words" and "one"', (("one",), ("two", "word"))),
        ('"The Runners were RUNNING"', (("the", "runner", "were", "run"),)),
        ('"\u4e2d\u6587\u5b57"\u662f\u4ec0\u4e48', (("\u4e2d\u6587", "\u6587\u5b57"),)),
        ('\u8bf7\u627e"\u4e2d\u6587"', (("\u4e2d\u6587",),)),
        ('"foo_bar baz"', (("foo_bar", "foo", "bar", "baz"),)),
    ],
)
def test_what_stands_between_quotes_is_a_phrase(question: str, phrases: tuple[tuple[str, ...], ...]) -> None:
    assert quoted(question) == phrases


@pytest.mark.parametrize(
    "question", ['an "open quote', 'closed" only', '5" disks and 3" disks', '""', '"..." "!?"', "it's"]
)
def test_other_quotes_are_ordinary_signs(question: str) -> None:
    assert quoted(question) == ()


def test_no_more_phrases_and_words_than_help() -> None:
    many = " ".join(f'"word{n} again"' for n in range(100))
    assert len(quoted(many)) == 16
    (long,) = quoted(f'"{" ".join(f"w{n}" for n in range(500))}"')
    assert (long[0], len(long)) == ("w0", 64)


def test_a_phrase_stands_in_order_and_together() -> None:
    terms = " ".join(analyse("The quick brown fox jumps"))
    assert holds_all(terms, [("quick", "brown")])
    assert holds_all(terms, [("the",), ("fox", "jump")])
    assert holds_all(terms, [])
    assert not holds_all(terms, [("brown", "quick")])
    assert not holds_all(terms, [("quick", "fox")])
    assert not holds_all(terms, [("quick", "brow")])
    assert not holds_all(terms, [("quick", "brown"), ("fox", "the")])
    assert all_words([("a", "b"), ("b", "c")]) == ["a", "b", "c"]


def test_many_quotes_take_linear_time() -> None:
    for question in ('"' * 200_000, '"a ' * 100_000, "\u00ab" * 200_000, "\u201c" + "a " * 200_000):
        began = time.perf_counter()
        quoted(question)
        assert time.perf_counter() - began < 5
