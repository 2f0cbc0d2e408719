"""Names that are taken by many at the same moment, and filters that must mean the same, on both databases."""

from __future__ import annotations

from typing import Any

from api.db.database import Rows
from api.db.models import Knowledgebase
from api.db.services.dataset_service import DatasetFilter, DatasetService, NewDataset
from api.db.services.document_list import DocumentFilter
from api.db.services.document_service import DocumentService, NewDocument
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
