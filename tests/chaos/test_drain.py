"""Executors that are told to stop in the middle of their work, as at every deployment."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.instance import Instance
from tests.pdfs import write_pages

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def instance(short_dir: Path) -> Iterator[Instance]:
    made = Instance(short_dir / "drain")
    made.start()
    yield made
    if made.is_alive:
        made.stop(signal.SIGKILL)


def test_a_drained_executor_counts_nothing_against_its_tasks(instance: Instance, tmp_path: Path) -> None:
    config = {"task_page_size": 2}
    dataset_id = instance.call("POST", "/datasets", {"name": "drain", "parser_config": config})["data"]["id"]
    files = [write_pages(tmp_path / f"{n:02}.pdf", 36, sentences=24, title=str(n)) for n in range(4)]
    documents = [instance.upload(dataset_id, path) for path in files]
    assert instance.parse(dataset_id, *documents) == {"code": 0}
    for victim in instance.children("api.cli executor"):
        victim.terminate()
    for document_id in documents:
        assert instance.wait_ended(dataset_id, document_id, 120)["run"] == "DONE"
    assert "ended with exit code 0; starting again" in instance.output()
    with closing(sqlite3.connect(instance.data / "pagemill.db")) as db:
        assert db.execute("SELECT SUM(attempt), SUM(losses) FROM task").fetchall() == [(0, 0)]
    assert instance.stop() == 0
