"""The vector half of the embedded index: a matrix per dataset in memory, scanned exactly.

Each matrix is loaded when its dataset is first asked for, and then follows the log: it adds rows and
drops them. Vectors come from SQLite (embedded_log.py) and are kept as float32 of length 1."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.errors import InvalidInput
from rag.utils import embedded_reads as reads
from rag.utils.doc_index import Vectors
from rag.utils.embedded_log import Database, Rows, ends, entries_of, last_row

# Rows read at once while a dataset is loaded.
_SLICE = 4096


@dataclass(frozen=True)
class Scan:
    """Rows in ascending order, with their cosines."""

    rows: Rows
    cosines: Vectors

    def cosines_of(self, rows: Rows) -> tuple[NDArray[np.bool_], Vectors]:
        """Which of these rows are here, and the cosines of those that are."""
        places = np.searchsorted(self.rows, rows)
        here = places < len(self.rows)
        here[here] = self.rows[places[here]] == rows[here]
        return here, self.cosines[places[here]]


@dataclass(frozen=True)
class Scans:
    """A scan of each dataset that was asked for."""

    parts: list[Scan]

    def best(self, limit: int) -> Rows:
        """The rows with the highest cosines, in no order."""
        rows = np.concatenate([part.rows for part in self.parts])
        if len(rows) <= limit:
            return rows
        cosines = np.concatenate([part.cosines for part in self.parts])
        return rows[np.argpartition(-cosines, limit)[:limit]]

    def cosines_of(self, rows: Rows) -> dict[int, float]:
        """Cosines by row; rows that are in none of the datasets, or no longer, are left out."""
        found: dict[int, float] = {}
        for part in self.parts:
            here, cosines = part.cosines_of(rows)
            found.update(zip(rows[here].tolist(), cosines.tolist(), strict=True))
        return found


class _Matrix:
    """One dataset's rows. Arrays only grow at their end, so a scan reads what it took without a lock."""

    def __init__(self, dataset: int) -> None:
        self.lock = threading.Lock()
        self.seen = -1
        self._dataset = dataset
        self._documents: dict[str, int] = {}
        self._reset(0)

    def _reset(self, dimension: int) -> None:
        self._size = self._dead = 0
        self._rows: Rows = np.zeros(0, np.int64)
        self._places: NDArray[np.int32] = np.zeros(0, np.int32)
        self._alive: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._vectors: Vectors = np.zeros((0, dimension), np.float32)

    def catch_up(self, link: sqlite3.Connection) -> None:
        """Apply what the log has for this dataset since the last time; load all where the log is cut."""
        compacted, last = ends(link)
        seen, self.seen = self.seen, -1  # until all is applied: after a failure half way it is loaded anew
        if seen < compacted or seen > last:
            self._reset(0)
            self._read(link, 0, last_row(link))
        elif seen < last:
            for entry in entries_of(link, self._dataset, seen):
                if entry.operation == "put":
                    self._read(link, *entry.rows.tolist())
                else:
                    self._drop(entry.rows)
        self.seen = last

    def _read(self, link: sqlite3.Connection, first: int, last: int) -> None:
        found = reads.places(link, self._dataset, first, last)
        for start in range(0, len(found), _SLICE):
            part = found[start : start + _SLICE]
            self._add(part, reads.vectors(link, [row for row, _ in part]))

    def _add(self, found: Sequence[tuple[int, str]], vectors: Vectors) -> None:
        if vectors.shape[1] != self._vectors.shape[1]:  # only an empty dataset changes its dimension
            self._reset(vectors.shape[1])
        if self._size + len(found) > len(self._rows):
            self._repack(len(found))
        new = slice(self._size, self._size + len(found))
        self._rows[new] = [row[0] for row in found]
        self._places[new] = [self._documents.setdefault(row[1], len(self._documents)) for row in found]
        self._vectors[new] = vectors
        self._alive[new] = True
        self._size += len(found)

    def _drop(self, rows: Rows) -> None:
        known = self._rows[: self._size]
        places = np.searchsorted(known, rows)
        inside = places < self._size
        places = places[inside][known[places[inside]] == rows[inside]]
        places = places[self._alive[places]]
        self._alive[places] = False
        self._dead += len(places)
        if self._dead * 2 > self._size:
            self._repack(0)

    def _repack(self, more: int) -> None:
        """New arrays without the dead rows and with room for more; scans that run keep the old ones."""
        alive = np.flatnonzero(self._alive[: self._size])
        room = len(alive) + more + len(alive) // 2
        rows, places, flags = np.zeros(room, np.int64), np.zeros(room, np.int32), np.zeros(room, np.bool_)
        vectors = np.zeros((room, self._vectors.shape[1]), np.float32)
        rows[: len(alive)], places[: len(alive)] = self._rows[alive], self._places[alive]
        vectors[: len(alive)], flags[: len(alive)] = self._vectors[alive], True
        self._rows, self._places, self._alive, self._vectors = rows, places, flags, vectors
        self._size, self._dead = len(alive), 0

    def scan(self, vector: Vectors, documents: Sequence[str] | None) -> Scan:
        with self.lock:
            size, dead = self._size, self._dead
            rows, alive, vectors = self._rows[:size], self._alive[:size], self._vectors[:size]
            places = self._places[:size]
            wanted = None if documents is None else [self._documents.get(document, -1) for document in documents]
        if size == dead:
            return Scan(np.zeros(0, np.int64), np.zeros(0, np.float32))
        if len(vector) not in (0, vectors.shape[1]):
            raise InvalidInput(f"the question's vector has {len(vector)} numbers; the chunks' have {vectors.shape[1]}")
        # vecdot and not @: BLAS starts threads of its own, and a server's threads then wait for each other.
        chosen = slice(None) if wanted is None and not dead else np.flatnonzero(_mask(alive, places, wanted))
        if len(vector) == 0:
            return Scan(rows[chosen], np.zeros(len(rows[chosen]), np.float32))
        if wanted is None:
            return Scan(rows[chosen], np.vecdot(vectors, vector)[chosen])
        return Scan(rows[chosen], np.vecdot(vectors[chosen], vector))


def _mask(alive: NDArray[np.bool_], places: NDArray[np.int32], wanted: list[int] | None) -> NDArray[np.bool_]:
    return alive.copy() if wanted is None else alive & np.isin(places, wanted)


class VectorReader:
    """The matrices of a process. Thread-safe: datasets do not wait for each other."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._matrices: dict[int, _Matrix] = {}

    def scan(self, vector: Vectors, datasets: Sequence[int], documents: Sequence[str] | None) -> Scans:
        """Every row of these datasets (and documents) that is in the index now, with its cosine.

        A vector of no numbers gives cosines of 0."""
        return Scans([self._caught_up(number).scan(vector, documents) for number in datasets])

    def _caught_up(self, number: int) -> _Matrix:
        with self._lock:
            matrix = self._matrices.setdefault(number, _Matrix(number))
        # The lock first: a view of the file that began while waiting for it could be older than the matrix.
        with matrix.lock, self._database.reading() as link:
            matrix.catch_up(link)
        return matrix
