"""A copy is DONE before it is on the disk. Where a power cut kept its rows and took its chunks, it is parsed anew."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.db.models import FreshCopy, StaleChunks
from api.db.services.document_service import NewDocument
from api.db.services.fresh_copies import FreshCopies
from common.errors import IndexUnavailable, InvalidInput
from common.settings import IndexSettings
from common.task_state import DocumentRun
from rag.utils.doc_index import DocIndex, Scope
from rag.utils.embedded_index import EmbeddedIndex
from rag.utils.object_store import StoredFile
from tests.rest_world import RestWorld

_TEXTS = ("the miller weighs alpha beta by its sound", "gamma delta in a blue vat")
Place = tuple[str, str]


@pytest.fixture
def source(world: RestWorld) -> Place:
    dataset_id = world.dataset("first")
    document_id = world.document(dataset_id, "a.txt")
    world.parse_twice(dataset_id, document_id, _TEXTS)
    return dataset_id, document_id


@pytest.fixture
def before(world: RestWorld, source: Place, tmp_path: Path) -> Iterator[EmbeddedIndex]:
    """The index as the disk has it before the copy: what is left of it after a power cut."""
    world.index.make_adopted_durable()
    kept = tmp_path / "kept"
    shutil.copytree(world.services.settings.index_dir, kept, ignore=shutil.ignore_patterns("bell"))
    index = EmbeddedIndex(kept, IndexSettings())
    yield index
    index.close()


@pytest.fixture
def copy(world: RestWorld, before: EmbeddedIndex) -> Place:
    dataset_id = world.dataset("other")
    document_id = world.document(dataset_id, "b.txt")
    assert world.parse(dataset_id, document_id) == "DONE"
    return dataset_id, document_id


def checking(world: RestWorld, index: DocIndex) -> FreshCopies:
    return FreshCopies(world.rows, index, world.services.parsing.restart)


def test_it_is_listed_until_it_is_on_the_disk(world: RestWorld, copy: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [line.doc_id for line in FreshCopy.select()] == [copy[1]]
    assert checking(world, world.index).check() == 0  # too early: whoever asks would have to make it
    synced: list[int] = []
    monkeypatch.setattr(EmbeddedIndex, "make_adopted_durable", lambda _: synced.append(FreshCopy.select().count()))
    assert checking(world, world.index).check(rest_ms=0) == 1
    assert synced == [1]  # before it was forgotten
    assert FreshCopy.select().count() == 0
    row = world.row(copy[1])
    assert (row.run, row.generation) == (DocumentRun.DONE, 1)


def test_what_a_power_cut_took_is_parsed_anew(world: RestWorld, copy: Place, before: EmbeddedIndex) -> None:
    checking(world, before).check_all()
    row = world.row(copy[1])
    assert (row.run, row.generation, FreshCopy.select().count()) == (DocumentRun.RUNNING, 2, 0)
    checking(world, before).check_all()
    assert world.row(copy[1]).generation == 2  # once


def test_a_second_check_at_the_same_time_begins_nothing_more(
    world: RestWorld, copy: Place, before: EmbeddedIndex
) -> None:
    def restart_twice(doc_ids: object) -> list[str]:
        first = world.services.parsing.restart([copy[1]])
        return first + world.services.parsing.restart([copy[1]])

    FreshCopies(world.rows, before, restart_twice).check_all()
    assert world.row(copy[1]).generation == 2


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE document SET deleted_ms = 5 WHERE id = ?",
        "UPDATE document SET run = 1, generation = 2 WHERE id = ?",
        "UPDATE task SET digest = '' WHERE doc_id = ?",
        "DELETE FROM task WHERE doc_id = ?",
    ],
)
def test_what_was_changed_since_is_left_alone(
    world: RestWorld, copy: Place, before: EmbeddedIndex, change: str
) -> None:
    world.rows.write(world.rows.execute, change, (copy[1],))
    seen = world.row(copy[1])
    checking(world, before).check_all()
    row = world.row(copy[1])
    assert (row.run, row.generation, FreshCopy.select().count()) == (seen.run, seen.generation, 0)


def test_an_index_that_is_away_leaves_it_listed(world: RestWorld, copy: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise IndexUnavailable("away")

    for method in ("make_adopted_durable", "tally"):
        with monkeypatch.context() as patch:
            patch.setattr(EmbeddedIndex, method, away)
            checking(world, world.index).check_all()
        assert (FreshCopy.select().count(), world.row(copy[1]).run) == (1, DocumentRun.DONE)


def test_a_copy_whose_document_never_came_to_be_is_deleted(world: RestWorld, copy: Place) -> None:
    row = world.row(copy[1])
    new = NewDocument("d.txt", StoredFile(row.file_digest, row.size_bytes))

    def make_and_die() -> None:
        (document,) = world.services.documents.add(world.caller, copy[0], [new])
        world.services.parsing.start([document.id], are_new=True)
        assert world.row(document.id).run == DocumentRun.DONE
        raise InvalidInput("for any reason")

    with pytest.raises(InvalidInput):
        world.rows.write(make_and_die)
    scope = Scope(world.caller.tenant_id, copy[0])
    copies = checking(world, world.index)
    assert (world.index.count(scope), copies.drop_orphans()) == (4, 0), "not yet"
    assert copies.drop_orphans(rest_ms=0) == 1
    assert (world.index.count(scope), world.index.count(Scope(world.caller.tenant_id, *copy))) == (2, 2)
    assert (list(world.index.adopted(0)), copies.drop_orphans(rest_ms=0)) == ([], 0)


@pytest.mark.parametrize("is_made", [False, True], ids=["noted", "made"])
def test_chunks_that_the_rows_know_nothing_of_any_more_are_nobodys(
    world: RestWorld, copy: Place, is_made: bool
) -> None:
    """A power cut kept the chunks and took the rows: the document is parsed as if for the first time."""
    if is_made:
        world.catch_up()
    for statement in (
        "UPDATE document SET run = 0, generation = 0, active_generation = 0 WHERE id = ?",
        "DELETE FROM task WHERE doc_id = ?",
        "DELETE FROM fresh_copy WHERE doc_id = ?",
    ):
        world.rows.write(world.rows.execute, statement, (copy[1],))
    world.rows.write(world.rows.execute, "UPDATE range_result SET kb_id = ?, doc_id = ?, generation = 2", _first(world))
    assert world.parse(*copy) == "RUNNING"
    row = world.row(copy[1])
    assert row.generation == 2
    assert [line.generation for line in StaleChunks.select().where(StaleChunks.doc_id == copy[1])] == [1]
    assert world.index.count(Scope(world.caller.tenant_id, *copy, 2)) == 0


def _first(world: RestWorld) -> tuple[str, str]:
    ((kb_id, doc_id),) = world.rows.rows("SELECT kb_id, id FROM document WHERE run = 3")
    return kb_id, doc_id
