"""The tokens of words are those that the tokenizer gives, and it is asked for no more than it has to be."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from common.settings import EmbeddingSettings
from rag.utils.embedder import load_tokenizer
from rag.utils.word_tokens import Ids, WordTokens, looks_at_words

TOKENIZER = load_tokenizer(EmbeddingSettings())
KEPT = WordTokens(TOKENIZER)
ASCII = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=12)
ODD = st.sampled_from(
    ["[SEP]", "a[SEP]b", "[sep]", "[UNK],", "Stra\u00dfe", "e\u0301t\u00e9", "\u4e2d\u6587", "x\x00y", "_a_"]
)
WORDS = st.lists(ASCII | ODD | st.text(min_size=1, max_size=8).filter(lambda text: len(text.split()) == 1), max_size=20)


class Counting(WordTokens):
    def __init__(self) -> None:
        super().__init__(TOKENIZER)
        self.asked: list[str] = []

    def of_texts(self, texts: Sequence[str]) -> list[Ids]:
        self.asked += texts
        return super().of_texts(texts)


def test_the_packaged_models_tokenizer_looks_at_words() -> None:
    assert looks_at_words(TOKENIZER)


@given(WORDS)
def test_tokens_are_the_tokenizers_own(words: list[str]) -> None:
    for tokens in (KEPT.of(words), WordTokens(TOKENIZER).of(words)):
        for word in words:
            assert list(tokens[word]) == TOKENIZER.encode(word, add_special_tokens=False).ids, word


def test_runs_of_letters_are_asked_for_once() -> None:
    words = Counting()
    words.of(["Mill", "mill,", "(mill)", "paper-mill"])
    words.of(["MILL!", "mill"])
    assert sorted(words.asked) == ["!", "(", ")", ",", "-", "mill", "paper"]
