"""Tokens counted word by word are those that the tokenizer counts in the whole text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from common.settings import EmbeddingSettings
from rag.flow import token_counter as counting
from rag.flow.token_counter import token_counter
from rag.utils.embedder import load_tokenizer
from tests.compiled import require

TOKENIZER = load_tokenizer(EmbeddingSettings())
COUNT = token_counter(TOKENIZER)
SPACES = " \t\n\u00a0\u3000\x1c\x85\u2028\u200b\x0c"
PIECES = st.one_of(
    st.text(max_size=40), st.sampled_from([*SPACES, "-", ".", "\u4e2d", "word", "Stra\u00dfe", "e\u0301t\u00e9"])
)


def asked(text: str) -> int:
    return len(TOKENIZER.encode(text, add_special_tokens=False).ids)


@settings(deadline=None)
@given(st.lists(PIECES, max_size=30))
def test_by_words_as_by_the_whole_text(parts: list[str]) -> None:
    text = "".join(parts)
    assert COUNT([text, "a word", text]) == [asked(text), 2, asked(text)]


def test_a_tokenizer_that_looks_across_words_is_asked_for_the_text() -> None:
    other = Tokenizer(models.BPE())
    other.pre_tokenizer = pre_tokenizers.ByteLevel()
    assert not hasattr(token_counter(other), "__self__")
    assert hasattr(COUNT, "__self__")


@pytest.fixture
def compiled() -> None:
    require(counting.Counts, "rag/flow/word_counts.c")


@settings(deadline=None)
@given(st.lists(st.text(st.characters(max_codepoint=0x7F), max_size=60), max_size=12))
def test_the_same_with_and_without_compiled_code(texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "Counts", None)
        without = token_counter(TOKENIZER)
    assert COUNT(texts) == without(texts) == list(map(asked, texts))


@pytest.mark.usefixtures("compiled")
def test_compiled_counts_of_many_words() -> None:
    counts = counting.Counts(7)
    words = [f"word{number}" for number in range(20_000)]
    assert counts.count("word1") == -1
    for number, word in enumerate(words):
        counts.learn(word, number % 5)
    known = [number for number, word in enumerate(words) if counts.count(word) == number % 5]
    assert len(known) >= 19_990  # one that is not found within a few steps is asked for as if it were new
    assert counts.count(" ".join(f"word{number}" for number in known[:100])) == sum(n % 5 for n in known[:100])
    counts.learn("word1", 9)
    assert counts.count("\tword1\nword1 ") == 18
    assert counts.count("") == 0
    assert [counts.count(text) for text in ("word1 never", "word1\x0bword1", "word1 \u00e9", "word1\x00")] == [-1] * 4
    counts.clear()
    assert counts.count("word1") == -1


@pytest.mark.usefixtures("compiled")
def test_compiled_counts_refuse_what_is_no_word() -> None:
    counts = counting.Counts(7)
    for word in ("", "\u00e9t\u00e9"):
        with pytest.raises(ValueError, match="ASCII"):
            counts.learn(word, 1)
    with pytest.raises(TypeError):
        counts.count(b"word")  # type: ignore[arg-type]
