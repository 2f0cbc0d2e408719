"""What every document index promises: one suite that each implementation passes, with a real server if it needs one."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from common.errors import IndexUnavailable, InvalidInput
from common.settings import IndexSettings
from rag.utils import es_migration
from rag.utils.doc_index import Adoption, ChunkPlace, DocIndex, Scope, Tally, Vectors
from rag.utils.embedded_index import EmbeddedIndex
from rag.utils.es_index import ElasticIndex
from tests.elastic_indexes import index_of_kind
from tests.indexes import DIMENSION, KINDS, SET, ask, axis, chunk, ids, put
from tests.waiting import free_port

# The first test waits until the server is up, or even fetched.
pytestmark = pytest.mark.timeout(900)
WAIT_S = 20.0


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """No search of these tests takes long."""
    monkeypatch.setattr(es_migration, "_LINGER_S", 0.2)


@pytest.fixture(params=KINDS)
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DocIndex]:
    """An index that is kept up to date by whatever it needs for that."""
    with index_of_kind(request, tmp_path / "index") as made:
        yield made


def test_a_chunk_comes_back_as_it_was_written(index: DocIndex) -> None:
    written = chunk(
        "a",
        "Grüße \u4e2d\u6587 with a \0 in it",
        generation=3,
        task_no=2,
        claim_no=4,
        ordinal=7,
        page=9,
        kind="table",
        headings=("One", "Zwei"),
        positions=((9, 1, 2, 3, 4), (10, 5, 6, 7, 8)),
        available=False,
        created_ms=1_700_000_000_000,
    )
    put(index, written)
    assert index.get("tenant", ["a"]) == [written]
    assert index.list(SET, 0, 10).chunks == [written]


def test_places_are_told_in_reading_order_without_texts(index: DocIndex) -> None:
    box, over = (2, 1, 2, 3, 4), ((1, 5, 6, 7, 8), (2, 1, 2, 3, 4))
    put(
        index,
        chunk("c", page=2, task_no=1, positions=(box,)),
        chunk("a", page=1, task_no=0, positions=over),
        chunk("b", page=1, task_no=0, ordinal=1, claim_no=3),
        chunk("other", document_id="another"),
    )
    scope = replace(SET, document_id="doc", generation=1)
    assert list(index.places(scope)) == [
        ChunkPlace("a", 0, 1, 1, over),
        ChunkPlace("b", 0, 3, 1),
        ChunkPlace("c", 1, 1, 2, (box,)),
    ]
    assert list(index.places(replace(scope, dataset_id="nobody's"))) == []


def test_half_a_surrogate_pair_does_no_harm(index: DocIndex) -> None:
    sequence = put(index, msgspec.structs.replace(chunk("a", "broken \ud800 text"), headings=("\udfff",)))
    (found,) = index.get("tenant", ["a"])
    assert found.text == "broken ? text"
    assert ids(index.search(ask("broken"), at_least=sequence)) == ["a"]


def test_get_keeps_the_order_asked_for_and_leaves_out_the_unknown(index: DocIndex) -> None:
    put(index, chunk("a"), chunk("b"), chunk("c"))
    assert [found.id for found in index.get("tenant", ["c", "nobody", "a"])] == ["c", "a"]
    assert index.get("tenant", []) == []


def test_a_chunk_is_replaced_with_its_text_and_its_vector(index: DocIndex) -> None:
    put(index, chunk("a", "about whales"), at=0)
    sequence = put(index, chunk("a", "about tigers"), at=1)
    assert index.count(SET) == 1
    assert index.search(ask("whales", axis(0)), at_least=sequence) == []
    (hit,) = index.search(ask("tigers", axis(1)), at_least=sequence)
    assert hit.chunk.text == "about tigers"
    assert hit.vector_similarity == pytest.approx(1.0, abs=1e-3)
    assert hit.term_similarity > 0


def test_an_id_given_twice_in_one_write_is_there_once(index: DocIndex) -> None:
    put(index, chunk("a", "first"), chunk("b"), chunk("a", "second"))
    assert index.count(SET) == 2
    assert index.get("tenant", ["a"])[0].text == "second"


def test_a_chunk_can_move_to_another_dataset(index: DocIndex) -> None:
    put(index, chunk("a", "whale"))
    sequence = put(index, chunk("a", "whale", dataset_id="other"))
    assert index.count(SET) == 0
    assert index.search(ask("whale", axis(0)), at_least=sequence) == []
    assert ids(index.search(ask("whale", axis(0), dataset_ids=("other",)), at_least=sequence)) == ["a"]


def test_nothing_to_write_is_no_write(index: DocIndex) -> None:
    assert index.upsert([], np.zeros((0, DIMENSION), np.float32)) == 0
    assert index.delete(SET) == 0
    assert index.delete(Scope("tenant", "unknown")) == 0


def test_sequence_numbers_grow(index: DocIndex) -> None:
    first = put(index, chunk("a"))
    second = put(index, chunk("b"))
    third = index.delete(SET)
    assert 0 < first < second < third


@pytest.mark.parametrize(
    ("scope", "left"),
    [
        (Scope("tenant", "set"), ["other-set"]),
        (Scope("tenant", "set", "doc"), ["other-doc", "other-set"]),
        (Scope("tenant", "set", "doc", 1), ["gen-2", "other-doc", "other-set"]),
        (Scope("tenant", "set", "doc", 1, (0, 1)), ["claim-2", "gen-2", "other-doc", "other-set", "task-1"]),
        (Scope("tenant", "set", generation=2), ["a", "claim-2", "other-doc", "other-set", "task-1"]),
        (Scope("stranger", "set"), ["a", "claim-2", "gen-2", "other-doc", "other-set", "task-1"]),
    ],
)
def test_a_delete_takes_its_scope_and_nothing_else(index: DocIndex, scope: Scope, left: list[str]) -> None:
    sequence = put(
        index,
        chunk("a", "whale"),
        chunk("claim-2", "whale", claim_no=2),
        chunk("task-1", "whale", task_no=1),
        chunk("gen-2", "whale", generation=2),
        chunk("other-doc", "whale", document_id="doc2"),
        chunk("other-set", "whale", dataset_id="set2"),
    )
    everything = ask("whale", axis(0), dataset_ids=("set", "set2"))
    assert len(index.search(everything, at_least=sequence)) == 6
    expected = 6 - len(left)
    assert index.count(scope) == expected
    deleted = index.delete(scope)
    assert index.count(scope) == 0
    assert ids(index.search(everything, at_least=max(sequence, deleted))) == left
    assert [found.id for found in index.get("tenant", left)] == left


def test_a_deleted_dataset_can_be_filled_again_with_other_vectors(index: DocIndex) -> None:
    sequence = put(index, chunk("a", "whale"))
    assert len(index.search(ask("", axis(0)), at_least=sequence)) == 1
    sequence = index.delete(SET)
    assert index.search(ask("", axis(0)), at_least=sequence) == []
    sequence = index.upsert([chunk("b", "whale")], np.array([[0.6, 0.8]], np.float32))
    (hit,) = index.search(ask("", np.array([0.6, 0.8], np.float32)), at_least=sequence)
    assert hit.vector_similarity == pytest.approx(1.0, abs=1e-3)


def test_deleted_chunks_take_no_places_in_an_answer(index: DocIndex) -> None:
    put(index, *(chunk(f"gone{n:03}", "whale whale", document_id="gone") for n in range(300)), at=0)
    made = [chunk(f"kept{n}", "a whale and more words") for n in range(3)]
    written = index.upsert(made, np.stack([axis(0, 1)] * 3))
    by_vector, by_words = ask("", axis(0), limit=3), ask("whale", np.zeros(0, np.float32), limit=3)
    for query in (by_vector, by_words):
        assert all(id_.startswith("gone") for id_ in ids(index.search(query, at_least=written)))
    sequence = index.delete(Scope("tenant", "set", "gone"))
    for query in (by_vector, by_words):
        assert ids(index.search(query, at_least=sequence)) == ["kept0", "kept1", "kept2"]


def test_vectors_of_another_dimension_are_refused(index: DocIndex) -> None:
    put(index, chunk("a"))
    with pytest.raises(InvalidInput, match="8 numbers"):
        index.upsert([chunk("b")], np.ones((1, 3), np.float32))
    with pytest.raises(InvalidInput, match="3 numbers"):
        index.search(ask("", np.ones(3, np.float32)))
    assert index.count(SET) == 1


@pytest.mark.parametrize(
    "vectors", [np.ones((2, 8)), np.ones(8), np.ones((1, 0)), np.full((1, 8), np.nan), np.full((1, 8), np.inf)]
)
def test_vectors_that_do_not_fit_are_refused(index: DocIndex, vectors: Vectors) -> None:
    with pytest.raises(InvalidInput):
        index.upsert([chunk("a")], vectors.astype(np.float32))
    assert index.count(SET) == 0


def test_pages_of_a_list_are_stable_and_complete(index: DocIndex) -> None:
    order = [(1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0), (2, 0, 5), (3, 2, 0), (10, 0, 0)]
    made = [
        chunk(f"{'zyx'[n % 3]}{n}", page=page, task_no=task, ordinal=ordinal)
        for n, (page, task, ordinal) in enumerate(order)
    ]
    twins = [chunk("t2", page=4), chunk("t1", page=4)]
    put(index, *reversed(made), *twins)
    expected = [made[n].id for n in range(6)] + ["t1", "t2", made[6].id]
    pages = [index.list(SET, offset, 2) for offset in range(0, 10, 2)]
    assert [found.id for page in pages for found in page.chunks] == expected
    assert {page.total for page in pages} == {9}
    assert index.list(SET, 50, 10).chunks == []
    assert index.list(Scope("tenant", "unknown"), 0, 10).total == 0


def test_scores_are_parts_of_one_and_in_order(index: DocIndex) -> None:
    words = ["whale", "tiger", "ocean", "forest", "night"]
    made = [chunk(f"c{n:02}", " ".join(words[: 1 + n % 5]) + f" filler{n}") for n in range(40)]
    rng = np.random.default_rng(7)
    sequence = index.upsert(made, rng.normal(size=(40, DIMENSION)).astype(np.float32))
    hits = index.search(ask("whale ocean night", axis(0, 1), vector_weight=0.4), at_least=sequence)
    assert len(hits) == 40
    for hit in hits:
        assert 0 <= hit.term_similarity <= 1
        assert 0 <= hit.vector_similarity <= 1
        assert hit.similarity == pytest.approx(0.6 * hit.term_similarity + 0.4 * hit.vector_similarity)
    assert hits == sorted(hits, key=lambda hit: (-hit.similarity, hit.chunk.id))
    assert index.search(ask("whale ocean night", axis(0, 1), vector_weight=0.4, limit=7)) == hits[:7]


def test_vector_similarity_is_the_cosine(index: DocIndex) -> None:
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(30, DIMENSION)).astype(np.float32) * 5
    sequence = index.upsert([chunk(f"c{n}") for n in range(30)], vectors)
    question = vectors[4] / np.linalg.norm(vectors[4])
    hits = index.search(ask("", question, vector_weight=1.0), at_least=sequence)
    cosines = vectors @ question / np.linalg.norm(vectors, axis=1)
    for hit in hits:
        assert hit.vector_similarity == pytest.approx(cosines[int(hit.chunk.id[1:])], abs=2e-3)
    assert hits[0].chunk.id == "c4"
    assert len(hits) == int((cosines > 0).sum())


def test_rare_words_and_more_words_score_higher(index: DocIndex) -> None:
    common = [chunk(f"n{n:03}", f"report number{n}") for n in range(50)]
    sequence = put(index, *common, chunk("rare", "report zeppelin"), chunk("odd", "zeppelin museum"))
    hits = index.search(ask("report zeppelin", vector_weight=0.0), at_least=sequence)
    assert ids(hits)[:2] == ["rare", "odd"]
    assert hits[0].term_similarity > hits[1].term_similarity > hits[2].term_similarity > 0


def test_both_scores_are_there_whichever_half_found_a_chunk(index: DocIndex) -> None:
    near = [chunk(f"near{n:03}", "whale") for n in range(200)]
    far = [chunk(f"far{n:03}", "whale whale whale song") for n in range(200)]
    put(index, *near, at=0)
    sequence = put(index, *far, at=1)
    hits = index.search(ask("whale song", axis(0), limit=400), at_least=sequence)
    assert len(hits) == 400
    for hit in hits:
        assert hit.term_similarity > 0
        expected = 1.0 if hit.chunk.id.startswith("near") else 0.0
        assert hit.vector_similarity == pytest.approx(expected, abs=1e-3)
    few = index.search(ask("whale song", axis(0), limit=5, vector_weight=0.9), at_least=sequence)
    assert ids(few) == [f"near{n:03}" for n in range(5)]
    assert all(hit.term_similarity > 0 for hit in few)


def test_a_search_keeps_to_the_documents_asked_for(index: DocIndex) -> None:
    made = [chunk(f"c{n}", "whale", document_id=f"doc{n % 3}") for n in range(9)]
    sequence = put(index, *made)
    query = ask("whale", axis(0), document_ids=("doc1", "doc9"))
    assert ids(index.search(query, at_least=sequence)) == ["c1", "c4", "c7"]
    assert index.search(ask("whale", axis(0), document_ids=("doc9",)), at_least=sequence) == []
    assert index.search(ask("whale", axis(0), document_ids=()), at_least=sequence) == []


def test_tenants_and_datasets_are_kept_apart(index: DocIndex) -> None:
    put(index, chunk("a", "whale mine"))
    put(index, chunk("b", "whale mine too", dataset_id="second"))
    sequence = put(index, chunk("a", "whale theirs", tenant_id="stranger"))
    assert [found.text for found in index.get("tenant", ["a"])] == ["whale mine"]
    assert [found.text for found in index.get("stranger", ["a", "b"])] == ["whale theirs"]
    assert ids(index.search(ask("whale", axis(0)), at_least=sequence)) == ["a"]
    both = index.search(ask("whale", axis(0), dataset_ids=("second", "set", "set")), at_least=sequence)
    assert sorted(ids(both)) == ["a", "b"]
    theirs = index.search(ask("whale", axis(0), tenant_id="stranger"), at_least=sequence)
    assert [hit.chunk.text for hit in theirs] == ["whale theirs"]
    index.delete(Scope("stranger", "set"))
    assert index.count(SET) == 1


def test_empty_questions_and_unknown_datasets_find_nothing(index: DocIndex) -> None:
    nothing = np.zeros(0, np.float32)
    assert index.search(ask("whale", dataset_ids=("never",))) == []
    assert index.search(ask("whale", dataset_ids=())) == []
    sequence = put(index, chunk("a", "whale"))
    assert index.search(ask("", nothing), at_least=sequence) == []
    assert index.search(ask("unheard of words"), at_least=sequence) == []
    assert index.search(ask("whale", limit=0), at_least=sequence) == []
    assert ids(index.search(ask("whale", nothing), at_least=sequence)) == ["a"]


def test_every_write_is_findable_when_it_says_so(index: DocIndex) -> None:
    assert index.wait_findable("tenant", 0, 0.0)
    for n in range(10):
        sequence = put(index, chunk(f"c{n}", f"serial{n}"), at=n % DIMENSION)
        assert index.wait_findable("tenant", sequence, WAIT_S)
        assert ids(index.search(ask(f"serial{n}", vector_weight=0.0))) == [f"c{n}"]


def test_a_healthy_index_says_so_and_a_closed_one_does_not(index: DocIndex) -> None:
    index.check()
    index.close()
    with pytest.raises(IndexUnavailable):
        index.check()
    with pytest.raises(IndexUnavailable):
        index.count(SET)


def test_many_threads_write_and_search(index: DocIndex) -> None:
    errors: list[Exception] = []

    def work(number: int) -> None:
        try:
            for n in range(6):
                name = f"t{number}n{n}"
                sequence = put(index, chunk(name, f"word{name}"), at=number % DIMENSION)
                found = index.search(ask(f"word{name}", vector_weight=0.0), at_least=sequence)
                assert ids(found) == [name]
        except Exception as exc:  # noqa: BLE001  handed to the test's own thread
            errors.append(exc)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert errors == []
    assert index.count(SET) == 96


def test_random_writes_and_deletes_leave_what_a_dict_would(index: DocIndex) -> None:
    rng = np.random.default_rng(zlib.crc32(b"random writes"))
    model: dict[str, tuple[str, int]] = {}
    sequence = 0
    for step in range(60):
        if step % 7 == 6:
            document = f"doc{rng.integers(4)}"
            sequence = max(sequence, index.delete(Scope("tenant", "set", document)))
            model = {key: value for key, value in model.items() if value[0] != document}
        else:
            place = int(rng.integers(DIMENSION))
            chosen = {f"c{n}": f"doc{rng.integers(4)}" for n in rng.integers(0, 30, 5)}
            made = [chunk(id_, f"whale step{step}", document_id=document) for id_, document in chosen.items()]
            sequence = put(index, *made, at=place)
            model |= {id_: (document, place) for id_, document in chosen.items()}
        if step % 5 == 0:
            for place in range(DIMENSION):
                hits = index.search(ask("whale", axis(place), vector_weight=1.0), at_least=sequence)
                assert sorted(ids(hits)) == sorted(key for key, value in model.items() if value[1] == place)
    assert index.count(SET) == len(model)
    found = index.search(ask("whale", vector_weight=0.0), at_least=sequence)
    assert sorted(ids(found)) == sorted(model)


def test_a_write_of_many_chunks_is_there_as_a_whole(index: DocIndex) -> None:
    made = [chunk(f"c{n:04}", f"whale number{n}", ordinal=n) for n in range(1300)]
    sequence = put(index, *made)
    assert index.count(SET) == 1300
    found, vectors = index.read_all(SET)
    assert found == made
    assert vectors.shape == (1300, DIMENSION)
    assert index.wait_findable("tenant", sequence, WAIT_S)
    assert ids(index.search(ask("number1234", vector_weight=0.0))) == ["c1234"]


def test_everything_of_a_scope_comes_with_its_vectors_in_order(index: DocIndex) -> None:
    order = [(2, 0), (0, 1), (1, 0), (0, 0), (0, 10)]
    made = [chunk(f"c{n}", task_no=task, ordinal=ordinal) for n, (task, ordinal) in enumerate(order)]
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(5, DIMENSION)).astype(np.float32)
    index.upsert(made, vectors)
    put(index, chunk("other", document_id="doc2"), chunk("older", generation=0))
    found, read = index.read_all(Scope("tenant", "set", "doc", 1))
    assert [one.id for one in found] == ["c3", "c1", "c4", "c2", "c0"]
    expected = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.allclose(read, expected[[3, 1, 4, 2, 0]], atol=1e-3)
    assert index.read_all(Scope("tenant", "set", "doc", 1, (0, 1)))[0] == [made[3], made[1], made[4]]
    nothing, empty = index.read_all(Scope("tenant", "set", "nobody"))
    assert nothing == []
    assert len(empty) == 0


def test_what_was_read_can_be_written_again_elsewhere(index: DocIndex) -> None:
    rng = np.random.default_rng(6)
    index.upsert([chunk(f"c{n}", f"whale{n}", ordinal=n) for n in range(5)], rng.normal(size=(5, DIMENSION)))
    found, vectors = index.read_all(SET)
    copies = [msgspec.structs.replace(one, id=f"copy-{one.id}", dataset_id="copy") for one in found]
    sequence = index.upsert(copies, vectors)
    again, same = index.read_all(Scope("tenant", "copy"))
    assert again == copies
    assert np.allclose(same, vectors, atol=1e-3)
    assert ids(index.search(ask("", vectors[3], dataset_ids=("copy",), limit=1), at_least=sequence)) == ["copy-c3"]


def test_a_document_gets_the_chunks_of_another_at_once_or_is_told_that_it_does_not(index: DocIndex) -> None:
    rng = np.random.default_rng(7)
    vectors = rng.normal(size=(5, DIMENSION)).astype(np.float32)
    written = index.upsert([chunk(f"c{n}", f"whale{n} and more", ordinal=n, page=n) for n in range(5)], vectors)
    assert index.wait_findable("tenant", written, WAIT_S)
    source = Scope("tenant", "set", "doc", 1)
    claims = {(tally.task_no, tally.claim_no): tally.count for tally in index.tally(source)}
    asked = Adoption(source, claims, written, "copy", "doc2", 4, 7, 99)
    target = Scope("tenant", "copy")
    refused = [
        replace(asked, claims={(0, 1): 4}),
        replace(asked, claims={}),
        replace(asked, source=Scope("tenant", "set", "doc", 2)),
        replace(asked, source=Scope("tenant", "nowhere", "doc", 1)),
        replace(asked, source=Scope("stranger", "set", "doc", 1)),
    ]
    assert [index.adopt(one) for one in refused] == [False] * 5
    assert index.count(target) == 0
    assert index.adopt(asked) is index.adopts
    if not index.adopts:
        assert index.count(target) == 0
        return
    assert not index.adopt(asked), "twice"
    assert [each.scope for each in index.adopted(0)] == [Scope("tenant", "copy", "doc2", 4)]
    assert index.adopted(60_000) == []
    index.confirm_adopted(index.adopted(0))
    assert index.adopted(0) == []
    index.make_adopted_durable()
    question = ask("whale3", vectors[1], dataset_ids=("copy",), vector_weight=0.0)
    (hit,) = index.search(question, at_least=written)
    assert (hit.chunk.text, hit.chunk.document_id, hit.chunk.dataset_id) == ("whale3 and more", "doc2", "copy")
    found, same = index.read_all(target)
    original, as_before = index.read_all(source)
    assert np.array_equal(same, as_before)
    assert [(c.text, c.page, c.ordinal, c.task_no) for c in found] == [
        (c.text, c.page, c.ordinal, c.task_no) for c in original
    ]
    assert {(c.generation, c.claim_no, c.created_ms, c.available) for c in found} == {(4, 7, 99, True)}
    assert len({c.id for c in (*found, *original)}) == 10
    assert not index.adopt(asked), "though it is made by now"
    index.delete(source)
    assert index.get("tenant", [found[0].id]) == found[:1]
    assert ids(index.search(question)) == [hit.chunk.id]


def test_a_chunk_whose_vector_is_zero_is_found_by_its_words(index: DocIndex) -> None:
    nowhere = np.zeros((1, DIMENSION), np.float32)
    index.upsert([chunk("nowhere", "whale song")], nowhere)
    sequence = put(index, chunk("somewhere", "whale tale"), at=0)
    hits = {hit.chunk.id: hit for hit in index.search(ask("whale", axis(0)), at_least=sequence)}
    assert hits["nowhere"].vector_similarity == 0
    assert hits["nowhere"].term_similarity > 0
    assert hits["somewhere"].vector_similarity == pytest.approx(1, abs=1e-3)
    found, vectors = index.read_all(SET)
    assert not vectors[[one.id for one in found].index("nowhere")].any()


def test_a_question_whose_vector_is_zero_goes_by_its_words(index: DocIndex) -> None:
    sequence = put(index, chunk("a", "whale"), chunk("b", "tiger"))
    nowhere = np.zeros(DIMENSION, np.float32)
    (hit,) = index.search(ask("whale", nowhere, vector_weight=0.3), at_least=sequence)
    assert (hit.chunk.id, hit.vector_similarity) == ("a", 0)
    assert index.search(ask("", nowhere), at_least=sequence) == []


def test_a_word_that_nothing_holds_lowers_the_score(index: DocIndex) -> None:
    sequence = put(index, chunk("a", "whale song"), chunk("b", "tiger"))
    (both,) = index.search(ask("whale song", vector_weight=0.0), at_least=sequence)
    (one,) = index.search(ask("whale zeppelin", vector_weight=0.0), at_least=sequence)
    assert 0 < one.term_similarity < both.term_similarity <= 1


def test_a_mistyped_word_finds_what_was_meant(index: DocIndex) -> None:
    made = [chunk(f"c{n}", text) for n, text in enumerate(("zeppelin museum", "zeppelin", "zealous people", "whale"))]
    sequence = put(index, *made)
    right = index.search(ask("zeppelin museum", vector_weight=0.0), at_least=sequence)
    for mistyped in ("zepelin museum", "zeppleinn museum", "zeppelin muzeum"):
        assert index.search(ask(mistyped, vector_weight=0.0), at_least=sequence) == right
    assert index.search(ask("seppelin zzzppelin wh", vector_weight=0.0), at_least=sequence) == []


def test_words_given_twice_count_once(index: DocIndex) -> None:
    sequence = put(index, chunk("a", "whale song"), chunk("b", "whale"))
    once = index.search(ask("whale song"), at_least=sequence)
    assert index.search(ask("whale whale song whale"), at_least=sequence) == once


def test_a_list_keeps_to_its_scope(index: DocIndex) -> None:
    put(
        index,
        chunk("a", page=2),
        chunk("b", page=1),
        chunk("older", generation=0),
        chunk("other", document_id="doc2"),
        chunk("lost", claim_no=2),
    )
    listed = index.list(Scope("tenant", "set", "doc", 1), 0, 10)
    assert (listed.total, [one.id for one in listed.chunks]) == (3, ["b", "lost", "a"])
    listed = index.list(Scope("tenant", "set", "doc", 1, (0, 1)), 1, 10)
    assert (listed.total, [one.id for one in listed.chunks]) == (2, ["a"])
    assert index.list(SET, 0, 0).total == 5
    assert index.list(SET, 2**62, 10).chunks == []


def test_what_is_there_is_told_by_claim(index: DocIndex) -> None:
    assert list(index.tally()) == []
    put(
        index,
        chunk("a"),
        chunk("b", ordinal=1),
        chunk("c", claim_no=2),
        chunk("d", task_no=-2, generation=2),
        chunk("e", document_id="doc2", dataset_id="set2"),
    )
    put(index, chunk("f", tenant_id="stranger"))
    expected = {
        Tally("tenant", "set", "doc", 1, 0, 1, 2),
        Tally("tenant", "set", "doc", 1, 0, 2, 1),
        Tally("tenant", "set", "doc", 2, -2, 1, 1),
        Tally("tenant", "set2", "doc2", 1, 0, 1, 1),
        Tally("stranger", "set", "doc", 1, 0, 1, 1),
    }
    assert set(index.tally()) == expected
    assert set(index.tally(Scope("tenant", "set", "doc", 1))) == {one for one in expected if one.count == 2} | {
        Tally("tenant", "set", "doc", 1, 0, 2, 1)
    }
    assert set(index.tally(Scope("tenant", "never"))) == set()
    index.delete(SET)
    assert {one.document_id for one in index.tally() if one.tenant_id == "tenant"} == {"doc2"}


def test_one_write_is_for_one_tenant(index: DocIndex) -> None:
    with pytest.raises(InvalidInput, match="several tenants"):
        put(index, chunk("a"), chunk("b", tenant_id="stranger"))
    assert list(index.tally()) == []


def test_nothing_changes_where_nothing_has_to_be_migrated(index: DocIndex) -> None:
    said: list[str] = []
    assert index.migrate(said.append) == 0
    put(index, chunk("a", "whale"))
    assert index.migrate(said.append) == 0
    assert said == []
    assert index.count(SET) == 1


def test_what_is_made_anew_finds_as_before(index: DocIndex) -> None:
    sequence = put(index, *(chunk(f"c{n}", f"whale number{n}") for n in range(20)))
    assert index.wait_findable("tenant", sequence, WAIT_S)
    before = index.search(ask("whale number7"), at_least=sequence)
    said: list[str] = []
    assert index.migrate(said.append, force=True) == 1
    assert said
    after = index.search(ask("whale number7"), at_least=sequence)
    assert [hit.chunk for hit in after] == [hit.chunk for hit in before]
    # Words of deleted chunks count until they are merged away, and not in what is made anew.
    for then, now in zip(before, after, strict=True):
        assert now.similarity == pytest.approx(then.similarity, abs=0.1)
    sequence = put(index, chunk("c7", "tiger"))
    assert ids(index.search(ask("tiger", vector_weight=0.0), at_least=sequence)) == ["c7"]


@pytest.fixture(params=KINDS)
def broken(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DocIndex]:
    """One that can't be used: a file stands where its folder should be, or nobody listens."""
    made: DocIndex
    if request.param == "embedded":
        (tmp_path / "index").write_text("in the way")
        made = EmbeddedIndex(tmp_path / "index", IndexSettings())
    else:
        made = ElasticIndex(IndexSettings(url=f"http://127.0.0.1:{free_port()}"))
    yield made
    made.close()


def test_an_outage_is_never_an_empty_answer(broken: DocIndex) -> None:
    actions = (
        broken.check,
        lambda: put(broken, chunk("a")),
        lambda: broken.delete(SET),
        lambda: broken.get("tenant", ["a"]),
        lambda: broken.read_all(SET),
        lambda: broken.count(SET),
        lambda: broken.list(SET, 0, 10),
        lambda: broken.search(ask("whale")),
        lambda: broken.wait_findable("tenant", 1, 0.01),
        lambda: list(broken.tally()),
        lambda: broken.migrate(print, force=True),
    )
    for action in actions:
        with pytest.raises(IndexUnavailable) as caught:
            action()
        assert caught.value.retryable
