"""Tokens counted word by word are those that the tokenizer counts in the whole text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from common.settings import EmbeddingSettings
from rag.flow.token_counter import token_counter
from rag.utils.embedder import load_tokenizer

TOKENIZER = load_tokenizer(EmbeddingSettings())
COUNT = token_counter(TOKENIZER)
SPACES = " \t\n\u00a0\u3000\x1c\x85\u2028\u200b\x0c"
PIECES = st.one_of(
    st.text(max_size=40), st.sampled_from([*SPACES, "-", ".", "\u4e2d", "word", "Stra\u00dfe", "e\u0301t\u00e9"])
)


def asked(text: str) -> int:
    return len(TOKENIZER.encode(text, add_special_tokens=False).ids)


@given(st.lists(PIECES, max_size=30))
def test_by_words_as_by_the_whole_text(parts: list[str]) -> None:
    text = "".join(parts)
    assert COUNT([text, "a word", text]) == [asked(text), 2, asked(text)]


def test_a_tokenizer_that_looks_across_words_is_asked_for_the_text() -> None:
    other = Tokenizer(models.BPE())
    other.pre_tokenizer = pre_tokenizers.ByteLevel()
    assert not hasattr(token_counter(other), "__self__")
    assert hasattr(COUNT, "__self__")
