"""A running parse that is stopped: its process is gone within a second, and nothing of it is found."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.acceptance.instance import PARSER, Instance, running_instance
from tests.processes import alive
from tests.waiting import wait_for, wait_until

pytestmark = pytest.mark.timeout(900)
TRIES = int(os.environ.get("CANCEL_TRIES", "20"))


@pytest.fixture
def instance(short_dir: Path) -> Iterator[Instance]:
    with running_instance(short_dir / "cancel", PAGEMILL_EXECUTOR_PROCESSES="1") as made:
        yield made


def busy_parsers(instance: Instance) -> list[psutil.Process]:
    return [p for p in instance.descendants(PARSER) if _is_busy(p)]


def _is_busy(process: psutil.Process) -> bool:
    try:
        return process.cpu_percent(0.02) > 30
    except psutil.NoSuchProcess:
        return False


def test_a_stopped_parse_ends_its_process_within_a_second(instance: Instance, tmp_path: Path) -> None:
    dice = random.Random(7)
    words = "".join(dice.choice("abcdefghij ") for _ in range(8_000_000))
    path = tmp_path / "long.txt"
    path.write_text(words)
    dataset_id = instance.dataset()
    document_id = instance.upload(dataset_id, path)
    body = {"document_ids": [document_id]}
    taken_s = []
    for _ in range(TRIES):
        assert instance.parse(dataset_id, document_id) == {"code": 0}
        victims = wait_for(lambda: busy_parsers(instance), what="the parser to be at work")
        begin_s = time.monotonic()
        assert instance.call("DELETE", f"/datasets/{dataset_id}/chunks", body) == {"code": 0}
        assert instance.search(dataset_id, words[:200]) == []
        wait_until(lambda victims=victims: not alive(victims), what="the parser to be gone")
        taken_s.append(time.monotonic() - begin_s)
        assert instance.document(dataset_id, document_id)["run"] == "CANCEL"
    taken_s.sort()
    print(f"{TRIES} cancels: p50 {taken_s[TRIES // 2]:.3f} s, worst {taken_s[-1]:.3f} s")
    assert taken_s[int(TRIES * 0.99)] < 1.0
    assert instance.stop() == 0
