"""Executors that are told to stop in the middle of their work, as at every deployment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.instance import EXECUTOR, Instance, running_instance
from tests.pdfs import write_pages
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def instance(short_dir: Path) -> Iterator[Instance]:
    with running_instance(short_dir / "drain") as made:
        yield made


def test_a_drained_executor_counts_nothing_against_its_tasks(instance: Instance, tmp_path: Path) -> None:
    config = {"task_page_size": 2}
    dataset_id = instance.call("POST", "/datasets", {"name": "drain", "parser_config": config})["data"]["id"]
    files = [write_pages(tmp_path / f"{n:02}.pdf", 36, sentences=24, title=str(n)) for n in range(4)]
    documents = [instance.upload(dataset_id, path) for path in files]
    assert instance.parse(dataset_id, *documents) == {"code": 0}
    wait_until(lambda: instance.query("SELECT 1 FROM task WHERE state = 1"), what="an executor at work")
    for victim in instance.children(EXECUTOR):
        victim.terminate()
    for document_id in documents:
        assert instance.wait_ended(dataset_id, document_id)["run"] == "DONE"
    assert "ended with exit code 0; starting again" in instance.output()
    assert instance.query("SELECT SUM(attempt), SUM(losses) FROM task") == [(0, 0)]
    assert instance.stop() == 0
