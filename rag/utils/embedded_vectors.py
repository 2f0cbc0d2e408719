"""The vector half of the embedded index: a matrix per dataset in memory, scanned exactly.

Each matrix is loaded when its dataset is first asked for, and then follows the log: it adds rows and
drops them. Vectors come from SQLite (embedded_log.py) and are kept as float32 of length 1."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rag.utils import embedded_reads as reads
from rag.utils.doc_index import Vectors
from rag.utils.embedded_log import Database, Rows, ends, entries_of, last_row
from rag.utils.embedded_matrix import Matrix, Scan

# Rows read at once while a dataset is loaded.
_SLICE = 4096


@dataclass(frozen=True)
class Scans:
    """A scan of each dataset that was asked for."""

    parts: list[Scan]

    def best(self, limit: int) -> Rows:
        """The rows with the highest cosines, in no order."""
        best = [part.best(limit) for part in self.parts]
        rows = np.concatenate([part.rows for part in best])
        return Scan(rows, np.concatenate([part.cosines for part in best])).best(limit).rows

    def cosines_of(self, rows: Rows) -> dict[int, float]:
        """Cosines by row; rows that are in none of the datasets, or no longer, are left out."""
        found: dict[int, float] = {}
        for part in self.parts:
            here, cosines = part.cosines_of(rows)
            found.update(zip(rows[here].tolist(), cosines.tolist(), strict=True))
        return found


class _Follower:
    """Keeps one dataset's matrix at what the log says. Thread-safe."""

    def __init__(self, database: Database, dataset: int) -> None:
        self._database = database
        self._dataset = dataset
        self._lock = threading.Lock()
        self._matrix = Matrix()
        self._seen = -1

    def scan(self, vector: Vectors, documents: Sequence[str] | None) -> Scan:
        # The lock first: a view of the file that began while waiting for it could be older than the matrix.
        with self._lock:
            with self._database.reading() as link:
                self._catch_up(link)
            view = self._matrix.view()
            wanted = None if documents is None else self._matrix.numbers(documents)
        return view.scan(vector, wanted)

    def _catch_up(self, link: sqlite3.Connection) -> None:
        """Apply what the log has for this dataset since the last time; load all where the log is cut."""
        compacted, last = ends(link)
        seen, self._seen = self._seen, -1  # until all is applied: after a failure half way it is loaded anew
        if seen < compacted or seen > last:
            self._matrix.clear()
            self._read(link, 0, last_row(link))
        elif seen < last:
            for entry in entries_of(link, self._dataset, seen):
                if entry.operation == "drop":
                    self._matrix.drop(entry.rows)
                else:
                    self._read(link, *entry.span)
        self._seen = last

    def _read(self, link: sqlite3.Connection, first: int, last: int) -> None:
        found = reads.places(link, self._dataset, first, last)
        lengths = [len(rows) for _, rows in found]
        numbers = np.array([self._matrix.number(document) for document, _ in found], np.int32)
        rows = np.concatenate([np.zeros(0, np.int64), *(rows for _, rows in found)])
        order = np.argsort(rows)
        rows, documents = rows[order], np.repeat(numbers, lengths)[order]
        for start in range(0, len(rows), _SLICE):
            part = rows[start : start + _SLICE]
            self._matrix.add(part, documents[start : start + _SLICE], reads.vectors(link, part.tolist()))


class VectorReader:
    """The matrices of a process. Thread-safe: datasets do not wait for each other."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._followers: dict[int, _Follower] = {}

    def scan(self, vector: Vectors, datasets: Sequence[int], documents: Sequence[str] | None) -> Scans:
        """Every row of these datasets (and documents) that is in the index now, with its cosine.

        A vector of no numbers gives cosines of 0."""
        return Scans([self._follower(number).scan(vector, documents) for number in datasets])

    def _follower(self, number: int) -> _Follower:
        with self._lock:
            return self._followers.setdefault(number, _Follower(self._database, number))
