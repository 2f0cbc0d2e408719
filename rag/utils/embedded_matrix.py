"""The vectors of one dataset in memory, and what they are scanned with: rows, documents, and which are still there.

Vectors stand in blocks: a dataset that grows copies none of them, and takes no more memory than it has vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.errors import InvalidInput
from rag.utils.doc_index import Vectors
from rag.utils.embedded_log import Rows

# Rows of a full block: 4 MB of 256 numbers each.
_BLOCK_ROWS = 4096
# A block of which more than this part is asked for is scanned whole: picking the rows would cost more.
_SCANNED_WHOLE = 0.25
_Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Scan:
    """Rows in ascending order, with their cosines."""

    rows: Rows
    cosines: Vectors

    def best(self, limit: int) -> Scan:
        """The rows with the highest cosines, in no order."""
        if len(self.rows) <= limit:
            return self
        chosen = np.argpartition(self.cosines, len(self.rows) - limit)[-limit:]
        return Scan(self.rows[chosen], self.cosines[chosen])

    def cosines_of(self, rows: Rows) -> tuple[_Flags, Vectors]:
        """Which of these rows are here, and the cosines of those that are."""
        places = np.searchsorted(self.rows, rows)
        here = places < len(self.rows)
        here[here] = self.rows[places[here]] == rows[here]
        return here, self.cosines[places[here]]


@dataclass(frozen=True)
class View:
    """A matrix as it was when the view was taken. Rows that are added to it meanwhile are not seen."""

    rows: Rows
    documents: NDArray[np.int32]
    # None where all rows are.
    alive: _Flags | None
    blocks: Sequence[Vectors]
    dimension: int

    def scan(self, vector: Vectors, documents: Sequence[int] | None) -> Scan:
        """Every row, or those of these documents, with its cosine. A vector of no numbers gives cosines of 0."""
        if len(vector) not in (0, self.dimension) and len(self.rows):
            raise InvalidInput(f"the question's vector has {len(vector)} numbers; the chunks' have {self.dimension}")
        chosen = self.alive
        if documents is not None:
            among = np.isin(self.documents, documents)
            chosen = among if chosen is None else among & chosen
        rows = self.rows if chosen is None else self.rows[chosen]
        if len(vector) == 0:
            return Scan(rows, np.zeros(len(rows), np.float32))
        return Scan(rows, _cosines(self.blocks, len(self.rows), vector, chosen))


class Matrix:
    """Not thread-safe, but its views are: it only ever adds behind what they see, or makes anew what they see."""

    def __init__(self) -> None:
        self._documents: dict[str, int] = {}
        self.clear()

    def clear(self, dimension: int = 0) -> None:
        self._size = self._dead = 0
        self._dimension = dimension
        self._rows: Rows = np.zeros(0, np.int64)
        self._places: NDArray[np.int32] = np.zeros(0, np.int32)
        self._alive: _Flags = np.zeros(0, np.bool_)
        self._blocks: list[Vectors] = []

    def add(self, rows: Rows, documents: NDArray[np.int32], vectors: Vectors) -> None:
        """Rows come in ascending order, each higher than those before; documents are given by number."""
        if vectors.shape[1] != self._dimension:  # only an empty dataset changes its dimension
            self.clear(vectors.shape[1])
        size = self._size + len(rows)
        if size > len(self._rows):
            self._make_room(size + size // 2)
        new = slice(self._size, size)
        self._rows[new], self._places[new], self._alive[new] = rows, documents, True
        _append(self._blocks, self._size, vectors)
        self._size = size

    def drop(self, rows: Rows) -> None:
        """Rows that are not here are passed over."""
        known = self._rows[: self._size]
        places = np.searchsorted(known, rows)
        inside = places < self._size
        places = places[inside][known[places[inside]] == rows[inside]]
        places = places[self._alive[places]]
        self._alive[places] = False
        self._dead += len(places)
        if self._dead * 2 > self._size:
            self._repack()

    def number(self, document: str) -> int:
        """The number by which a document is known from now on."""
        return self._documents.setdefault(document, len(self._documents))

    def numbers(self, documents: Sequence[str]) -> list[int]:
        """Those of the documents that are known."""
        return [self._documents[name] for name in documents if name in self._documents]

    def view(self) -> View:
        size = self._size
        alive = self._alive[:size].copy() if self._dead else None
        return View(self._rows[:size], self._places[:size], alive, tuple(self._blocks), self._dimension)

    def _make_room(self, room: int) -> None:
        """Longer arrays; scans that run keep the old ones."""
        more = room - self._size
        self._rows = np.concatenate([self._rows[: self._size], np.zeros(more, np.int64)])
        self._places = np.concatenate([self._places[: self._size], np.zeros(more, np.int32)])
        self._alive = np.concatenate([self._alive[: self._size], np.zeros(more, np.bool_)])

    def _repack(self) -> None:
        """New arrays and blocks without the dead rows; scans that run keep the old ones."""
        alive = self._alive[: self._size]
        blocks: list[Vectors] = []
        packed = 0
        for start, block in _parts(self._blocks, self._size):
            left = block[alive[start : start + len(block)]]
            _append(blocks, packed, left)
            packed += len(left)
        self._rows, self._places = self._rows[: self._size][alive], self._places[: self._size][alive]
        self._alive = np.ones(packed, np.bool_)
        self._blocks, self._size, self._dead = blocks, packed, 0


def _append(blocks: list[Vectors], size: int, vectors: Vectors) -> None:
    """Put vectors behind the `size` that are in the blocks."""
    while len(vectors):
        used = size % _BLOCK_ROWS
        count = min(len(vectors), _BLOCK_ROWS - used)
        if used == 0:
            blocks.append(_block(used + count, is_first=not blocks, dimension=vectors.shape[1]))
        elif used + count > len(blocks[-1]):
            grown = _block(used + count, is_first=len(blocks) == 1, dimension=vectors.shape[1])
            grown[:used] = blocks[-1][:used]
            blocks[-1] = grown
        blocks[-1][used : used + count] = vectors[:count]
        vectors, size = vectors[count:], size + count


def _block(rows: int, *, is_first: bool, dimension: int) -> Vectors:
    """With room for so many rows or more. Only a dataset's first block grows: there may be many small datasets."""
    return np.empty((min(_BLOCK_ROWS, 2 * rows) if is_first else _BLOCK_ROWS, dimension), np.float32)


def _parts(blocks: Sequence[Vectors], size: int) -> Iterator[tuple[int, Vectors]]:
    """Where each block begins, and what is used of it."""
    for number, block in enumerate(blocks):
        start = number * _BLOCK_ROWS
        yield start, block[: size - start]


def _cosines(blocks: Sequence[Vectors], size: int, vector: Vectors, chosen: _Flags | None) -> Vectors:
    """Of all rows, or of the chosen ones."""
    # vecdot and not @: BLAS starts threads of its own, and a server's threads then wait for each other.
    if chosen is None:
        cosines = np.empty(size, np.float32)
        for start, block in _parts(blocks, size):
            np.vecdot(block, vector, out=cosines[start : start + len(block)])
        return cosines
    found = [np.zeros(0, np.float32)]
    for start, block in _parts(blocks, size):
        own = chosen[start : start + len(block)]
        count = np.count_nonzero(own)
        if count > len(block) * _SCANNED_WHOLE:
            found.append(np.vecdot(block, vector)[own])
        elif count:
            found.append(np.vecdot(block[own], vector))
    return np.concatenate(found)
