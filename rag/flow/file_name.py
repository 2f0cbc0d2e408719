"""A file's name as part of what its chunks mean: `filename_embd_weight` of a document's parser_config."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from rag.utils.doc_index import Vectors

_BETWEEN_WORDS = re.compile(r"[_\-.+]+")


def name_weight(parser_config: Mapping[str, Any]) -> float:
    """0 where the name does not count."""
    return float(parser_config.get("filename_embd_weight") or 0.0)


def words_of_name(file_name: str) -> str:
    """`annual-report_2024.pdf` as it is read aloud; the whole name where nothing else is left."""
    return _BETWEEN_WORDS.sub(" ", PurePath(file_name).stem).strip() or file_name


def weighted(vectors: Vectors, of_name: Vectors, weight: float) -> Vectors:
    """Each vector with that of the name mixed in, of unit length again."""
    mixed = (1 - weight) * vectors + weight * of_name
    lengths = np.linalg.norm(mixed, axis=1, keepdims=True)
    return np.asarray(np.divide(mixed, lengths, out=np.zeros_like(mixed), where=lengths > 0), np.float32)
