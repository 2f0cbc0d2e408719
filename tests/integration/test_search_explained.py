"""Why a hit stands where it does: what each word brought it, the same on every index, and what REST and its readers
are told of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag.utils.doc_index import DocIndex, Hit, WordScore
from tests.elastic_indexes import elastic_index, elastic_settings
from tests.indexes import KINDS, ask, chunk, embedded_index, put
from tests.rest_world import RestWorld

pytestmark = pytest.mark.timeout(900)
TEXTS = ("whale song of the deep", "whale whale tale", "a song for a tiger", "nothing of it")


@pytest.fixture(params=KINDS)
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DocIndex]:
    """Nothing was ever in it: chunks that are deleted count for a while in how many hold a word."""
    if request.param == "embedded":
        with embedded_index(tmp_path / "index") as embedded:
            yield embedded
    else:
        with elastic_index(elastic_settings(request.getfixturevalue("elasticsearch_url"))) as elastic:
            yield elastic


def fill(index: DocIndex) -> int:
    return put(index, *(chunk(f"c{n}", text) for n, text in enumerate(TEXTS)))


def words_of(hit: Hit) -> dict[str, WordScore]:
    return {word.word: word for word in hit.words}


def test_the_parts_of_the_words_make_the_term_similarity(index: DocIndex) -> None:
    query = ask("whale song zebra", vector_weight=0.3)
    sequence = fill(index)
    plain = index.search(query, at_least=sequence)
    told = index.search(replace(query, explain=True))
    assert [replace(hit, words=()) for hit in told] == plain
    assert all(hit.words == () for hit in plain)
    for hit in told:
        words = words_of(hit)
        assert list(words) == ["whale", "song", "zebra"]
        assert sum(word.part for word in words.values()) == pytest.approx(hit.term_similarity, abs=1e-6)
        assert [words[name].chunks for name in words] == [2, 2, 0]
        assert sum(word.highest for word in words.values()) == pytest.approx(1.0)
        for word in words.values():
            assert (word.part > 0) == (word.word in hit.chunk.terms.split())
            assert word.part <= word.highest


def test_a_mistyped_word_tells_what_it_was_taken_for(index: DocIndex) -> None:
    query = ask("whlae tiger", vector_weight=0.0, explain=True)
    hits = {hit.chunk.id: words_of(hit) for hit in index.search(query, at_least=fill(index))}
    assert (hits["c1"]["whlae"].meant, hits["c1"]["tiger"].meant) == ("whale", "tiger")
    assert hits["c1"]["whlae"].part > 0
    assert hits["c2"]["whlae"].part == 0


def test_words_of_any_signs_are_told(index: DocIndex) -> None:
    sequence = put(index, chunk("c", "c++ \u4e2d\u6587 foo_bar v1.2.3"), chunk("d", "other"))
    (hit,) = index.search(ask("c++ \u4e2d\u6587 foo_bar v1.2.3", vector_weight=0.0, explain=True), at_least=sequence)
    assert [word.word for word in hit.words if word.part] == ["c++", "\u4e2d\u6587", "foo_bar", "foo", "bar", "v1.2.3"]


def test_the_same_is_told_on_every_index(elasticsearch_url: str, tmp_path: Path) -> None:
    query = ask("whlae song zebra", explain=True)
    with embedded_index(tmp_path) as ours, elastic_index(elastic_settings(elasticsearch_url)) as theirs:
        hits, others = (one.search(query, at_least=fill(one)) for one in (ours, theirs))
    assert [hit.chunk.id for hit in hits] == [hit.chunk.id for hit in others]
    for hit, other in zip(hits, others, strict=True):
        for word, same in zip(hit.words, other.words, strict=True):
            assert (word.word, word.meant, word.chunks) == (same.word, same.meant, same.chunks)
            assert word.highest == pytest.approx(same.highest, abs=1e-6)
            assert word.part == pytest.approx(same.part, abs=1e-4)


# Over REST

RIVERS = ["The river Danube flows through Vienna.", "The Rhine flows through Basel and Cologne."]
BREAD = ["Bread is baked from flour, water and yeast."]


@pytest.fixture
def dataset_id(world: RestWorld) -> str:
    made = world.dataset()
    world.ingest(made, world.document(made, "rivers of europe.txt"), RIVERS, BREAD)
    return made


def asked(world: RestWorld, dataset_id: str, question: str, **fields: Any) -> Any:
    body = {"dataset_ids": [dataset_id], "question": question, "similarity_threshold": 0.0, "explain": True} | fields
    return world.ok("POST", "/retrieval", json=body)


def test_each_hit_is_explained(world: RestWorld, dataset_id: str) -> None:
    answer = asked(world, dataset_id, "Which river flows to Viena in europe?")
    question = answer["explain"]
    told = {word["word"]: word for word in question["words"]}
    assert list(told) == ["which", "river", "flow", "to", "viena", "in", "europ"]
    assert (told["viena"]["searched_as"], told["viena"]["mistyped"]) == ("vienna", True)
    assert (told["flow"]["chunks"], told["river"]["chunks"], told["which"]["chunks"]) == (2, 1, 0)
    assert (question["phrases"], question["vector_similarity_weight"]) == ([], 0.3)
    best = answer["chunks"][0]
    assert best["content"] == RIVERS[0]
    words = {word["word"]: word for word in best["explain"]["words"]}
    assert words["river"]["found_in"] == ["text", "file name"]
    assert words["viena"]["found_in"] == ["text"]
    assert (words["europ"]["found_in"], words["europ"]["part"]) == (["file name"], 0)
    assert words["to"]["found_in"] == []
    assert sum(word["share"] for word in words.values()) == pytest.approx(1.0, abs=1e-3)
    assert sum(word["part"] for word in words.values()) == pytest.approx(best["term_similarity"], abs=1e-3)
    assert best["explain"]["cosine"] == pytest.approx(best["vector_similarity"], abs=1e-3)
    assert best["explain"]["rerank_score"] is None


def test_ranks_by_either_half_alone(world: RestWorld, dataset_id: str) -> None:
    explained = asked(world, dataset_id, "Danube flows")["chunks"]
    for weight, name in ((0.0, "rank_by_words"), (1.0, "rank_by_vectors")):
        alone = asked(world, dataset_id, "Danube flows", vector_similarity_weight=weight, explain=False)["chunks"]
        places = {found["id"]: place for place, found in enumerate(alone, 1)}
        assert {one["id"]: one["explain"][name] for one in explained} == {
            one["id"]: places.get(one["id"]) for one in explained
        }
    assert explained[-1]["explain"]["rank_by_words"] is None  # it holds none of the words


def test_what_the_threshold_left_out_is_told(world: RestWorld, dataset_id: str) -> None:
    everything = asked(world, dataset_id, "Danube flows")["chunks"]
    best = everything[0]["similarity"]
    answer = asked(world, dataset_id, "Danube flows", similarity_threshold=best)
    assert [found["id"] for found in answer["chunks"]] == [everything[0]["id"]]
    told = answer["explain"]
    assert (told["similarity_threshold"], told["left_out_count"]) == (best, 2)
    assert [one["id"] for one in told["left_out"]] == [found["id"] for found in everything[1:]]
    assert {one["document"] for one in told["left_out"]} == {"rivers of europe.txt"}


def test_a_phrase_is_told_also_where_nothing_has_it(world: RestWorld, dataset_id: str) -> None:
    some = asked(world, dataset_id, '"flows through Basel"')
    assert [found["content"] for found in some["chunks"]] == [RIVERS[1]]
    assert some["explain"]["phrases"] == [["flow", "through", "basel"]]
    none = asked(world, dataset_id, '"Basel through flows"')
    assert (none["chunks"], none["total"]) == ([], 0)
    assert none["explain"]["phrases"] == [["basel", "through", "flow"]]
    assert [(word["word"], word["chunks"]) for word in none["explain"]["words"]] == [
        ("basel", 1), ("through", 2), ("flow", 2),
    ]  # fmt: skip


def test_it_is_told_only_where_it_is_asked_for(world: RestWorld, dataset_id: str) -> None:
    answer = asked(world, dataset_id, "river", explain=False)
    assert set(answer) == {"total", "chunks", "doc_aggs"}
    assert all("explain" not in found for found in answer["chunks"])
    refused = world.refused("POST", "/retrieval", json={"dataset_ids": [dataset_id], "question": "x", "explain": "yes"})
    assert refused == (102, "`explain` should be a boolean")


def test_an_empty_dataset_explains_the_question(world: RestWorld) -> None:
    answer = asked(world, world.dataset("empty"), "river Danube")
    assert answer["chunks"] == []
    assert [word["word"] for word in answer["explain"]["words"]] == ["river", "danub"]
