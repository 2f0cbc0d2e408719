"""The embedded index alone, without an indexer or with one that is stepped; what it shares with the others is in
tests/integration/test_index_contract.py."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.errors import IndexUnavailable
from common.settings import IndexSettings
from rag.svr.indexer import Config, Indexer
from rag.utils import embedded_index
from rag.utils.doc_index import Scope
from rag.utils.embedded_bell import ring
from rag.utils.embedded_folder import Folder
from rag.utils.embedded_index import EmbeddedIndex
from tests.indexes import SET, ask, axis, chunk, put

WAIT_S = 20.0


class TestEmbeddedWithoutAnIndexer:
    """What the embedded index does alone: its text half stands still."""

    @pytest.fixture
    def alone(self, tmp_path: Path) -> Iterator[EmbeddedIndex]:
        made = EmbeddedIndex(tmp_path / "deep" / "index", IndexSettings(max_behind=3))
        yield made
        made.close()

    def test_a_chunk_is_found_by_its_vector_at_once(self, alone: EmbeddedIndex) -> None:
        put(alone, chunk("a", "whale"))
        (hit,) = alone.search(ask("whale", axis(0)))
        assert (hit.chunk.id, hit.term_similarity) == ("a", 0.0)

    def test_a_search_that_has_to_see_more_says_so(self, alone: EmbeddedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(embedded_index, "_SEARCH_PATIENCE_S", 0.02)
        sequence = put(alone, chunk("a", "whale"))
        with pytest.raises(IndexUnavailable, match="the indexer is behind"):
            alone.search(ask("whale", axis(0)), at_least=sequence)
        assert not alone.wait_findable("tenant", sequence, 0.02)

    def test_writers_wait_for_an_indexer_that_is_too_far_behind(
        self, alone: EmbeddedIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(embedded_index, "_WRITER_PATIENCE_S", 0.02)
        put(alone, *(chunk(f"c{n}") for n in range(4)))
        with pytest.raises(IndexUnavailable, match="behind by 4"):
            put(alone, chunk("late"))
        assert alone.count(SET) == 4
        assert alone.delete(Scope("tenant", "set")) > 0

    def test_a_folder_that_is_no_folder_is_an_outage(self, tmp_path: Path) -> None:
        (tmp_path / "index").write_text("in the way")
        broken = EmbeddedIndex(tmp_path / "index", IndexSettings())
        for action in (broken.check, lambda: broken.count(SET), lambda: put(broken, chunk("a"))):
            with pytest.raises(IndexUnavailable):
                action()
        broken.close()

    def test_many_openers_make_one_schema(self, tmp_path: Path) -> None:
        made = [EmbeddedIndex(tmp_path / "index", IndexSettings()) for _ in range(12)]
        counts: list[int] = []
        threads = [threading.Thread(target=lambda one=one: counts.append(one.count(SET))) for one in made]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert counts == [0] * 12
        for one in made:
            one.close()


def test_a_commit_that_somebody_waits_for_comes_before_its_time(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path / "index", IndexSettings())
    stop = threading.Event()
    indexer = Indexer(Config(tmp_path / "index", commit_s=30.0, heap_bytes=15_000_000))
    thread = threading.Thread(target=indexer.run, args=(stop,))
    thread.start()
    try:
        for number in range(3):
            sequence = index.upsert([chunk(f"c{number}")], axis(0)[None])
            assert index.wait_findable("tenant", sequence, WAIT_S), "the indexer slept through it"
    finally:
        stop.set()
        ring(Folder(tmp_path / "index"), awaited=True)
        index.close()
        thread.join()
