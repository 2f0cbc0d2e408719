"""The table of contents over REST, from chunks in a real index."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rag.utils.doc_index import Scope
from tests.rest_world import RestWorld, new_caller

# For each page and each chunk of it, what stands in it.
CONTENTS = [[((1, "Lamps", 1), (2, "Oil", 1)), ()], [((2, "Wicks", 2),), ((1, "Tides", 2), (3, "Ebb", 2))]]


def ingest(world: RestWorld, dataset_id: str, document_id: str) -> None:
    """Two pages of two chunks each, with headings in them."""
    world.ok("POST", f"/datasets/{dataset_id}/chunks", json={"document_ids": [document_id]})
    for task, pages in zip(world.split(document_id, 2), CONTENTS, strict=True):
        world.finish(task, ["one", "two"])
        scope = Scope(task.tenant_id, dataset_id, document_id, task.generation, (task.task_no, task.claim_no))
        chunks, vectors = world.index.read_all(scope)
        records = [replace(chunk, contents=found) for chunk, found in zip(chunks, pages, strict=True)]
        world.index.upsert(records, vectors)
    world.flip(document_id)


def test_the_table_of_contents_names_the_chunks_where_its_entries_start(world: RestWorld) -> None:
    dataset_id = world.dataset(parser_config={"toc_extraction": True})
    document_id = world.document(dataset_id, "a.pdf")
    path = f"/datasets/{dataset_id}/documents/{document_id}"
    assert world.ok("GET", f"{path}/toc")["toc"] == []
    ingest(world, dataset_id, document_id)
    answer = world.ok("GET", f"{path}/toc")
    assert (answer["total"], answer["doc"]["id"]) == (5, document_id)
    assert [(entry["level"], entry["title"], entry["page"]) for entry in answer["toc"]] == [
        *((1, "Lamps", 1), (2, "Oil", 1), (2, "Wicks", 2), (1, "Tides", 2), (2, "Ebb", 2)),
    ]
    ids = [chunk["id"] for chunk in world.ok("GET", f"{path}/chunks")["chunks"]]
    assert [ids.index(entry["chunk_id"]) for entry in answer["toc"]] == [0, 0, 2, 3, 3]


def test_it_is_there_whatever_the_setting_says(world: RestWorld) -> None:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id, "a.pdf")
    ingest(world, dataset_id, document_id)
    assert world.ok("GET", f"/datasets/{dataset_id}/documents/{document_id}/toc")["total"] == 5


def test_it_is_the_owners_only(world: RestWorld) -> None:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id, "a.pdf")
    stranger = world.services.accounts.create_token(new_caller(world.rows, "Mallory"), "test")
    code, _ = world.refused("GET", f"/datasets/{dataset_id}/documents/{document_id}/toc", key=stranger)
    assert code == 102
    assert world.refused("GET", f"/datasets/{dataset_id}/documents/{'0' * 32}/toc")[0] == 102


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_the_setting_is_a_switch(world: RestWorld, value: object) -> None:
    code, message = world.refused("POST", "/datasets", json={"name": "x", "parser_config": {"toc_extraction": value}})
    assert code == 101 and "toc_extraction" in message
