"""What was computed once is not computed again, and a page that can't be read costs only itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.instance import Instance, running_instance
from tests.pdfs import sentence, write_pages, write_without_page

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def instance(short_dir: Path) -> Iterator[Instance]:
    with running_instance(short_dir / "reuse") as made:
        yield made
        assert made.stop() == 0


def chunks(instance: Instance, dataset_id: str, document_id: str) -> list[tuple[str, Any]]:
    path = f"/datasets/{dataset_id}/documents/{document_id}/chunks?page_size=100"
    return [(c["content"], c["positions"]) for c in instance.call("GET", path)["data"]["chunks"]]


def parsed(instance: Instance, dataset_id: str, document_id: str) -> dict[str, Any]:
    assert instance.parse(dataset_id, document_id) == {"code": 0}
    document = instance.wait_ended(dataset_id, document_id)
    assert document["run"] == "DONE", document["progress_msg"]
    return document


@pytest.mark.parametrize(("pages", "tasks"), [(30, 3), (5, 1)])
def test_an_unchanged_parse_reuses_every_range(instance: Instance, tmp_path: Path, pages: int, tasks: int) -> None:
    path = write_pages(tmp_path / f"{pages}.pdf", pages, title=f"of {pages}")
    dataset_id = instance.dataset(f"first {pages}")
    document_id = instance.upload(dataset_id, path)
    first = parsed(instance, dataset_id, document_id)
    assert "reused" not in first["progress_msg"]
    before = chunks(instance, dataset_id, document_id)
    again = parsed(instance, dataset_id, document_id)
    noun = "task" if tasks == 1 else "tasks"
    assert f"{tasks} of {tasks} {noun} reused" in again["progress_msg"]
    assert chunks(instance, dataset_id, document_id) == before
    assert again["chunk_count"] == first["chunk_count"]
    assert again["token_count"] == first["token_count"]

    elsewhere = instance.dataset(f"second {pages}")
    copy_id = instance.upload(elsewhere, path)
    assert f"{tasks} of {tasks} {noun} reused" in parsed(instance, elsewhere, copy_id)["progress_msg"]
    assert chunks(instance, elsewhere, copy_id) == before
    assert instance.search(elsewhere, sentence(3, 2))[0]["positions"][0][0] == 3


def test_other_settings_are_other_chunks(instance: Instance, tmp_path: Path) -> None:
    path = write_pages(tmp_path / "settings.pdf", 14, sentences=24)
    small, large = (
        instance.call("POST", "/datasets", {"name": "s", "parser_config": {"chunk_token_num": n}})["data"]["id"]
        for n in (64, 512)
    )
    counts = []
    for dataset_id in (small, large):
        document = parsed(instance, dataset_id, instance.upload(dataset_id, path))
        assert "reused" not in document["progress_msg"]
        counts.append(document["chunk_count"])
    assert counts[0] > counts[1]


def test_ranges_of_a_stopped_parse_are_reused(instance: Instance, tmp_path: Path) -> None:
    config = {"task_page_size": 1}
    dataset_id = instance.call("POST", "/datasets", {"name": "stopped", "parser_config": config})["data"]["id"]
    document_id = instance.upload(dataset_id, write_pages(tmp_path / "long.pdf", 300, sentences=30))
    instance.parse(dataset_id, document_id)
    while (document := instance.document(dataset_id, document_id))["chunk_count"] < 20:
        assert document["run"] == "RUNNING"
    instance.call("DELETE", f"/datasets/{dataset_id}/chunks", {"document_ids": [document_id]})
    assert instance.search(dataset_id, sentence(1, 1)) == []
    document = parsed(instance, dataset_id, document_id)
    assert "of 300 tasks reused" in document["progress_msg"]
    assert len({tuple(p[0]) for _, p in chunks(instance, dataset_id, document_id)}) == 100


def test_a_page_that_cannot_be_read_costs_only_itself_and_is_named(instance: Instance, tmp_path: Path) -> None:
    broken = write_without_page(tmp_path / "broken.pdf", 30, 18)
    dataset_id = instance.dataset("broken")
    document = parsed(instance, dataset_id, instance.upload(dataset_id, broken))
    assert "page 18 could not be read" in document["progress_msg"]
    found = chunks(instance, dataset_id, document["id"])
    assert sorted({positions[0][0] for _, positions in found}) == [p for p in range(1, 31) if p != 18]

    strict = instance.call("POST", "/datasets", {"name": "strict", "parser_config": {"on_bad_page": "fail"}})
    document_id = instance.upload(strict["data"]["id"], broken)
    instance.parse(strict["data"]["id"], document_id)
    document = instance.wait_ended(strict["data"]["id"], document_id)
    assert document["run"] == "FAIL"
    assert "page 18 can't be read" in document["progress_msg"]

    listed = instance.run("tasks", "failed", "--json").stdout
    assert '"error_code": "bad_page"' in listed
    assert instance.run("tasks", "replay", check=False).returncode == 1
    assert "1 run again" in instance.run("tasks", "replay", "--cause", "bad_page").stdout
    assert instance.wait_ended(strict["data"]["id"], document_id)["run"] == "FAIL"
    assert "1 discarded" in instance.run("tasks", "discard", "--document", document_id).stdout
    assert instance.run("tasks", "failed", "--json").stdout.strip() == "[]"


def test_what_is_deleted_is_not_reused_and_not_found(instance: Instance, tmp_path: Path) -> None:
    path = write_pages(tmp_path / "deleted.pdf", 14, title="to be deleted")
    dataset_id = instance.dataset("deleted")
    document_id = instance.upload(dataset_id, path)
    parsed(instance, dataset_id, document_id)
    assert instance.call("DELETE", f"/datasets/{dataset_id}/documents", {"ids": [document_id]})["code"] == 0
    assert instance.search(dataset_id, sentence(3, 2)) == []
    again = parsed(instance, dataset_id, instance.upload(dataset_id, path))
    assert "reused" not in again["progress_msg"]
