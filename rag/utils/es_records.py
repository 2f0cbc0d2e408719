"""A chunk as a document of Elasticsearch, and back. What is searched, sorted or counted by are fields of their own, as
conf/es_mapping.json says; the rest is kept in one that Elasticsearch never looks into, so that a chunk may get a new
field without a migration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from common.errors import InvalidInput
from rag.utils.chunk_input import clean
from rag.utils.doc_index import ChunkRecord, Vectors

# What a name may be long in Elasticsearch, in bytes.
_LONGEST_ID = 512
_FIELDS = ("id", "dataset_id", "document_id", "generation", "task_no", "claim_no", "ordinal", "page", "terms")
# Digits behind the point: a cosine is right to the fourth, and a vector takes half of the room.
_DIGITS = 5


def encoded(chunk: ChunkRecord, vector: Vectors) -> bytes:
    """JSON. A vector of zeros points nowhere, and is left out: Elasticsearch takes none."""
    if not 0 < len(chunk.id.encode("utf-8", "replace")) <= _LONGEST_ID:
        raise InvalidInput(f"chunk {chunk.id[:64]!r} has an id of 0 or more than {_LONGEST_ID} bytes")
    rest: dict[str, Any] = msgspec.to_builtins(_cleaned(chunk))
    document: dict[str, Any] = {field: rest.pop(field) for field in _FIELDS}
    if vector.any():
        document["vector"] = np.round(vector.astype(np.float64), _DIGITS).tolist()
    return msgspec.json.encode(document | {"rest": rest})


def decoded(source: Mapping[str, Any]) -> ChunkRecord:
    return msgspec.convert(source["rest"] | {field: source[field] for field in _FIELDS}, ChunkRecord)


def decoded_vectors(sources: Sequence[Mapping[str, Any]], dimension: int) -> Vectors:
    nowhere = [0.0] * dimension
    rows = [source.get("vector") or nowhere for source in sources]
    return np.array(rows, np.float32).reshape(len(rows), dimension)


def _cleaned(chunk: ChunkRecord) -> ChunkRecord:
    return msgspec.structs.replace(
        chunk,
        text=clean(chunk.text),
        terms=clean(chunk.terms),
        headings=tuple(map(clean, chunk.headings)),
        tags=tuple(map(clean, chunk.tags)),
        parent=clean(chunk.parent),
        contents=tuple((level, clean(title), page) for level, title, page in chunk.contents),
    )
