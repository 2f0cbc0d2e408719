"""Names that are taken by many at the same moment, and filters that must mean the same, on both databases."""

from __future__ import annotations

from typing import Any

import pytest

from api.db.database import Rows
from api.db.models import Knowledgebase
from api.db.services.account_service import Caller
from api.db.services.dataset_service import DatasetFilter, DatasetService, NewDataset
from api.db.services.document_list import DocumentFilter
from api.db.services.document_service import DocumentService, NewDocument
from common.errors import NotFound
from common.settings import TaskSettings
from rag.utils.embedder import PackagedEmbedder
from rag.utils.object_store import StoredFile
from tests.at_once import at_once
from tests.rest_world import new_caller

FILE = StoredFile("0" * 64, 1)


def test_many_creators_of_one_dataset_name(rows: Rows) -> None:
    caller = new_caller(rows, "Ursula")
    datasets = DatasetService(rows, PackagedEmbedder.name)
    names: list[str] = []
    at_once(*[lambda: names.append(datasets.create(caller, NewDataset("same")).name)] * 8, rows=rows)
    assert sorted(names) == sorted(["same", *[f"same({n})" for n in range(1, 8)]])
    assert datasets.page(caller.tenant_id, DatasetFilter(page_size=3)).total == 8


def test_many_uploads_of_the_same_names(rows: Rows) -> None:
    caller = new_caller(rows, "Ursula")
    dataset_id = DatasetService(rows, PackagedEmbedder.name).create(caller, NewDataset("d")).id
    documents = DocumentService(rows, TaskSettings())
    names: list[str] = []

    def upload() -> None:
        new = [NewDocument("a.txt", FILE), NewDocument("b.txt", FILE)]
        names.extend(d.name for d in documents.add(caller, dataset_id, new))

    at_once(*[upload] * 6, rows=rows)
    assert len(set(names)) == 12
    assert Knowledgebase.get_by_id(dataset_id).document_count == 12


def test_filters(rows: Rows) -> None:
    caller = new_caller(rows, "Ursula")
    dataset_id = DatasetService(rows, PackagedEmbedder.name).create(caller, NewDataset("d")).id
    documents = DocumentService(rows, TaskSettings())
    names = ("Alpha.txt", "Ärger.md", "50%_off\N{SNOWMAN}.csv", "ΐ" * 120 + ".txt")
    documents.add(caller, dataset_id, [NewDocument(name, FILE) for name in names])

    def found(**wanted: Any) -> list[str]:
        page = documents.page(caller.tenant_id, dataset_id, DocumentFilter(**wanted))
        return [d.name for d in page.documents]

    assert found(keywords="ALPHA") == ["Alpha.txt"]
    assert found(keywords="ärGER") == ["Ärger.md"]
    assert found(keywords="%_OFF") == [names[2]]
    assert found(keywords="_") == [names[2]]
    assert found(name="alpha.txt") == []
    assert found(name=names[3]) == [names[3]]
    assert found(suffixes=("md", "CSV"), orderby="name", desc=False) == [names[2], names[1]]
    assert found(page=2**53, page_size=100) == []


def test_uploads_of_names_in_other_orders(rows: Rows) -> None:
    """Each takes the other's second name first: nobody fails, and everything is counted."""
    caller = new_caller(rows, "Ursula")
    dataset_id = DatasetService(rows, PackagedEmbedder.name).create(caller, NewDataset("d")).id
    documents = DocumentService(rows, TaskSettings())
    names: list[str] = []

    def upload(*wanted: str) -> None:
        new = [NewDocument(name, FILE) for name in wanted]
        names.extend(d.name for d in documents.add(caller, dataset_id, new))

    at_once(*[lambda: upload("a.txt", "b.txt"), lambda: upload("b.txt", "a.txt")] * 2, rows=rows)
    assert len(set(names)) == 8
    assert Knowledgebase.get_by_id(dataset_id).document_count == 8


def test_a_submit_locks_its_dataset_last(rows: Rows) -> None:
    """Two into one dataset do not wait for each other before their ends."""
    caller = new_caller(rows, "Ursula")
    dataset_id = DatasetService(rows, PackagedEmbedder.name).create(caller, NewDataset("d")).id
    documents = DocumentService(rows, TaskSettings())
    if rows.is_sqlite:  # its writers are alone from their beginning
        documents.add(caller, dataset_id, [NewDocument("b.txt", FILE)])
    else:
        rows.write(_add_beside_another, rows, documents, caller, dataset_id)
        assert Knowledgebase.get_by_id(dataset_id).document_count == 2


def _add_beside_another(rows: Rows, documents: DocumentService, caller: Caller, dataset_id: str) -> None:
    documents.add(caller, dataset_id, [NewDocument("a.txt", FILE)])
    at_once(lambda: documents.add(caller, dataset_id, [NewDocument("b.txt", FILE)]), rows=rows)


def test_a_dataset_that_is_deleted_meanwhile_gets_no_document(rows: Rows) -> None:
    caller = new_caller(rows, "Ursula")
    dataset_id = DatasetService(rows, PackagedEmbedder.name).create(caller, NewDataset("d")).id
    documents = DocumentService(rows, TaskSettings())

    def add_and_delete() -> None:
        documents.add(caller, dataset_id, [NewDocument("a.txt", FILE)])
        rows.execute("UPDATE knowledgebase SET deleted_ms = 1 WHERE id = ?", (dataset_id,))

    with pytest.raises(NotFound):
        rows.write(add_and_delete)
    assert rows.rows("SELECT COUNT(*) FROM document WHERE kb_id = ?", (dataset_id,)) == [(0,)]
