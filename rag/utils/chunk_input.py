"""What every index does with chunks and vectors before it writes or asks: checks them, and brings them into a form that
can be stored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from common.errors import InvalidInput
from rag.utils.doc_index import ChunkRecord, Vectors


def checked_vectors(chunks: Sequence[ChunkRecord], vectors: Vectors) -> Vectors:
    """The vectors of these chunks, brought to length 1. Raises InvalidInput where they do not fit."""
    matrix = np.asarray(vectors, np.float32)
    if matrix.ndim != 2 or len(matrix) != len(chunks) or matrix.shape[1] == 0:
        raise InvalidInput(f"{len(chunks)} chunks came with vectors of shape {matrix.shape}")
    if len({chunk.tenant_id for chunk in chunks}) > 1:
        raise InvalidInput("chunks of several tenants came in one write")
    if not np.isfinite(matrix).all():
        raise InvalidInput("a vector holds numbers that are not finite")
    return unit(matrix)


def checked_question(vector: Vectors) -> Vectors:
    """The vector of a question, brought to length 1."""
    if vector.ndim != 1 or not np.isfinite(vector).all():
        raise InvalidInput("the question's vector has to be one row of finite numbers")
    return unit(np.asarray(vector, np.float32))


def unit(matrix: Vectors) -> Vectors:
    """Vectors brought to length 1; one of zeros stays."""
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=-1, keepdims=True)
    return (matrix / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)


def last_places(chunks: Sequence[ChunkRecord]) -> list[int]:
    """Where the chunks stand that count: of several with one id the last."""
    return sorted({chunk.id: place for place, chunk in enumerate(chunks)}.values())


def clean(text: str) -> str:
    """Half of a surrogate pair has no UTF-8 form, so nothing can hold it."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def scores(vector_weight: float, word: float, cosine: float) -> tuple[float, float, float]:
    """(similarity, term similarity, vector similarity), each in 0..1."""
    word, near = min(1.0, max(0.0, word)), min(1.0, max(0.0, cosine))
    return (1 - vector_weight) * word + vector_weight * near, word, near
