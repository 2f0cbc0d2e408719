"""An embedded index for tests, empty and kept up to date, and chunks to put into an index of any kind. Those on
Elasticsearch are in elastic_indexes.py."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from common.settings import IndexSettings
from rag.svr.indexer import Config, Indexer
from rag.utils.doc_index import ChunkRecord, DocIndex, Hit, Query, Scope, Vectors
from rag.utils.embedded_bell import ring
from rag.utils.embedded_folder import Folder
from rag.utils.embedded_index import EmbeddedIndex
from rag.utils.terms import analyse

KINDS = ("embedded", "elasticsearch")
DIMENSION = 8
SET = Scope("tenant", "set")


@contextmanager
def embedded_index(folder: Path) -> Iterator[EmbeddedIndex]:
    """With an indexer in a thread."""
    made = EmbeddedIndex(folder, IndexSettings())
    stop = threading.Event()
    indexer = Indexer(Config(folder, commit_s=0.01, heap_bytes=15_000_000))
    thread = threading.Thread(target=indexer.run, args=(stop,))
    thread.start()
    try:
        yield made
    finally:
        stop.set()
        ring(Folder(folder))
        made.close()
        thread.join()


def axis(*places: int, dimension: int = DIMENSION) -> Vectors:
    """The unit vector between some axes: chunks on the same axis are near, on others they are not."""
    vector = np.zeros(dimension, np.float32)
    vector[list(places)] = 1.0
    return vector / np.float32(np.linalg.norm(vector))


def chunk(id_: str, text: str = "some text", **fields: Any) -> ChunkRecord:
    made = ChunkRecord(
        id=id_,
        tenant_id="tenant",
        dataset_id="set",
        document_id="doc",
        generation=1,
        task_no=0,
        claim_no=1,
        ordinal=0,
        page=1,
        text=text,
        terms=" ".join(analyse(text)),
        token_count=len(text.split()),
    )
    return msgspec.structs.replace(made, **fields)


def put(index: DocIndex, *chunks: ChunkRecord, at: int = 0) -> int:
    return index.upsert(chunks, np.stack([axis(at)] * len(chunks)))


def ask(words: str, vector: Vectors | None = None, **fields: Any) -> Query:
    query = Query("tenant", ("set",), tuple(analyse(words)), axis(DIMENSION - 1) if vector is None else vector)
    return replace(query, **fields)


def ids(hits: list[Hit]) -> list[str]:
    return [hit.chunk.id for hit in hits]
