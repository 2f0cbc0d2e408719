"""Phrases in a question: the same outcome on every index, also on one that was made before positions were kept."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tantivy
from elasticsearch import Elasticsearch

from common.settings import IndexSettings
from rag.svr.indexer import Config, Indexer
from rag.utils import embedded_text, es_mapping, es_migration, es_search
from rag.utils.doc_index import DocIndex, Query
from rag.utils.embedded_folder import Folder, read_mark
from rag.utils.embedded_index import EmbeddedIndex
from rag.utils.es_index import ElasticIndex
from rag.utils.phrases import holds_all, quoted
from tests.elastic_indexes import elastic_index, elastic_settings, index_of_kind
from tests.indexes import DIMENSION, KINDS, ask, axis, chunk, ids, put

pytestmark = pytest.mark.timeout(900)

TEXTS = {
    "fox": "The quick brown fox jumps over the lazy dog",
    "turned": "A fox that is brown and quick jumped",
    "apart": "A quick and very brown fox",
    "dog": "The lazy dogs were sleeping, and the quick brown foxes with them",
    "han": "\u6211\u4eec\u67e5\u4e2d\u6587\u5b57\u5178\u3002",
    "han apart": "\u4e2d\u6587\u7684\u5b57\u5178\u548c\u6587\u5b57",
    "name": "Call foo_bar first, then v1.2.3 of it",
}
FOUND = {
    '"quick brown fox"': {"fox", "dog"},
    '"brown quick"': set(),
    '"brown and quick"': {"turned"},
    "\u201cquick brown\u201d": {"fox", "dog"},
    "\u00abquick brown\u00bb \u201elazy dog\u201c": {"fox", "dog"},
    '"quick brown" "foxes with them"': {"dog"},
    '"quick brown" "no such words"': set(),
    'lazy "fox"': {"fox", "turned", "apart", "dog"},
    'which "quick brown fox" is jumping': {"fox", "dog"},
    '"jumping over"': {"fox"},
    '"quikc brown"': set(),
    '"\u4e2d\u6587\u5b57\u5178"': {"han"},
    '"\u5b57\u5178"': {"han", "han apart"},
    '"foo_bar first"': {"name"},
    '"then v1.2.3"': {"name"},
    '"first foo"': set(),
}


def asked(question: str, **fields: object) -> Query:
    return ask(question, phrases=quoted(question), **fields)


def fill(index: DocIndex) -> int:
    return put(index, *(chunk(id_, text) for id_, text in TEXTS.items()), at=DIMENSION - 1)


def found(index: DocIndex, sequence: int) -> dict[str, set[str]]:
    return {question: set(ids(index.search(asked(question), at_least=sequence))) for question in FOUND}


@pytest.fixture(params=KINDS)
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DocIndex]:
    with index_of_kind(request, tmp_path / "index") as made:
        yield made


def test_only_chunks_with_every_phrase_are_answered(index: DocIndex) -> None:
    assert found(index, fill(index)) == FOUND


def test_an_unclosed_quote_asks_for_words(index: DocIndex) -> None:
    sequence = fill(index)
    with_sign = index.search(asked('"brown quick'), at_least=sequence)
    assert with_sign == index.search(asked("brown quick"), at_least=sequence)
    assert len(with_sign) == len(TEXTS)  # all are near


def test_a_phrase_chooses_and_words_rank(index: DocIndex) -> None:
    sequence = fill(index)
    loose = {hit.chunk.id: hit for hit in index.search(asked("quick brown fox lazy dog"), at_least=sequence)}
    strict = index.search(asked('"quick brown fox" lazy dog'), at_least=sequence)
    assert [hit.chunk.id for hit in strict] == ["fox", "dog"]
    assert strict == [loose["fox"], loose["dog"]]


def test_a_phrase_keeps_to_datasets_and_documents(index: DocIndex) -> None:
    put(index, chunk("a", "quick brown", dataset_id="other"), chunk("b", "quick brown", document_id="b"))
    sequence = put(index, chunk("c", "quick brown", document_id="c"))
    question = asked('"quick brown"')
    assert set(ids(index.search(question, at_least=sequence))) == {"b", "c"}
    assert ids(index.search(replace(question, dataset_ids=("other",)))) == ["a"]
    assert ids(index.search(replace(question, document_ids=("c",)))) == ["c"]


def test_of_many_chunks_with_a_phrase_the_nearest_is_first(index: DocIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its words alone would leave it last of them all, and others that are as near lack the phrase."""
    monkeypatch.setattr(es_search, "_FEW", 0)
    held = [chunk(f"held{n:03}", "quick brown", ordinal=n) for n in range(200)]
    near = [chunk(f"near{n:03}", "something else", ordinal=n) for n in range(200)]
    index.upsert(held + near, np.stack([axis(0)] * 200 + [axis(1)] * 200))
    sequence = put(index, chunk("wanted", "quick brown " + "and words " * 20), at=1)
    hits = index.search(asked('"quick brown"', vector=axis(1), vector_weight=0.9, limit=5), at_least=sequence)
    assert hits[0].chunk.id == "wanted"
    assert {hit.chunk.text for hit in hits[1:]} == {"quick brown"}


def test_random_phrases_are_found_as_they_stand(index: DocIndex) -> None:
    """Of few words, so that they come again and again, also next to themselves."""
    rng = np.random.default_rng(7)

    def words(most: int) -> str:
        return " ".join(rng.choice(["alpha", "beta", "gamma"], size=rng.integers(1, most)))

    made = [chunk(f"c{n}", words(9)) for n in range(60)]
    sequence = put(index, *made)
    counts = []
    for _ in range(40):
        question = f'"{words(5)}" and "{words(3)}"'
        expected = {one.id for one in made if holds_all(one.terms, quoted(question))}
        assert set(ids(index.search(asked(question), at_least=sequence))) == expected
        counts.append(len(expected))
    assert 0 in counts
    assert max(counts) > 10


# Made before positions were kept


@contextlib.contextmanager
def without_positions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The embedded index as version 1 made it."""

    def schema() -> tantivy.Schema:
        builder = tantivy.SchemaBuilder()
        builder.add_unsigned_field("row", indexed=True, fast=True)
        builder.add_unsigned_field("dataset", indexed=True)
        builder.add_text_field("document", tokenizer_name="raw", index_option="basic")
        builder.add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
        return builder.build()

    with monkeypatch.context() as older:
        older.setattr(embedded_text, "_schema", schema)
        older.setattr("rag.svr.indexer.VERSION", 1)
        yield


def step_through(indexer: Indexer) -> None:
    while indexer.run_once():
        pass


def test_an_embedded_index_without_positions_serves_until_it_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(tmp_path, heap_bytes=15_000_000)
    index = EmbeddedIndex(tmp_path, IndexSettings())
    with without_positions(monkeypatch):
        sequence = fill(index)
        older = Indexer(config)
        step_through(older)
        older.close()
    before = read_mark(Folder(tmp_path))
    assert before.version == 1
    assert found(index, sequence) == FOUND
    newer = Indexer(config)
    step_through(newer)
    newer.close()
    after = read_mark(Folder(tmp_path))
    assert (after.version, after.folder != before.folder) == (embedded_text.VERSION, True)
    assert found(index, sequence) == FOUND
    assert found(EmbeddedIndex(tmp_path, IndexSettings()), sequence) == FOUND
    index.close()


@pytest.fixture
def older_elastic(elasticsearch_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ElasticIndex]:
    """With an index that was made like the mapping without positions says."""
    monkeypatch.setattr(es_migration, "_LINGER_S", 0.2)
    body = json.loads(json.dumps(es_mapping._shipped()))
    body["mappings"]["properties"]["terms"]["index_options"] = "freqs"
    with elastic_index(elastic_settings(elasticsearch_url)) as made:
        with monkeypatch.context() as older:
            older.setattr(es_mapping, "_shipped", lambda: body)
            put(made, chunk("first"))
        yield made


def test_an_elasticsearch_index_without_positions_compares_and_migrates(
    older_elastic: ElasticIndex, elasticsearch_url: str
) -> None:
    sequence = fill(older_elastic)
    assert len(older_elastic.outdated()) == 1
    assert found(older_elastic, sequence) == FOUND
    assert older_elastic.migrate(lambda line: None) == 1
    assert older_elastic.outdated() == []
    assert found(older_elastic, sequence) == FOUND
    (place,) = older_elastic._places.of("tenant")
    with Elasticsearch(elasticsearch_url) as client:
        told = client.indices.get_mapping(index=place.index)[place.index]["mappings"]["properties"]["terms"]
    # Positions are what a text field has by itself, so Elasticsearch does not name them.
    assert told.get("index_options", "positions") == "positions"
