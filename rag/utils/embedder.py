"""Embedding: the contract, and the packaged static model (potion-base-8M, read by model2vec).

The weights come out of a package (tools/fetch_model.py), are checked against their SHA-256 when they are
loaded, and stay in the process."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from tokenizers import Tokenizer

from common.errors import SettingsError
from common.settings import EmbeddingSettings
from rag.utils.doc_index import Vectors

POTION = "potion-base-8M"
POTION_WEIGHTS_SHA256 = "f65d0f325faadc1e121c319e2faa41170d3fa07d8c89abd48ca5358d9a223de2"
POTION_DIMENSION = 256
# A static model averages its tokens: nothing forces a limit. This one keeps an average meaningful.
POTION_MAX_TOKENS = 2048


class Embedder(Protocol):
    """Thread-safe. `embed` gives one row of unit length per text (zeros for a text without a known token)."""

    name: str
    dimension: int
    max_tokens: int

    def embed(self, texts: Sequence[str]) -> Vectors: ...


def model_dir(settings: EmbeddingSettings) -> Path:
    if settings.model_dir:
        return Path(settings.model_dir)
    return Path(sys.prefix) / "share" / "pagemill" / settings.model


def load_tokenizer(settings: EmbeddingSettings) -> Tokenizer:
    """The model's own tokenizer, without truncation: what counts tokens when chunks are cut."""
    path = model_dir(settings) / "tokenizer.json"
    if not path.is_file():
        raise SettingsError(f"the embedding model is not installed: {path} is missing; run `make install`")
    tokenizer: Tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    return tokenizer


class PackagedEmbedder:
    """potion-base-8M on the CPU."""

    name = f"{POTION}@Builtin"
    dimension = POTION_DIMENSION
    max_tokens = POTION_MAX_TOKENS

    def __init__(self, settings: EmbeddingSettings) -> None:
        """Load and check the weights. Raises SettingsError where they are missing or not the expected ones."""
        if settings.model != POTION:
            raise SettingsError(f"embedding.model = {settings.model!r}: allowed: {POTION!r}")
        folder = model_dir(settings)
        weights = folder / "model.safetensors"
        if not weights.is_file():
            raise SettingsError(f"the embedding model is not installed: {weights} is missing; run `make install`")
        with weights.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != POTION_WEIGHTS_SHA256:
            raise SettingsError(f"{weights} is not the expected model (SHA-256 {found}); run `make install` again")
        from model2vec import StaticModel  # half a second of imports: only processes that embed pay it

        self._model = StaticModel.from_pretrained(folder)
        self._batch_size = settings.batch_size

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        vectors = self._model.encode(
            list(texts), max_length=self.max_tokens, batch_size=self._batch_size, use_multiprocessing=False
        )
        return np.ascontiguousarray(vectors, dtype=np.float32)
