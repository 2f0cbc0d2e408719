"""Words searched without a filter, where all chunks are of the datasets asked for, and with one where they are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.utils import embedded_search
from rag.utils.doc_index import Scope
from rag.utils.embedded_index import EmbeddedIndex
from tests.indexes import ask, chunk, embedded_index, ids, put

WAIT_S = 20.0
OTHERS = tuple(chunk(f"other{number}", "whale whale whale", dataset_id="other") for number in range(12))


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedIndex]:
    # So few that those of another dataset would push out what is asked for, were they proposed.
    monkeypatch.setattr(embedded_search, "_MIN_CANDIDATES", 2)
    with embedded_index(tmp_path / "index") as made:
        written = put(made, chunk("a", "a whale and a ship"), chunk("b", "a whale in the sea"), chunk("c", "a ship"))
        assert made.wait_findable("tenant", written, WAIT_S)
        yield made


def found(index: EmbeddedIndex, *datasets: str) -> list[str]:
    return sorted(ids(index.search(ask("whale", limit=2, vector_weight=0.0, dataset_ids=datasets))))


def test_a_dataset_that_is_alone_is_searched_by_words(index: EmbeddedIndex) -> None:
    assert found(index, "set") == ["a", "b"]
    assert found(index, "set", "unknown") == ["a", "b"]


def test_chunks_of_another_dataset_push_none_out(index: EmbeddedIndex) -> None:
    assert index.wait_findable("tenant", put(index, *OTHERS), WAIT_S)
    assert found(index, "set") == ["a", "b"]
    assert all(id_.startswith("other") for id_ in found(index, "set", "other"))


def test_nor_do_they_when_as_many_are_deleted_of_the_own(index: EmbeddedIndex) -> None:
    more = [chunk(f"gone{number}", "whale", document_id="gone") for number in range(12)]
    put(index, *more)
    assert index.wait_findable("tenant", put(index, *OTHERS), WAIT_S)
    assert index.wait_findable("tenant", index.delete(Scope("tenant", "set", "gone")), WAIT_S)
    assert found(index, "set") == ["a", "b"]
