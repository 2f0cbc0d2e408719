"""RAGFlow's own Python client, unchanged, against the running product: what its users' scripts do every day."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.instance import Instance, running_instance
from tests.pdfs import sentence, write_pages
from tests.waiting import wait_until

if sys.version_info >= (3, 13):
    pytest.skip("its authors offer it up to Python 3.12 only", allow_module_level=True)
ragflow_sdk = importlib.import_module("ragflow_sdk")

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture(scope="module")
def instance(short_dir: Path) -> Iterator[Instance]:
    with running_instance(short_dir / "sdk") as made:
        yield made
        assert made.stop() == 0


@pytest.fixture(scope="module")
def rag(instance: Instance) -> Any:
    return ragflow_sdk.RAGFlow(instance.key(), instance.address)


def test_datasets_are_made_listed_changed_and_deleted(rag: Any) -> None:
    dataset = rag.create_dataset(name="sdk", description="by the client", chunk_method="naive")
    assert (dataset.name, dataset.chunk_method, dataset.document_count) == ("sdk", "naive", 0)
    assert rag.create_dataset(name="SDK").name == "SDK(1)"
    config = rag.create_dataset(
        name="configured", parser_config=ragflow_sdk.DataSet.ParserConfig(rag, {"chunk_token_num": 128})
    )
    assert config.parser_config.chunk_token_num == 128
    assert [one.id for one in rag.list_datasets(name="sdk")] == [dataset.id]
    assert rag.get_dataset(name="sdk").description == "by the client"
    assert len(rag.list_datasets(page=1, page_size=2, orderby="create_time", desc=False)) == 2
    dataset.update({"name": "renamed", "parser_config": {"chunk_token_num": 256}, "pagerank": 5})
    assert (dataset.name, dataset.parser_config.chunk_token_num, dataset.pagerank) == ("renamed", 256, 5)
    with pytest.raises(Exception, match="already exists"):
        dataset.update({"name": "configured"})
    with pytest.raises(Exception, match="lacks permission"):
        rag.list_datasets(name="nobody's")
    rag.delete_datasets(ids=None)  # names nothing, and so deletes nothing
    assert len(rag.list_datasets()) == 3
    rag.delete_datasets(ids=[one.id for one in rag.list_datasets()])
    assert rag.list_datasets() == []


def test_the_whole_way_of_a_document(rag: Any, tmp_path: Path) -> None:
    dataset = rag.create_dataset(name="way")
    pdf = write_pages(tmp_path / "pages.pdf", 3).read_bytes()
    text = b"The quick brown fox jumps over the lazy dog."
    documents = dataset.upload_documents(
        [{"display_name": "pages.pdf", "blob": pdf}, {"display_name": "fox.txt", "blob": text}]
    )
    assert [document.name for document in documents] == ["pages.pdf", "fox.txt"]
    ended = dataset.parse_documents([document.id for document in documents])
    assert {(name, run) for name, run, *_ in ended} == {(document.id, "DONE") for document in documents}
    assert all(chunks > 0 and tokens > 0 for _, _, chunks, tokens in ended)

    (fox,) = dataset.list_documents(keywords="FOX")
    assert (fox.run, fox.progress, fox.type, fox.status, fox.size) == ("DONE", 1.0, "doc", "1", len(text))
    assert fox.download() == text
    fox.update({"name": "vixen.txt", "meta_fields": {"animal": "fox"}})
    assert (fox.name, fox.meta_fields.animal) == ("vixen.txt", "fox")
    with pytest.raises(Exception, match="extension of file can't be changed"):
        fox.update({"name": "fox.pdf"})
    assert [one.id for one in dataset.list_documents(id=fox.id)] == [fox.id]

    (chunk,) = fox.list_chunks()
    assert "lazy dog" in chunk.content
    chunk.update({"content": "The slow red fox sleeps.", "important_keywords": ["nap"]})
    (changed,) = fox.list_chunks(keywords="nap")
    assert (changed.id, changed.important_keywords) == (chunk.id, ["nap"])
    added = fox.add_chunk("Owls hunt at night.", important_keywords=["birds"], questions=["Who hunts at night?"])
    assert (added.content, added.questions, added.dataset_id) == (
        "Owls hunt at night.",
        ["Who hunts at night?"],
        dataset.id,
    )

    best = rag.retrieve(dataset_ids=[dataset.id], question="Who hunts at night?")[0]
    assert (best.id, best.content) == (added.id, "Owls hunt at night.")
    assert 0 < best.similarity <= 1
    found = rag.retrieve(dataset_ids=[dataset.id], document_ids=[documents[0].id], question='"sheet 2"')
    assert found[0].document_id == documents[0].id
    assert 2 in {page for page, *_ in found[0].positions}
    with_condition = rag.retrieve(
        dataset_ids=[dataset.id],
        question="fox",
        metadata_condition={"conditions": [{"name": "animal", "comparison_operator": "is", "value": "fox"}]},
    )
    assert {one.document_id for one in with_condition} == {fox.id}

    fox.delete_chunks([])  # names nothing, and so deletes nothing
    fox.delete_chunks([added.id])
    assert [one.id for one in fox.list_chunks()] == [chunk.id]
    left = rag.retrieve(dataset_ids=[dataset.id], question="Owls hunt at night", similarity_threshold=0.0)
    assert left and added.id not in {one.id for one in left}
    fox.update({"enabled": 0})
    assert fox.status == "0"
    assert rag.retrieve(dataset_ids=[dataset.id], document_ids=[fox.id], question="fox") == []

    with pytest.raises(Exception, match="should either provide doc ids"):
        dataset.delete_documents(ids=None)
    dataset.delete_documents(ids=[fox.id])
    assert [one.name for one in dataset.list_documents()] == ["pages.pdf"]
    rag.delete_datasets(ids=[dataset.id])


def test_a_parse_is_cancelled_and_begun_again(rag: Any, tmp_path: Path) -> None:
    dataset = rag.create_dataset(name="cancelled")
    pdf = write_pages(tmp_path / "long.pdf", 400, sentences=30).read_bytes()
    (document,) = dataset.upload_documents([{"display_name": "long.pdf", "blob": pdf}])
    dataset.async_parse_documents([document.id])
    with pytest.raises(Exception, match="currently being processed"):
        dataset.async_parse_documents([document.id])
    wait_until(lambda: dataset.list_documents(id=document.id)[0].progress > 0, what="the first pages")
    dataset.async_cancel_parse_documents([document.id])
    (stopped,) = dataset.list_documents(id=document.id)
    assert (stopped.run, stopped.progress, stopped.chunk_count) == ("CANCEL", 0.0, 0)
    assert rag.retrieve(dataset_ids=[dataset.id], question=sentence(1, 1)) == []
    with pytest.raises(Exception, match="has not started or already completed"):
        dataset.async_cancel_parse_documents([document.id])
    begun_s = time.monotonic()
    ((_, run, chunks, _),) = dataset.parse_documents([document.id])
    assert (run, chunks > 0) == ("DONE", True), time.monotonic() - begun_s


def test_errors_come_as_the_client_raises_them(rag: Any, instance: Instance) -> None:
    with pytest.raises(Exception, match="Unauthorized"):
        ragflow_sdk.RAGFlow("ragflow-nobody", instance.address).list_datasets()
    with pytest.raises(Exception, match="`dataset_ids` is required"):
        rag.retrieve(dataset_ids=[], question="x")
    dataset = rag.create_dataset(name="errors")
    with pytest.raises(Exception, match="This type of file has not been supported yet"):
        dataset.upload_documents([{"display_name": "tool.exe", "blob": b"MZ"}])
    with pytest.raises(Exception, match="don't own the document"):
        dataset.list_documents(id="0" * 32)
    with pytest.raises(Exception, match="Documents not found"):
        dataset.async_parse_documents(["0" * 32])
