"""Embedding by an OpenAI-compatible endpoint: what is sent, in which portions, and whether the answer can be used.

Nothing is tried over and over here: an error ends the call, and the engine decides when its task is tried again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

import msgspec
import numpy as np
from tokenizers import Tokenizer

from common.errors import EmbeddingFailed, EmbeddingRefused, EmbeddingUnavailable, SettingsError
from common.settings import EmbeddingSettings
from rag.utils.doc_index import Vectors
from rag.utils.embedder import POTION, endpoint_name, load_tokenizer
from rag.utils.endpoint_http import EndpointClient, TooMuch

log = logging.getLogger(__name__)
# A text that is refused as too long is cut to half of its tokens, so often: another tokenizer may have counted it.
_MOST_CUTS = 4
_TINY = float(np.finfo(np.float64).tiny)


class _Row(msgspec.Struct):
    embedding: list[float | None]
    index: int | None = None


class _Answer(msgspec.Struct):
    data: list[_Row]


class EndpointEmbedder:
    """Connects to nothing before it embeds."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        """Raises SettingsError for settings that no endpoint can be asked with."""
        if settings.model == POTION:
            raise SettingsError("embedding.model: allowed with embedding.url: the name of the endpoint's model")
        self.name = endpoint_name(settings)
        self.url = settings.url
        self.dimension = settings.dimension
        self.max_tokens = settings.max_tokens
        self._model = settings.model
        self._batch_size = settings.batch_size
        self._client = EndpointClient(settings)
        self._tokenizer: Tokenizer = load_tokenizer(settings)
        self._lock = threading.Lock()
        self._found_dimension = settings.dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Each different text is sent once; one without a word is not sent, since endpoints refuse it."""
        if not texts:
            return np.zeros((0, self._found_dimension), np.float32)
        texts = [text.encode("utf-8", "replace").decode() for text in texts]  # half a surrogate pair can't be sent
        wanted = [text for text in dict.fromkeys(texts) if text.strip()]
        known: dict[str, Vectors] = {}
        for start in range(0, len(wanted), self._batch_size):
            part = wanted[start : start + self._batch_size]
            known.update(zip(part, self._embed_some([self._fitting(text) for text in part]), strict=True))
        vectors = np.zeros((len(texts), self._width(known)), np.float32)
        for place, text in enumerate(texts):
            if text in known:
                vectors[place] = known[text]
        return vectors

    def _width(self, known: dict[str, Vectors]) -> int:
        if not known and not self._found_dimension:  # zeros, but how many? One word of an answer tells
            self._embed_some(["a"])
        return self._found_dimension

    def _embed_some(self, texts: Sequence[str]) -> Vectors:
        """In one call, or in as many smaller ones as the endpoint wants."""
        try:
            return self._ask(texts)
        except TooMuch as exc:
            if len(texts) == 1:
                return self._embed_cut(texts[0], exc)
        half = len(texts) // 2
        return np.concatenate([self._embed_some(texts[:half]), self._embed_some(texts[half:])])

    def _embed_cut(self, text: str, refused: TooMuch) -> Vectors:
        """The start of a text that is too long as it is."""
        for _ in range(_MOST_CUTS):
            text = self._cut(text, len(self._tokens(text)) // 2)
            if not text.strip():
                break
            try:
                vectors = self._ask([text])
            except TooMuch as exc:
                refused = exc
                continue
            log.info("a text was too long for the embedding endpoint: its first %d characters count", len(text))
            return vectors
        raise refused.refusal

    def _ask(self, texts: Sequence[str]) -> Vectors:
        body = {"model": self._model, "input": texts, "encoding_format": "float"}
        answer = self._client.post(msgspec.json.encode(body))
        vectors = _unit(_rows(answer, len(texts)))
        self._require_dimension(vectors.shape[1])
        return vectors

    def _require_dimension(self, found: int) -> None:
        with self._lock:
            known = self._found_dimension = self._found_dimension or found
        if found != known:
            why = "embedding.dimension says" if self.dimension else "its first answer had"
            raise EmbeddingRefused(f"the embedding endpoint answered vectors of {found} numbers; {why} {known}")

    def _fitting(self, text: str) -> str:
        """The text, or so much of its start as the model takes. One of so few characters is not counted."""
        return text if len(text) <= self._room else self._cut(text, self._room)

    @property
    def _room(self) -> int:
        """Tokens that a text may have besides those that mark its start and end."""
        return max(1, self.max_tokens - self._tokenizer.num_special_tokens_to_add(False))

    def _cut(self, text: str, tokens: int) -> str:
        places = self._tokens(text)
        return text if len(places) <= tokens else text[: places[tokens - 1][1] if tokens > 0 else 0]

    def _tokens(self, text: str) -> list[tuple[int, int]]:
        """Where each token stands in the text."""
        places: list[tuple[int, int]] = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return places


def _rows(answer: bytes, count: int) -> list[list[float | None]]:
    """The embeddings in the order of the texts."""
    try:
        rows = msgspec.json.decode(answer, type=_Answer).data
    except msgspec.DecodeError as exc:
        if b"NaN" in answer or b"Infinity" in answer:  # which JSON does not have
            raise _not_finite() from exc
        raise EmbeddingUnavailable(f"the embedding endpoint's answer can't be understood: {exc}") from exc
    places = [place if row.index is None else row.index for place, row in enumerate(rows)]
    if sorted(places) != list(range(count)):
        raise EmbeddingUnavailable(f"the embedding endpoint answered {len(rows)} vectors for {count} texts, or others")
    ordered = sorted(zip(places, rows, strict=True), key=lambda found: found[0])
    return [row.embedding for _, row in ordered]


def _unit(rows: list[list[float | None]]) -> Vectors:
    """Of length 1, but for a vector of zeros."""
    lengths = {len(row) for row in rows}
    if len(lengths) > 1 or 0 in lengths:
        raise EmbeddingRefused(f"the embedding endpoint answered vectors of {_either(lengths)} numbers in one answer")
    vectors = np.array(rows, np.float64)  # what is null, as some write it, becomes NaN
    if not np.isfinite(vectors).all():
        raise _not_finite()
    vectors /= np.maximum(np.abs(vectors).max(axis=1, keepdims=True), _TINY)  # the square of 1e200 is no number
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1.0), np.float32)


def _either(lengths: set[int]) -> str:
    return " and ".join(str(length) for length in sorted(lengths)[:3])


def _not_finite() -> EmbeddingFailed:
    return EmbeddingFailed("the embedding endpoint answered a vector with a number that is none (NaN)")
