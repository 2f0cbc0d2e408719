"""Embedding: the contract, what counts a model's tokens, and the packaged static model (potion-base-8M). Models behind
an endpoint are in endpoint_embedder.py; which of the two is in use is told by embedders.py.

The packaged weights come out of a package (tools/fetch_model.py), are checked against their SHA-256 when they are
loaded, and stay in the process; those of a machine share the memory they stand in."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from tokenizers import Tokenizer

from common.errors import SettingsError
from common.settings import EmbeddingSettings
from rag.utils.doc_index import Vectors
from rag.utils.word_average import WordAverage
from rag.utils.word_tokens import WordTokens

POTION = "potion-base-8M"
POTION_WEIGHTS_SHA256 = "f65d0f325faadc1e121c319e2faa41170d3fa07d8c89abd48ca5358d9a223de2"
POTION_DIMENSION = 256
_UNKNOWN = "[UNK]"
# A static model averages its tokens: nothing forces a limit. This one keeps an average meaningful.
POTION_MAX_TOKENS = 2048
_ENDPOINT_FACTORY = "OpenAI-API-Compatible"


class Embedder(Protocol):
    """Thread-safe. `name` is what datasets say they are embedded with; `url` is empty where there is no endpoint.
    `dimension` is the length of a vector; 0 where it is left to the endpoint, whose first answer fixes it. Of a text
    longer than `max_tokens` the start counts; the tokens are those of `load_tokenizer`.

    `embed` gives one row of unit length per text (zeros for a text that says nothing). It raises
    EmbeddingUnavailable where the model can't be reached, EmbeddingFailed for an answer that can't be used, and
    EmbeddingRefused where another try would end the same."""

    @property
    def name(self) -> str: ...

    @property
    def url(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def max_tokens(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> Vectors: ...


def endpoint_name(settings: EmbeddingSettings) -> str:
    """As datasets name an endpoint's model: model@factory, where the model's own name has no sign of that kind."""
    return f"{settings.model.replace('@', '')}@{_ENDPOINT_FACTORY}"


def model_dir(settings: EmbeddingSettings) -> Path:
    """Of the packaged model, also where an endpoint embeds: its tokenizer may still count."""
    return Path(settings.model_dir) if settings.model_dir else Path(sys.prefix) / "share" / "pagemill" / POTION


def load_tokenizer(settings: EmbeddingSettings) -> Tokenizer:
    """The model's own tokenizer, without truncation and padding: what counts tokens when chunks are cut.

    Raises SettingsError where its file is missing or is none."""
    if settings.tokenizer_file:
        path, remedy = Path(settings.tokenizer_file), "check embedding.tokenizer_file"
    else:
        path, remedy = model_dir(settings) / "tokenizer.json", "run `make install`"
    if not path.is_file():
        raise SettingsError(f"the embedding model is not installed: {path} is missing; {remedy}")
    try:
        tokenizer: Tokenizer = Tokenizer.from_file(str(path))
    except Exception as exc:  # its library raises nothing more exact
        raise SettingsError(f"{path} is no tokenizer: {exc}; {remedy}") from exc
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


class PackagedEmbedder:
    """potion-base-8M on the CPU."""

    name = f"{POTION}@Builtin"
    url = ""
    dimension = POTION_DIMENSION
    max_tokens = POTION_MAX_TOKENS

    def __init__(self, settings: EmbeddingSettings) -> None:
        """Load and check the weights. Raises SettingsError where they are missing or not the expected ones."""
        if settings.model != POTION:
            allowed = f"{POTION!r}, unless embedding.url names an endpoint"
            raise SettingsError(f"embedding.model = {settings.model!r}: allowed: {allowed}")
        folder = model_dir(settings)
        weights = folder / "model.safetensors"
        if not weights.is_file():
            raise SettingsError(f"the embedding model is not installed: {weights} is missing; run `make install`")
        with weights.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != POTION_WEIGHTS_SHA256:
            raise SettingsError(f"{weights} is not the expected model (SHA-256 {found}); run `make install` again")
        _bound_threads(settings.threads)
        self.tokenizer = load_tokenizer(settings)
        unknown = self.tokenizer.token_to_id(_UNKNOWN)
        self.words = WordTokens(self.tokenizer)
        self._average = WordAverage(self.words, _mapped(weights), unknown, self.max_tokens)

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return self._average.embed(texts)


def _mapped(weights: Path) -> Vectors:
    """The vectors of all tokens: the only table of the file, behind a header whose length stands first."""
    with weights.open("rb") as file:
        header = 8 + int.from_bytes(file.read(8), "little")
    return np.asarray(np.memmap(weights, np.float32, "r", header)).reshape(-1, POTION_DIMENSION)


def _bound_threads(threads: int) -> None:
    """The tokenizer is the only part that starts threads, at its first call; averaging is done in the caller's."""
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"
    os.environ["RAYON_NUM_THREADS"] = str(threads)
