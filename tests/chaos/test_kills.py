"""The running product while its processes are killed, drained and emptied: every chunk is there once, as in a calm run.

The seed is printed; CHAOS_SEED=N runs the same order of blows again."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis

from rag.utils.redis_conn import Queue
from tests.acceptance.instance import Instance, alive
from tests.conftest import wait_until
from tests.pdfs import write_pages

pytestmark = pytest.mark.timeout(400)

DOCUMENTS = 16
PAGES = 36
PAGES_A_TASK = 2
Chunks = Counter[tuple[str, str]]


@pytest.fixture
def folder(short_dir: Path, request: pytest.FixtureRequest) -> Path:
    made = short_dir / request.node.name[:30]
    made.mkdir()
    return made


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[[str], Instance]]:
    started: list[Instance] = []

    def make(name: str) -> Instance:
        environ = {"PAGEMILL_EXECUTOR_LEASE_S": "4", "PAGEMILL_EXECUTOR_RENEW_S": "1"}
        instance = Instance(folder / name, **environ)
        instance.start()
        started.append(instance)
        return instance

    yield make
    for instance in started:
        if instance.is_alive:
            instance.stop(signal.SIGKILL)


def ingest(instance: Instance, files: list[Path]) -> tuple[str, dict[str, str]]:
    """Upload and start all files; the dataset's id, and each document's file name by id."""
    config = {"task_page_size": PAGES_A_TASK}
    dataset_id = instance.call("POST", "/datasets", {"name": "chaos", "parser_config": config})["data"]["id"]
    names = {instance.upload(dataset_id, path): path.name for path in files}
    assert instance.parse(dataset_id, *names) == {"code": 0}
    return dataset_id, names


def chunks_of(instance: Instance, dataset_id: str, names: dict[str, str]) -> Chunks:
    found: Chunks = Counter()
    for document_id, name in names.items():
        path = f"/datasets/{dataset_id}/documents/{document_id}/chunks?page_size=100&page="
        page = 1
        while chunks := instance.call("GET", f"{path}{page}")["data"]["chunks"]:
            found.update((name, c["content"] + str(c["positions"])) for c in chunks)
            page += 1
    return found


def rows_of(instance: Instance, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(instance.data / "pagemill.db")) as db:
        return db.execute(sql).fetchall()


class Blows:
    """What befalls an instance; each is survived without anybody's help."""

    def __init__(self, instance: Instance, dice: random.Random) -> None:
        self._instance = instance
        self._dice = dice
        self.dealt: Counter[str] = Counter()

    def deal(self) -> None:
        name, blow = self._dice.choice(
            [
                ("kill executor", lambda: self._signal("api.cli executor", signal.SIGKILL)),
                ("kill parser", lambda: self._signal("rag.svr.parser_child", signal.SIGKILL)),
                ("drain executor", lambda: self._signal("api.cli executor", signal.SIGTERM)),
                ("kill indexer", lambda: self._signal("api.cli indexer", signal.SIGKILL)),
                ("kill valkey", lambda: self._signal("valkey-server", signal.SIGKILL)),
                ("flush valkey", self._flush),
                ("stop executor", self._sleep),
            ]
        )
        blow()
        self.dealt[name] += 1

    def _signal(self, name: str, signum: int) -> None:
        victims = self._instance.children(name)
        if victims:
            try:
                self._dice.choice(victims).send_signal(signum)
            except psutil.NoSuchProcess:
                return

    def _flush(self) -> None:
        queue = Queue(f"unix://{self._instance.data}/run/valkey.sock")
        try:
            queue._redis.flushall()
        except redis.RedisError:
            return  # it was just killed, and is empty in a moment anyway
        finally:
            queue.close()

    def _sleep(self) -> None:
        """Past its lease, and awake again: what it held is somebody else's by then."""
        victims = self._instance.children("api.cli executor")
        if victims:
            victim = self._dice.choice(victims)
            with suppress(psutil.NoSuchProcess):
                victim.suspend()
                time.sleep(5.0)
                victim.resume()


def test_every_chunk_is_there_once_whatever_is_killed(start: Callable[[str], Instance], folder: Path) -> None:
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1_000_000))
    print(f"CHAOS_SEED={seed}")
    files = [write_pages(folder / f"{n:02}.pdf", PAGES, sentences=24, title=str(n)) for n in range(DOCUMENTS)]

    calm = start("calm")
    dataset_id, names = ingest(calm, files)
    for document_id in names:
        assert calm.wait_ended(dataset_id, document_id, 120)["run"] == "DONE"
    expected = chunks_of(calm, dataset_id, names)
    assert sum(expected.values()) >= DOCUMENTS * PAGES
    assert calm.stop() == 0

    wild = start("wild")
    blows = Blows(wild, random.Random(seed))
    dataset_id, names = ingest(wild, files)
    until_s = time.monotonic() + 25
    while time.monotonic() < until_s:
        blows.deal()
        time.sleep(blows._dice.uniform(0.1, 0.9))
    for document_id in names:
        document = wild.wait_ended(dataset_id, document_id, 150)
        assert document["run"] == "DONE", document["progress_msg"]
    got = chunks_of(wild, dataset_id, names)
    print(f"dealt: {dict(blows.dealt)}; lost {len(expected - got)}, doubled {len(got - expected)}")
    assert expected - got == Counter(), "chunks were lost"
    assert got - expected == Counter(), "chunks came twice"
    assert rows_of(wild, "SELECT COUNT(*) FROM task WHERE state NOT IN (3, 4)") == [(0,)]
    assert sum(document["chunk_count"] for document in _documents(wild, dataset_id)) == sum(expected.values())
    processes = wild.children()
    assert wild.stop() == 0
    wait_until(lambda: not alive(processes), what="all children to be gone")


def _documents(instance: Instance, dataset_id: str) -> list[dict[str, Any]]:
    documents: list[dict[str, Any]] = instance.call("GET", f"/datasets/{dataset_id}/documents?page_size=100")["data"][
        "docs"
    ]
    return documents


def test_a_drained_executor_counts_nothing_against_its_tasks(start: Callable[[str], Instance], folder: Path) -> None:
    instance = start("drain")
    files = [write_pages(folder / f"{n:02}.pdf", PAGES, sentences=24, title=str(n)) for n in range(4)]
    dataset_id, names = ingest(instance, files)
    for victim in instance.children("api.cli executor"):
        victim.terminate()
    for document_id in names:
        assert instance.wait_ended(dataset_id, document_id, 120)["run"] == "DONE"
    assert "ended with exit code 0; starting again" in instance.output()
    assert rows_of(instance, "SELECT SUM(attempt), SUM(losses) FROM task") == [(0, 0)]
    assert instance.stop() == 0
