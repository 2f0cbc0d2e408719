"""The vectors of a dataset in memory, against a plain table of the same rows, with blocks so small that every size of
them is met."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from common.errors import InvalidInput
from rag.utils import embedded_matrix
from rag.utils.doc_index import Vectors
from rag.utils.embedded_matrix import Matrix, Scan

DIMENSION = 4


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_matrix, "_BLOCK_ROWS", 8)


class Table:
    """A matrix and beside it what it should hold: document and vector by row."""

    def __init__(self, seed: int) -> None:
        self.matrix = Matrix()
        self.held: dict[int, tuple[str, Vectors]] = {}
        self.dice = np.random.default_rng(seed)
        self._next = 1

    def add(self, count: int) -> None:
        rows = np.arange(self._next, self._next + count)
        self._next += count + int(self.dice.integers(0, 3))  # other datasets have rows too
        names = [f"d{number}" for number in self.dice.integers(0, 5, count)]
        vectors = self.dice.standard_normal((count, DIMENSION)).astype(np.float32)
        self.matrix.add(rows, np.array([self.matrix.number(name) for name in names], np.int32), vectors)
        self.held.update(zip(rows.tolist(), zip(names, vectors, strict=True), strict=True))

    def drop(self, rows: Sequence[int]) -> None:
        self.matrix.drop(np.array(rows, np.int64))
        for row in rows:
            self.held.pop(row, None)

    def check(self, names: Sequence[str] | None) -> None:
        question = self.dice.standard_normal(DIMENSION).astype(np.float32)
        wanted = None if names is None else self.matrix.numbers(names)
        found = self.matrix.view().scan(question, wanted)
        expected = {
            row: float(vector @ question) for row, (name, vector) in self.held.items() if names is None or name in names
        }
        assert found.rows.tolist() == sorted(expected)
        assert found.cosines.tolist() == pytest.approx([expected[row] for row in sorted(expected)], abs=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_every_row_has_its_own_cosine_however_rows_came_and_went(seed: int) -> None:
    table = Table(seed)
    for _ in range(40):
        table.add(int(table.dice.integers(1, 30)))
        rows = list(table.held)
        table.drop(table.dice.choice(rows, int(table.dice.integers(0, len(rows))), replace=False).tolist())
        table.check(None)
        table.check(["d1", "d4", "unknown"])
        table.check([])


def test_a_view_keeps_what_it_saw() -> None:
    table = Table(1)
    table.add(21)
    view, question = table.matrix.view(), np.ones(DIMENSION, np.float32)
    before = view.scan(question, None)
    table.drop(list(range(1, 20)))  # more than half: it is packed anew
    table.add(30)
    after = view.scan(question, None)
    assert after.rows.tolist() == before.rows.tolist() == list(range(1, 22))
    assert after.cosines.tolist() == before.cosines.tolist()


def test_rows_that_are_not_there_are_dropped_without_harm() -> None:
    table = Table(2)
    table.add(5)
    table.drop([2, 99])
    table.drop([2])
    table.check(None)


def test_an_empty_dataset_takes_vectors_of_another_length() -> None:
    table = Table(3)
    table.add(3)
    table.drop([1, 2, 3])
    table.matrix.add(np.array([9]), np.zeros(1, np.int32), np.ones((1, 2), np.float32))
    assert table.matrix.view().scan(np.ones(2, np.float32), None).cosines.tolist() == [2.0]
    with pytest.raises(InvalidInput, match="has 4 numbers; the chunks' have 2"):
        table.matrix.view().scan(np.ones(DIMENSION, np.float32), None)


def test_without_a_vector_all_cosines_are_zero() -> None:
    table = Table(4)
    table.add(10)
    found = table.matrix.view().scan(np.zeros(0, np.float32), table.matrix.numbers(["d0", "d1"]))
    assert len(found.rows) == sum(name in ("d0", "d1") for name, _ in table.held.values())
    assert not found.cosines.any()


def test_the_best_are_those_with_the_highest_cosines() -> None:
    scan = Scan(np.arange(10, 60), np.random.default_rng(5).permutation(50).astype(np.float32))
    assert sorted(scan.best(7).cosines.tolist()) == [43, 44, 45, 46, 47, 48, 49]
    assert scan.best(50) is scan
