"""A migration on Elasticsearch: while chunks are written, replaced, deleted and searched nothing is lost, and one that
ends half way leaves everything as it was."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from elasticsearch import Elasticsearch

from common.errors import Conflict, IndexUnavailable
from common.settings import IndexSettings
from rag.utils import es_migration
from rag.utils.doc_index import Scope
from rag.utils.es_index import ElasticIndex
from tests.elastic_indexes import elastic_index, elastic_settings, remove_all
from tests.indexes import DIMENSION, SET, ask, axis, chunk, ids, put
from tests.servers.meddler import Answer, Heard, meddling

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """No search of these tests takes long."""
    monkeypatch.setattr(es_migration, "_LINGER_S", 0.5)


@pytest.fixture
def settings(elasticsearch_url: str) -> IndexSettings:
    return elastic_settings(elasticsearch_url)


@pytest.fixture
def index(settings: IndexSettings) -> Iterator[ElasticIndex]:
    with elastic_index(settings) as made:
        yield made


@pytest.fixture
def client(settings: IndexSettings) -> Iterator[Elasticsearch]:
    with Elasticsearch(settings.url) as made:
        yield made


def indexes(client: Elasticsearch, settings: IndexSettings) -> dict[str, list[str]]:
    found = client.indices.get(index=f"{settings.prefix}-*")
    return {name.removeprefix(f"{settings.prefix}-"): list(told["aliases"]) for name, told in found.items()}


def test_a_changed_mapping_is_taken_over_and_the_old_index_removed(
    index: ElasticIndex, settings: IndexSettings, client: Elasticsearch
) -> None:
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(50, DIMENSION)).astype(np.float32)
    written = [chunk(f"c{n:02}", f"whale number{n}", ordinal=n) for n in range(50)]
    sequence = index.upsert(written, vectors)
    put(index, chunk("s", tenant_id="stranger"))
    before = index.search(ask("whale number7", vectors[7]), at_least=sequence)
    changed = ElasticIndex(settings.model_copy(update={"shards": 2}))
    said: list[str] = []
    assert changed.migrate(said.append) == 2
    assert indexes(client, settings) == {
        "tenant-8-v2": [f"{settings.prefix}-tenant-8"],
        "stranger-8-v2": [f"{settings.prefix}-stranger-8"],
    }
    made = client.indices.get_settings(index=f"{settings.prefix}-tenant-8-v2")
    told = made[f"{settings.prefix}-tenant-8-v2"]["settings"]["index"]
    assert (told["number_of_shards"], told["refresh_interval"]) == ("2", "3600000ms")
    assert changed.migrate(said.append) == 0
    found, read = changed.read_all(SET)
    assert found == written
    assert np.allclose(read, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), atol=1e-3)
    # Two shards count their words apart: the order stays, scores move a little.
    assert index.search(ask("whale number7", vectors[7]))[0].chunk == before[0].chunk
    assert len(said) == 4
    changed.close()


def test_writes_during_a_migration_are_not_lost(index: ElasticIndex, settings: IndexSettings) -> None:
    """Writers create, replace and delete all the time, and remember what they were told is done."""
    model: dict[str, str] = {}
    lock, stop = threading.Lock(), threading.Event()
    errors: list[Exception] = []
    put(index, *(chunk(f"old{n}", "whale", document_id="old", ordinal=n) for n in range(600)))
    model |= {f"old{n}": "whale" for n in range(600)}

    def write(number: int) -> None:
        rng = np.random.default_rng(number)
        own = ElasticIndex(settings)
        step = 0
        try:
            while not stop.is_set():
                step += 1
                document = f"doc{number}-{step}"
                made = [chunk(f"{document}-{n}", f"step{step}", document_id=document, ordinal=n) for n in range(8)]
                put(own, *made)
                put(own, msgspec.structs.replace(made[0], text="replaced"))
                with lock:
                    model.update({one.id: one.text for one in made} | {made[0].id: "replaced"})
                if rng.integers(3) == 0:
                    own.delete(Scope("tenant", "set", document))
                    with lock:
                        for one in made:
                            del model[one.id]
        except Exception as exc:  # noqa: BLE001  handed to the test's own thread
            errors.append(exc)
        finally:
            own.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        assert index.migrate(lambda line: None, force=True) == 1
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert errors == []
    found = {one.id: one.text for one in index.read_all(SET)[0]}
    assert found == model
    assert len(model) > 600


def test_a_document_deleted_during_the_copy_does_not_come_back(
    index: ElasticIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(index, *(chunk(f"gone{n}", document_id="gone") for n in range(20)), chunk("kept", document_id="kept"))
    copy = es_migration.Migration._copy_while_written

    def then_delete(self: es_migration.Migration, *args: object) -> int:
        reached = copy(self, *args)  # type: ignore[arg-type]
        index.delete(Scope("tenant", "set", "gone"))
        put(index, chunk("late", document_id="late"), chunk("kept", "replaced", document_id="kept"))
        return reached

    monkeypatch.setattr(es_migration.Migration, "_copy_while_written", then_delete)
    assert index.migrate(lambda line: None, force=True) == 1
    assert {(one.id, one.text) for one in index.read_all(SET)[0]} == {("kept", "replaced"), ("late", "some text")}


def test_searches_go_on_during_a_migration(index: ElasticIndex) -> None:
    sequence = put(index, *(chunk(f"c{n}", f"whale number{n}", ordinal=n) for n in range(300)))
    assert len(index.search(ask("whale"), at_least=sequence)) == 300
    stop, answers = threading.Event(), []

    def look() -> None:
        while not stop.is_set():
            answers.append(len(index.search(ask("whale"))))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        assert index.migrate(lambda line: None, force=True) == 1
    finally:
        stop.set()
        thread.join()
    assert set(answers) == {300}


def test_a_migration_that_fails_leaves_everything_as_it_was(settings: IndexSettings, client: Elasticsearch) -> None:
    with meddling(settings.url) as meddler:
        index = ElasticIndex(settings.model_copy(update={"url": meddler.url}))
        put(index, *(chunk(f"c{n}", "whale") for n in range(10)))

        def refuse_the_switch(heard: Heard) -> Answer | None:
            switching = heard.path == "/_aliases" and heard.method == "POST"
            headers = {"content-type": "application/json", "x-elastic-product": "Elasticsearch"}
            return (
                Answer(503, b'{"error": {"type": "no_master", "reason": "elections"}}', headers) if switching else None
            )

        meddler.answer = refuse_the_switch
        with pytest.raises(IndexUnavailable, match="elections"):
            index.migrate(lambda line: None, force=True)
        assert list(indexes(client, settings)) == ["tenant-8-v1"]
        index.check()
        sequence = put(index, chunk("after", "whale"))
        assert len(index.search(ask("whale", axis(0)), at_least=sequence)) == 11
        index.close()
    remove_all(settings.url, settings.prefix)


def test_what_a_killed_migration_left_is_removed_by_the_next(
    index: ElasticIndex, settings: IndexSettings, client: Elasticsearch
) -> None:
    put(index, chunk("a", "whale"))
    client.indices.create(index=f"{settings.prefix}-tenant-8-v2")
    client.indices.add_block(index=f"{settings.prefix}-tenant-8-v1", block="write")
    assert index.migrate(lambda line: None) == 0
    assert list(indexes(client, settings)) == ["tenant-8-v1"]
    sequence = put(index, chunk("b", "whale"))
    assert ids(index.search(ask("whale"), at_least=sequence)) == ["a", "b"]


def test_a_copy_that_a_killed_migration_left_running_is_waited_for(
    index: ElasticIndex, settings: IndexSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(index, chunk("a", "whale"))
    described = f"reindex from [{settings.prefix}-tenant-8-v1] to [{settings.prefix}-tenant-8-v2]"
    monkeypatch.setattr(es_migration, "_ask", lambda client, path: {"tasks": [{"description": described}]})
    with pytest.raises(Conflict, match="at work"):
        index.migrate(lambda line: None, force=True)
    assert index.count(SET) == 1


def test_a_switch_whose_answer_is_lost_is_a_switch(settings: IndexSettings, client: Elasticsearch) -> None:
    with meddling(settings.url) as meddler:
        index = ElasticIndex(settings.model_copy(update={"url": meddler.url}))
        put(index, *(chunk(f"c{n}", "whale") for n in range(10)))

        def lose_the_answer(heard: Heard, answer: Answer) -> Answer:
            if heard.path != "/_aliases":
                return answer
            return Answer(504, b'{"error": {"type": "timeout", "reason": "lost"}}', answer.headers)

        meddler.change = lose_the_answer
        with pytest.raises(IndexUnavailable, match="lost"):
            index.migrate(lambda line: None, force=True)
        assert indexes(client, settings) == {"tenant-8-v2": [f"{settings.prefix}-tenant-8"]}
        index.check()
        sequence = put(index, chunk("after", "whale"))
        assert len(index.search(ask("whale", axis(0)), at_least=sequence)) == 11
        index.close()
    remove_all(settings.url, settings.prefix)
