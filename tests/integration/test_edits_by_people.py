"""Edits of chunks, documents, datasets and metadata on both databases, and of chunks on both indexes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from api.db.database import Rows
from api.db.models import Document, Knowledgebase
from api.db.services.account_service import Caller
from api.db.services.chunk_edits import ChunkChange, ChunkEdits, NewChunk
from api.db.services.chunk_notes import ChunkNote, ChunkNotes
from api.db.services.dataset_changes import DatasetChange, DatasetChanges
from api.db.services.document_changes import DocumentChange, DocumentChanges
from api.db.services.document_service import DocumentService
from api.db.services.document_views import DocumentView
from api.db.services.metadata_edits import DropValue, SetValue
from api.db.services.metadata_service import MetadataService
from api.db.services.session_service import SessionService
from api.db.services.task_lookup import TaskLookup
from api.db.services.visible_search import VisibleSearch
from common.errors import Conflict, NotFound, Unauthorized
from common.ids import new_id
from common.settings import TaskSettings
from common.task_state import DocumentRun
from rag.utils.doc_index import DocIndex, Query, Vectors
from rag.utils.terms import analyse
from tests.elastic_indexes import index_of_kind
from tests.indexes import DIMENSION, KINDS, axis, chunk
from tests.world import World


class Axes:
    """Embeds every text on an axis of its own choosing: near are those of the same length."""

    name = "m"
    dimension = DIMENSION
    max_tokens = 100

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.stack([axis(len(text) % DIMENSION) for text in texts])


def count_words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def edits_on(rows: Rows, index: DocIndex) -> ChunkEdits:
    return ChunkEdits(rows, index, Axes(), count_words)


def view(world: World, doc_id: str) -> DocumentView:
    return DocumentService(world.rows, TaskSettings()).get(world.tenant_id, doc_id)


def counts(world: World, doc_id: str) -> tuple[int, int, int, int]:
    row, dataset = world.doc(doc_id), Knowledgebase.get_by_id(world.kb_id)
    return row.chunk_count, row.token_count, dataset.chunk_count, dataset.token_count


@pytest.fixture(params=KINDS)
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DocIndex]:
    with index_of_kind(request, tmp_path / "index") as made:
        yield made


def test_edits_on_both_indexes(sqlite_rows: Rows, index: DocIndex) -> None:
    world = World(sqlite_rows)
    world.tenant_id = "tenant"  # the one that the indexes of tests are kept for
    world.kb_id = world.dataset("tenant")
    doc_id = world.document()
    edits = edits_on(sqlite_rows, index)

    def found(words: str) -> list[str]:
        query = Query("tenant", (world.kb_id,), tuple(analyse(words)), axis(0), vector_weight=0.0, limit=10)
        return [hit.chunk.text for hit in VisibleSearch(sqlite_rows, index).best(query).hits if hit.term_similarity]

    first = edits.add(view(world, doc_id), "m", NewChunk("rivers flow", ChunkNote(("danube",))))
    second = edits.add(view(world, doc_id), "m", NewChunk("bread bakes"))
    assert (found("danube"), found("bread")) == (["rivers flow"], ["bread bakes"])
    assert counts(world, doc_id) == (2, 4, 2, 4)
    edits.update(view(world, doc_id), "m", first.id, ChunkChange(content="rivers flood the town"))
    assert (found("flow"), found("danube")) == ([], ["rivers flood the town"])
    assert counts(world, doc_id) == (2, 6, 2, 6)
    edits.switch(view(world, doc_id), [first.id], False)
    assert found("danube") == []
    edits.switch(view(world, doc_id), [first.id], True)
    assert found("danube") == ["rivers flood the town"]
    assert edits.delete(view(world, doc_id), [first.id, "nope"]) == 1
    assert (found("danube"), found("bread")) == ([], ["bread bakes"])
    assert counts(world, doc_id) == (1, 2, 1, 2)
    edits.delete_all(view(world, doc_id))
    assert found("bread") == []
    assert counts(world, doc_id) == (0, 0, 0, 0)
    again = edits.add(view(world, doc_id), "m", NewChunk("bread bakes"))
    assert (again.id, found("bread")) == (second.id, ["bread bakes"])


@pytest.fixture
def embedded(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[DocIndex]:
    request.param = "embedded"
    with index_of_kind(request, tmp_path / "index") as made:
        yield made


def parsed(world: World, index: DocIndex, texts: Sequence[str]) -> str:
    """A document that an executor has parsed, one chunk a range."""
    doc_id, tasks = world.started(len(texts))
    for task, text in zip(world.claim(*tasks), texts, strict=True):
        record = chunk(
            f"{doc_id}{task.from_page}", text, tenant_id=world.tenant_id, dataset_id=world.kb_id, document_id=doc_id,
            generation=task.generation, task_no=task.task_no, claim_no=task.claim_no,
        )  # fmt: skip
        world.finish(task, chunks=1, seq=index.upsert([record], axis(1)[np.newaxis]))
    world.flip(doc_id)
    return doc_id


def test_chunks_of_a_parse_on_both_databases(rows: Rows, embedded: DocIndex) -> None:
    world = World(rows)
    doc_id = parsed(world, embedded, ["one", "two", "three"])
    edits, notes = edits_on(rows, embedded), ChunkNotes(rows)
    ids = [f"{doc_id}{n}" for n in (0, 12, 24)]
    assert rows.rows("SELECT COUNT(*) FROM range_result")[0][0] == 3
    edits.update(
        view(world, doc_id), "m", ids[0], ChunkChange(content="uno due", questions=("?",), tag_weights={"é": 1})
    )
    assert notes.of(world.tenant_id, ids) == {ids[0]: ChunkNote((), ("?",), {"é": 1})}
    assert edits.delete(view(world, doc_id), [ids[1]]) == 1
    assert edits.delete(view(world, doc_id), [ids[1]]) == 0
    assert rows.rows("SELECT COUNT(*) FROM range_result")[0][0] == 1
    # The executor said ten tokens a range. A chunk has one; the edit made it two, and the delete took one.
    assert counts(world, doc_id) == (2, 30, 2, 30)
    world.parsing.start([doc_id])
    with pytest.raises(Conflict, match="being parsed"):
        edits.delete(view(world, doc_id), [ids[2]])
    world.parsing.stop([doc_id])
    notes.forget([doc_id])
    assert notes.of(world.tenant_id, ids) == {}


def test_two_that_delete_at_once_count_once(rows: Rows, embedded: DocIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(rows)
    doc_id = parsed(world, embedded, ["one", "two"])
    edits, document = edits_on(rows, embedded), view(world, doc_id)
    upsert = embedded.upsert

    def other_first(*args: object) -> int:
        monkeypatch.setattr(embedded, "upsert", upsert)
        assert edits.delete(document, [f"{doc_id}0"]) == 1
        return upsert(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(embedded, "upsert", other_first)
    edits.delete(document, [f"{doc_id}0"])
    assert counts(world, doc_id)[::2] == (1, 1)


def test_documents_on_both_databases(rows: Rows, embedded: DocIndex) -> None:
    world = World(rows)
    doc_id, other = parsed(world, embedded, ["one"]), world.document()
    changes = DocumentChanges(rows)
    changes.update(doc_id, DocumentChange(name="Ä.pdf", meta_fields={"ü": ["ß"]}, parser_config={"pages": [[1, 2]]}))
    row = world.doc(doc_id)
    assert (row.name, row.name_key, row.meta_fields, row.parser_config) == (
        "Ä.pdf", "ä.pdf", {"ü": ["ß"]}, {"pages": [[1, 2]]},
    )  # fmt: skip
    with pytest.raises(Conflict, match="Duplicated document name"):
        changes.update(other, DocumentChange(name="ä.PDF", meta_fields={"a": 1}))
    assert world.doc(other).meta_fields == {}
    changes.enable([doc_id, other], False)
    assert [world.doc(one).status for one in (doc_id, other)] == [0, 0]
    Knowledgebase.update(parser_config={"from": "dataset"}).execute()
    changes.use_dataset_config([doc_id])
    assert (world.doc(doc_id).parser_config, world.doc(other).parser_config) == ({"from": "dataset"}, {})
    changes.update(doc_id, DocumentChange(chunk_method="qa"))
    row = world.doc(doc_id)
    assert (row.chunk_method, row.run, row.active_generation) == ("qa", DocumentRun.UNSTART, 0)
    assert counts(world, doc_id) == (0, 0, 0, 0)
    with pytest.raises(NotFound):
        changes.update(new_id(), DocumentChange(name="x.pdf"))


def test_datasets_on_both_databases(rows: Rows) -> None:
    world = World(rows)
    other = world.dataset(world.tenant_id)
    changes = DatasetChanges(rows, "new")
    changes.update(world.kb_id, DatasetChange({"pagerank": 7}, name="Ä", embedding_model="new", chunk_method="qa"))
    row = Knowledgebase.get_by_id(world.kb_id)
    assert (row.name, row.name_key, row.pagerank, row.embedding_model, row.chunk_method) == ("Ä", "ä", 7, "new", "qa")
    with pytest.raises(Conflict, match="already exists"):
        changes.update(other, DatasetChange({"pagerank": 9}, name="ä"))
    assert Knowledgebase.get_by_id(other).pagerank == 0
    with pytest.raises(NotFound):
        changes.update(new_id(), DatasetChange({}, name="x"))


def test_metadata_on_both_databases(rows: Rows) -> None:
    world = World(rows)
    first, second = world.document(), world.document()
    service = MetadataService(rows)
    assert service.change([first, second], [SetValue("k", "ü"), SetValue("n", 1)], []) == 2
    assert service.change([first], [], [DropValue("k", "ü")]) == 1
    assert dict(service.noted(world.tenant_id, [world.kb_id])) == {first: {"n": 1}, second: {"k": "ü", "n": 1}}
    assert service.change([first], [SetValue("n", 2, match=5)], [DropValue("k")]) == 0
    assert service.of("somebody", [first]) == {}


def test_sessions_and_tasks_on_both_databases(rows: Rows) -> None:
    world = World(rows)
    sessions = SessionService(rows)
    token = sessions.begin(Caller("nobody", "nobody", False))
    with pytest.raises(Unauthorized):
        sessions.caller_of(token)  # its user is not there
    sessions.end(token)
    assert rows.rows("SELECT COUNT(*) FROM login_session") == [(0,)]
    doc_id, tasks = world.started()
    assert TaskLookup(rows).document_at_work(world.tenant_id, tasks[0]) == doc_id
    assert TaskLookup(rows).document_at_work("somebody", tasks[0]) is None
    world.parsing.stop([doc_id])
    assert TaskLookup(rows).document_at_work(world.tenant_id, tasks[0]) is None
    assert Document.select().count() == 1
