"""The words that chunks and questions share."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.utils import terms as terms_of_text
from rag.utils.terms import analyse
from tests.at_once import at_once


def test_words_are_folded_and_stemmed() -> None:
    assert analyse("The Runners were RUNNING") == ["the", "runner", "were", "run"]


def test_the_forms_of_a_word_meet() -> None:
    assert analyse("connections") == analyse("connected") == analyse("Connecting")
    assert analyse("the printer's trays") == analyse("The printer\u2019s tray")


def test_full_width_ligatures_and_composed_letters_are_one() -> None:
    assert analyse("\uff21\uff22\uff23 \ufb01ne") == ["abc", "fine"]
    assert analyse("cafe\u0301") == analyse("caf\u00e9") == ["caf\u00e9"]
    assert analyse("STRASSE") == analyse("stra\u00dfe")


def test_scripts_without_blanks_give_bigrams() -> None:
    assert analyse("\u4e2d\u6587\u5b57") == ["\u4e2d\u6587", "\u6587\u5b57"]
    assert analyse("\u4e2d") == ["\u4e2d"]
    assert analyse("\u30c6\u30b9\u30c8") == ["\u30c6\u30b9", "\u30b9\u30c8"]
    assert analyse("GPU\u65f6\u4ee3") == ["gpu", "\u65f6\u4ee3"]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("foo_bar", ["foo_bar", "foo", "bar"]),
        ("v1.2.3", ["v1.2.3"]),
        ("ISO-9001", ["iso-9001", "iso", "9001"]),
        ("2024-01-15", ["2024-01-15", "2024", "01", "15"]),
        ("3.14", ["3.14"]),
        ("threading.TIMEOUT_MAX", ["threading.timeout_max", "thread", "timeout_max", "timeout", "max"]),
        ("util2.py", ["util2.py", "util2", "py"]),
        ("42", ["42"]),
        ("C++ and C#", ["c++", "and", "c#"]),
        ("__init__", ["__init__"]),
    ],
)
def test_numbers_and_identifiers_stay_whole(text: str, terms: list[str]) -> None:
    assert analyse(text) == terms


def test_joined_words_are_parted() -> None:
    assert analyse("state-of-the-art") == ["state", "of", "the", "art"]
    assert analyse("the end.Next line") == ["the", "end", "next", "line"]


def test_vowel_signs_do_not_part_a_word() -> None:
    word = "\u0939\u093f\u0928\u094d\u0926\u0940"
    assert analyse(f"{word} {word}") == [word, word]


def test_nothing_to_say_gives_nothing() -> None:
    assert analyse("") == analyse(" \t\n") == analyse("... -- !?") == []


def test_nuls_and_halves_of_surrogates_are_borders() -> None:
    assert analyse("one\0two \ud800three\udfff") == ["one", "two", "three"]


@settings(deadline=None)
@given(st.text(st.characters(codec=None)))
def test_terms_can_be_joined_by_blanks_and_stored(text: str) -> None:
    terms = analyse(text)
    assert " ".join(terms).split() == terms
    assert all(0 < len(term) <= 64 for term in terms)
    " ".join(terms).encode("utf-8")


@settings(deadline=None)
@given(st.text(st.characters(codec=None) | st.sampled_from(" \n\t\x1c\u00a0\u2003-.'+#_\u0301\u00a8")))
def test_words_by_themselves_are_those_of_the_whole_text(text: str) -> None:
    assert analyse(text) == terms_of_text._terms(text)
    assert analyse(text) == terms_of_text._terms(text), "remembered"


def test_words_are_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terms_of_text, "_MOST_WORDS", 100)
    words = terms_of_text._Words()
    for start in range(0, 1000, 7):
        asked = [f"connections{number}" for number in range(start, start + 30)]
        assert words.terms(asked) == [f"connections{number}" for number in range(start, start + 30)]
        assert len(words._known) <= 100
    assert len(words.terms([f"w{number}" for number in range(200)])) == 200
    words.terms(["x" * 65])
    assert len(words._known) <= 100
    assert "x" * 65 not in words._known


@pytest.mark.parametrize(
    "unit",
    ["a", "a-", "1.", "word ", "\0", ".", "_", "a+", "'", "\u0315\u0300", "\u4e2d", "\ud800", "\u00e9-"],
)
def test_time_grows_with_the_length_only(unit: str) -> None:
    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        best = float("inf")
        for _ in range(3):
            began = time.process_time()
            analyse(text)
            best = min(best, time.process_time() - began)
        return best

    # Quadratic time would be 64 times as long for 8 times the text; the floor hides the clock's grain.
    assert seconds(400_000) < 24 * max(seconds(50_000), 0.004)


def test_threads_get_the_same_words() -> None:
    text = "connections running ponies relational " * 200
    expected, found = analyse(text), []

    def work() -> None:
        found.extend(analyse(text) == expected for _ in range(20))

    at_once(*[work] * 8)
    assert len(found) == 160
    assert all(found)
