"""A first parse of what another document was made of already ends at once; then neither knows of the other."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from api.db.models import Document, StaleChunks, Task, TaskEvent
from api.db.services.copied_parse import CopiedParse
from api.db.services.index_audit import AuditService
from api.db.services.stale_service import StaleService
from api.db.services.tally_service import TallyService
from api.db.services.task_plan import ModelTraits
from common.errors import InvalidInput, RowsUnavailable
from common.settings import IndexSettings, TaskSettings
from common.task_state import DocumentRun, TaskState
from rag.utils import embedded_copies
from rag.utils.doc_index import Adoption, Scope
from rag.utils.embedded_index import EmbeddedIndex
from tests.at_once import at_once
from tests.rest_world import RestWorld, embedder

_TEXTS = ("the miller weighs alpha beta by its sound", "gamma delta in a blue vat")


@pytest.fixture
def source(world: RestWorld) -> tuple[str, str]:
    """A document that was parsed, with the digests of today."""
    dataset_id = world.dataset("first")
    document_id = world.document(dataset_id, "a.txt")
    world.parse_twice(dataset_id, document_id, _TEXTS)
    return dataset_id, document_id


@pytest.fixture
def other(world: RestWorld, source: tuple[str, str]) -> tuple[str, str]:
    """The same file in another dataset, not parsed yet."""
    dataset_id = world.dataset("other")
    return dataset_id, world.document(dataset_id, "b.txt")


def listed(world: RestWorld, dataset_id: str, document_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.ok("GET", f"/datasets/{dataset_id}/documents/{document_id}/chunks")["chunks"]
    return found


def found(world: RestWorld, dataset_id: str, question: str, **more: Any) -> list[dict[str, Any]]:
    asked = {"dataset_ids": [dataset_id], "question": question, "similarity_threshold": 0.0, **more}
    chunks: list[dict[str, Any]] = world.ok("POST", "/retrieval", json=asked)["chunks"]
    return chunks


def copying(world: RestWorld) -> CopiedParse:
    return CopiedParse(world.rows, world.index, TaskSettings(), ModelTraits.of(embedder()))


def test_it_is_done_at_once_and_found_though_no_indexer_runs(world: RestWorld, other: tuple[str, str]) -> None:
    dataset_id, document_id = other
    before_it = TallyService(world.rows).total()
    assert world.parse(dataset_id, document_id) == "DONE"
    counted = TallyService(world.rows).total()
    assert (counted.reused - before_it.reused, counted.chunks - before_it.chunks) == (1, 2)
    row = world.row(document_id)
    assert (row.chunk_count, row.token_count, row.generation, row.active_generation) == (2, 14, 1, 1)
    assert world.ok("GET", f"/datasets?id={dataset_id}")[0]["chunk_count"] == 2
    assert "1 of 1 task reused" in world.shown(dataset_id, document_id)["progress_msg"]
    assert [task.state for task in Task.select().where(Task.doc_id == document_id)] == [TaskState.DONE]
    assert TaskEvent.select().where(TaskEvent.doc_id == document_id, TaskEvent.kind == "copied").count() == 1
    assert StaleChunks.select().where(StaleChunks.doc_id == document_id).count() == 0
    assert [chunk["content"] for chunk in listed(world, *other)] == list(_TEXTS)
    for question in ("miller", '"weighs alpha"', "beta"):
        (best, *_) = found(world, dataset_id, question)
        assert (best["document_id"], best["content"]) == (document_id, _TEXTS[0])
        assert best["term_similarity"] > 0
    assert found(world, dataset_id, '"alpha weighs"') == []
    before = [(hit["id"], hit["term_similarity"]) for hit in found(world, dataset_id, "miller vat")]
    world.catch_up()
    after = [(hit["id"], hit["term_similarity"]) for hit in found(world, dataset_id, "miller vat")]
    assert [place for place, _ in before] == [place for place, _ in after]
    assert all(score > 0 for _, score in before + after)


def test_each_has_ids_and_an_answer_of_its_own(
    world: RestWorld, source: tuple[str, str], other: tuple[str, str]
) -> None:
    world.parse(*other)
    ours, theirs = ({chunk["id"] for chunk in listed(world, *place)} for place in (source, other))
    assert not ours & theirs
    both = world.ok(
        "POST", "/retrieval", json={"dataset_ids": [source[0], other[0]], "question": "miller", "highlight": True}
    )
    assert {hit["document_id"] for hit in both["chunks"][:2]} == {source[1], other[1]}
    assert len({hit["term_similarity"] for hit in both["chunks"][:2]}) == 1
    only = found(world, other[0], "miller", document_ids=[other[1]])
    assert {hit["document_id"] for hit in only} == {other[1]}
    assert world.parse(*other) == "DONE"  # unchanged
    assert world.row(other[1]).generation == 1


@pytest.mark.parametrize("first", ["source", "copy"])
@pytest.mark.parametrize("indexed", [False, True])
def test_deleting_either_leaves_the_other(
    world: RestWorld, source: tuple[str, str], other: tuple[str, str], indexed: bool, first: str
) -> None:
    world.parse(*other)
    if indexed:
        world.catch_up()
    gone, left = (source, other) if first == "source" else (other, source)
    world.ok("DELETE", f"/datasets/{gone[0]}/documents", json={"ids": [gone[1]]})
    world.index.delete(Scope(world.caller.tenant_id, gone[0], gone[1]))  # as the sweeper does
    assert [chunk["content"] for chunk in listed(world, *left)] == list(_TEXTS)
    for _ in range(2):
        assert found(world, gone[0], "miller") == []
        best = found(world, left[0], "miller")[0]
        assert (best["content"], best["document_id"]) == (_TEXTS[0], left[1])
        assert best["term_similarity"] > 0
        world.catch_up()
    assert {tally.document_id for tally in world.index.tally()} == {left[1]}


def test_an_edit_of_either_leaves_the_other(world: RestWorld, source: tuple[str, str], other: tuple[str, str]) -> None:
    world.parse(*other)
    for mine, theirs, word in ((source, other, "omega"), (other, source, "sigma")):
        path = f"/datasets/{mine[0]}/documents/{mine[1]}/chunks/{listed(world, *mine)[0]['id']}"
        world.ok("PUT", path, json={"content": f"{word} instead"})
        world.catch_up()
        assert found(world, mine[0], word)[0]["content"] == f"{word} instead"
        assert all(word not in chunk["content"] for chunk in listed(world, *theirs))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE task SET digest = ''",
        "UPDATE document SET failed_pages = 1",
        "UPDATE document SET run = 2 WHERE run = 3",
        "DELETE FROM range_result",
        "DELETE FROM file_profile",
        "UPDATE document SET chunk_method = 'book' WHERE run = 0",
    ],
)
def test_what_is_not_the_same_is_parsed(world: RestWorld, other: tuple[str, str], change: str) -> None:
    world.rows.write(world.rows.execute, change)
    assert world.parse(*other) == "RUNNING"


def test_a_source_that_is_not_all_there_or_not_findable_is_none(
    world: RestWorld, source: tuple[str, str], other: tuple[str, str]
) -> None:
    world.rows.write(world.rows.execute, "UPDATE document SET visible_seq = 999 WHERE id = ?", (source[1],))
    assert copying(world).settle([other[1]]) == []
    world.rows.write(world.rows.execute, "UPDATE document SET visible_seq = 1 WHERE id = ?", (source[1],))
    world.index.delete(Scope(world.caller.tenant_id, source[0], source[1]))
    assert world.parse(*other) == "RUNNING"
    assert world.row(other[1]).generation == 3  # two were taken in vain


def test_a_death_between_index_and_rows_leaves_nothing_to_be_seen(
    world: RestWorld, other: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> bool:
        raise RowsUnavailable("gone")

    with monkeypatch.context() as patch:
        patch.setattr(CopiedParse, "_end", die)
        with pytest.raises(RowsUnavailable):
            copying(world).settle([other[1]])
    row = world.row(other[1])
    assert (row.run, row.generation, row.active_generation) == (DocumentRun.UNSTART, 1, 0)
    assert found(world, other[0], "miller") == []
    assert other[1] not in {line.scope.document_id for line in StaleService(world.rows).due(10)}  # not yet
    world.rows.write(world.rows.execute, "UPDATE stale_chunks SET sweep_ms = 0 WHERE doc_id = ?", (other[1],))
    due = {line.scope.document_id: line.scope for line in StaleService(world.rows).due(10)}
    assert world.index.count(due[other[1]]) == 2
    world.index.delete(due[other[1]])
    assert world.parse(*other) == "DONE"
    assert world.row(other[1]).generation == 2
    assert len(listed(world, *other)) == 2


def test_a_transaction_that_is_rolled_back_leaves_nothing_for_the_next_parse(
    world: RestWorld, other: tuple[str, str]
) -> None:
    """As of a request with an Idempotency-Key: the next parse may be another one, and take the same generation."""

    def start_and_die() -> None:
        world.services.parsing.start([other[1]])
        raise InvalidInput("for any reason")

    with pytest.raises(InvalidInput):
        world.rows.write(start_and_die)
    assert (world.row(other[1]).generation, world.index.count(Scope(world.caller.tenant_id, *other))) == (0, 0)
    assert world.parse(*other) == "DONE"


@pytest.mark.parametrize(
    "meanwhile",
    [
        "UPDATE document SET run = 1, generation = generation + 1 WHERE run = 0",
        "UPDATE document SET deleted_ms = 5 WHERE run = 0",
        "UPDATE task SET digest = ''",
        "UPDATE stale_chunks SET at_ms = 0",
    ],
)
def test_what_happens_meanwhile_wins(
    world: RestWorld, other: tuple[str, str], monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    adopt = EmbeddedIndex.adopt

    def adopt_and_then(index: EmbeddedIndex, asked: Adoption) -> bool:
        done = adopt(index, asked)
        world.rows.write(world.rows.execute, meanwhile)
        return done

    monkeypatch.setattr(EmbeddedIndex, "adopt", adopt_and_then)
    assert copying(world).settle([other[1]]) == []
    row = Document.get_by_id(other[1])
    assert (row.active_generation, row.chunk_count) == (0, 0)
    assert StaleChunks.select().where(StaleChunks.doc_id == other[1]).count() == 1


def test_many_who_look_at_once_see_one_copy(world: RestWorld, source: tuple[str, str], other: tuple[str, str]) -> None:
    more = [world.document(world.dataset(f"n{n}"), "c.txt") for n in range(4)]
    assert copying(world).settle([other[1], *more]) == [other[1], *more]
    scope = Scope(world.caller.tenant_id, *other)
    counts: list[int] = []
    at_once(*[lambda: counts.append(world.index.count(scope))] * 6)
    assert counts == [2] * 6
    assert sum(tally.count for tally in world.index.tally()) == 2 * 6 + 2  # and the first parse's, not swept here


def test_a_copy_of_a_copy_that_is_not_made_yet_is_one_of_the_first(world: RestWorld, other: tuple[str, str]) -> None:
    chain = [other, *((kb, world.document(kb, "c.txt")) for kb in map(world.dataset, ("third", "fourth")))]
    assert [world.parse(*place) for place in chain] == ["DONE"] * 3
    assert waiting_notes(world) == 3  # nobody has looked yet
    for place in chain:
        assert [chunk["content"] for chunk in listed(world, *place)] == list(_TEXTS)
        assert found(world, place[0], "miller")[0]["document_id"] == place[1]
    assert waiting_notes(world) == 0


def test_a_copy_of_a_copy_that_is_made_and_not_indexed_yet_is_found_too(
    world: RestWorld, source: tuple[str, str], other: tuple[str, str]
) -> None:
    chain = [other, *((kb, world.document(kb, "c.txt")) for kb in map(world.dataset, ("third", "fourth")))]
    for place in chain:
        assert world.parse(*place) == "DONE"
        assert len(listed(world, *place)) == 2, "which makes it"
    for dataset_id, document_id in chain:
        for question in ("miller", '"weighs alpha"'):
            (best, *_) = found(world, dataset_id, question, vector_similarity_weight=0.0, explain=True)
            assert (best["document_id"], best["content"]) == (document_id, _TEXTS[0])
    all_of_them = {place[1] for place in (source, *chain)}
    asked = {"dataset_ids": [source[0], *(place[0] for place in chain)], "question": "miller"}
    hits = world.ok("POST", "/retrieval", json={**asked, "vector_similarity_weight": 0.0})["chunks"]
    assert (len(hits), {hit["document_id"] for hit in hits}) == (4, all_of_them)


def test_a_source_that_was_taken_away_from_outside_jams_nothing(
    world: RestWorld, source: tuple[str, str], other: tuple[str, str]
) -> None:
    assert world.parse(*other) == "DONE"
    with closing(sqlite3.connect(world.services.settings.index_dir / "chunks.db")) as link, link:
        link.execute("DELETE FROM chunk WHERE document = ?", (source[1],))
    assert (listed(world, *other), waiting_notes(world)) == ([], 0)
    missing = AuditService(world.rows, world.index).run().findings
    assert {finding.document_id for finding in missing if finding.to_parse} == {source[1], other[1]}


def test_not_more_wait_than_whoever_looks_can_be_kept_waiting_for(
    world: RestWorld, other: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_copies, "MOST_CHUNKS", 4)
    more = [world.document(world.dataset(f"n{n}"), "c.txt") for n in range(2)]
    assert copying(world).settle([other[1], *more]) == [other[1], *more]
    assert waiting_notes(world) == 1
    assert sum(tally.count for tally in world.index.tally()) == 2 * 4 + 2


def waiting_notes(world: RestWorld) -> int:
    with closing(sqlite3.connect(world.services.settings.index_dir / "chunks.db")) as link:
        return int(link.execute("SELECT COUNT(*) FROM copy").fetchone()[0])


def test_a_file_of_the_version_before_gets_what_it_lacks(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path, IndexSettings())
    index.check()
    index.close()
    with closing(sqlite3.connect(tmp_path / "chunks.db")) as link:
        link.executescript("DROP TABLE copy; DROP TABLE adopted; PRAGMA user_version = 1;")
    again = EmbeddedIndex(tmp_path, IndexSettings())
    assert list(again.tally()) == []
    again.close()
