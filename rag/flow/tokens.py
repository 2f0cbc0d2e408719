"""The size of text in tokens, and where text that is too large is cut: at delimiters, sentences, words, anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from rag.flow.token_counter import CountTokens

# A "word" of hundreds of characters is one unknown token to most models; its size must count nevertheless.
MAX_CHARS_PER_TOKEN = 16
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f\uff1b])")
_WORD = re.compile(r"\s+")
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\r": "\r"}

Cut = tuple[re.Pattern[str], int]


@lru_cache(maxsize=64)
def delimiter_pattern(delimiter: str) -> re.Pattern[str] | None:
    """One pattern for all delimiters: each character is one, and so is a string between backticks.

    A backslash and an n, as older clients send it, is a line end."""
    for escape, character in _ESCAPES.items():
        delimiter = delimiter.replace(escape, character)
    strings = [quoted for quoted in re.findall(r"`([^`]+)`", delimiter) if quoted]
    strings += list(re.sub(r"`[^`]+`", "", delimiter).replace("`", ""))
    if not strings:
        return None
    return re.compile("|".join(re.escape(each) for each in sorted(set(strings), key=len, reverse=True)))


def cut(text: str, pattern: re.Pattern[str], every: int = 1) -> list[str]:
    """The text in parts that each end with a match, or with every so many."""
    ends = [match.end() for match in pattern.finditer(text) if 0 < match.end() < len(text)][every - 1 :: every]
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]


class Scale:
    """Weighs texts, and cuts those that are too heavy."""

    def __init__(self, count: CountTokens, delimiter: str) -> None:
        self._count = count
        pattern = delimiter_pattern(delimiter)
        self._delimiters: tuple[Cut, ...] = ((pattern, 1),) if pattern else ()

    def weigh(self, texts: Sequence[str]) -> list[int]:
        return [
            tokens
            if tokens * MAX_CHARS_PER_TOKEN >= len(text)
            else max(tokens, -(-len(text.rstrip()) // MAX_CHARS_PER_TOKEN))
            for text, tokens in zip(texts, self._count(texts), strict=True)
        ]

    def divide(self, text: str, limit: int) -> Iterator[tuple[str, int]]:
        """Parts of at most the limit, with their tokens; together they are the text."""
        # Where it is cut, best first: at every match, or at every so many.
        cuts = (*self._delimiters, (_SENTENCE, 1), (_WORD, max(1, limit // 16)), (_WORD, 1))
        return self._divide(text, limit, cuts)

    def tail(self, text: str, most: int) -> tuple[str, int]:
        """The end of the text that weighs at most `most`, from the start of a sentence, or else of a word."""
        for pattern in (_SENTENCE, _WORD):
            parts = cut(text, pattern)
            start, tokens = len(parts), 0
            weights = self.weigh(parts)
            while start > 0 and tokens + weights[start - 1] <= most:
                start -= 1
                tokens += weights[start]
            if tokens:
                return "".join(parts[start:]), tokens
        return "", 0

    def _divide(self, text: str, limit: int, cuts: Sequence[Cut]) -> Iterator[tuple[str, int]]:
        if cuts:
            parts = cut(text, *cuts[0])
            if len(parts) == 1:
                yield from self._divide(text, limit, cuts[1:])
                return
        else:
            step = max(1, limit // 4)
            parts = [text[start : start + step] for start in range(0, len(text), step)]
        held, held_tokens = "", 0
        for part, tokens in zip(parts, self.weigh(parts), strict=True):
            # Small parts are joined to quarters of a chunk: enough to cut evenly by, and far fewer.
            if held and held_tokens + tokens > max(1, limit // 4):
                yield held, held_tokens
                held, held_tokens = "", 0
            if tokens > limit and cuts:
                yield from self._divide(part, limit, cuts[1:])
            else:
                held, held_tokens = held + part, held_tokens + tokens
        if held:
            yield held, held_tokens
