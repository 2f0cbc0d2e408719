"""Vectors that an endpoint gave before. A text is known by a hash only, of which its tenant, the endpoint, the model
and the dimension are part. The file they are in is that of vector_file.py.

Vectors are kept as float16: half the room, and a cosine changes by less than 0.0001. Each has a checksum, since SQLite
has none.

Never the reason that a task fails: a file that is damaged is made anew, and one that is locked or can't be written is
done without."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from rag.utils.doc_index import Vectors
from rag.utils.vector_file import VectorFile, is_damage

log = logging.getLogger(__name__)
_CHECKSUM_BYTES = 4


@dataclass(frozen=True)
class Model:
    """What decides, besides the text, what its vector is. A dimension of 0 is the model's own."""

    url: str
    name: str
    dimension: int


class EmbeddingCache:
    """Thread-safe, and safe with other processes. `hits` and `misses` count what this process asked for."""

    def __init__(self, path: Path, most_bytes: int, model: Model, clock_s: Callable[[], float] = time.time) -> None:
        """Opens nothing before the first use."""
        self._file = VectorFile(path, most_bytes)
        self._model = model
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._is_failing = False
        self.hits = 0
        self.misses = 0

    def get(self, tenant_id: str, texts: Sequence[str]) -> dict[str, Vectors]:
        """The vectors that are known, of length 1."""
        keys = {self._key(tenant_id, text): text for text in texts}
        stored: dict[bytes, bytes] = {}
        with self._lock:
            with self._harmless():
                stored = self._file.read(list(keys))
            with self._harmless():
                self._file.note_use(list(stored), int(self._clock_s()))
            found = {keys[key]: vector for key, data in stored.items() if (vector := _vector(data)) is not None}
            hits = sum(text in found for text in texts)
            self.hits += hits
            self.misses += len(texts) - hits
        return found

    def put(self, tenant_id: str, vectors: Mapping[str, Vectors]) -> None:
        rows = {self._key(tenant_id, text): _data(vector) for text, vector in vectors.items()}
        with self._lock, self._harmless():
            self._file.write(rows, int(self._clock_s()))

    def close(self) -> None:
        with self._lock, self._harmless():
            self._file.close()

    def _key(self, tenant_id: str, text: str) -> bytes:
        parts = (tenant_id, self._model.url, self._model.name, self._model.dimension, text)
        return hashlib.sha256(msgspec.json.encode(parts)).digest()

    @contextlib.contextmanager
    def _harmless(self) -> Iterator[None]:
        """Whatever is wrong with the file, the task goes on. It is said once until the file serves again."""
        try:
            yield
        except (sqlite3.Error, OSError) as exc:
            level = logging.DEBUG if self._is_failing else logging.WARNING
            self._is_failing = True
            if isinstance(exc, sqlite3.Error) and is_damage(exc):
                log.log(level, "the embedding cache is damaged and made anew: %s", exc)
                with contextlib.suppress(sqlite3.Error, OSError):
                    self._file.remake()
            else:
                log.log(level, "the embedding cache is done without: %s", exc)
        else:
            self._is_failing = False


def _data(vector: Vectors) -> bytes:
    numbers = vector.astype("<f2").tobytes()
    return zlib.crc32(numbers).to_bytes(_CHECKSUM_BYTES, "big") + numbers


def _vector(data: bytes) -> Vectors | None:
    """None for bytes that are not as they were written."""
    numbers = data[_CHECKSUM_BYTES:]
    if len(numbers) % 2 or zlib.crc32(numbers) != int.from_bytes(data[:_CHECKSUM_BYTES], "big"):
        return None
    vector = np.frombuffer(numbers, "<f2").astype(np.float32)
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector
