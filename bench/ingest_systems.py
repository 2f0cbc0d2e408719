"""The four ways from files to findable chunks that the ingest bench compares. Each is started once, keeps its processes
warm, and is then given files."""

from __future__ import annotations

import multiprocessing
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing.pool import Pool
from pathlib import Path

import redis

from bench import ingest_steps
from bench.ingest_steps import TENANT, Piece
from bench.rest_client import RestClient
from bench.servers import Workers, valkey
from tests.acceptance.instance import Instance, running_instance

_PATIENCE_S = 1800.0
_FILES_A_CALL = 5
_LOOK_S = 0.02
_LONGEST_LOOK_S = 0.5


class System(ABC):
    name: str
    # What part of the pages it is given, so that the slowest does not take most of the time.
    share = 1.0

    @property
    @abstractmethod
    def roots(self) -> list[int]:
        """The processes whose trees do the work."""

    @abstractmethod
    def ingest(self, files: Sequence[Path]) -> None:
        """Return when every chunk of the files is findable."""


class BarePool(System):
    """As many processes as there are cores, and nothing between the steps: no queue, no rows."""

    def __init__(self, name: str, data_dir: Path, pool: Pool, indexer: Workers, step: Callable[[Piece], int]) -> None:
        self.name = name
        self._data_dir = str(data_dir)
        self._pool = pool
        self._indexer = indexer
        self._step = step

    @property
    def roots(self) -> list[int]:
        return [*(child.pid for child in multiprocessing.active_children() if child.pid), *self._indexer.pids]

    def ingest(self, files: Sequence[Path]) -> None:
        planned = self._pool.imap_unordered(partial(ingest_steps.prepare, self._data_dir), map(str, files))
        written = self._pool.imap_unordered(self._step, (piece for pieces in planned for piece in pieces))
        wait_findable(self._data_dir, max(written))


class CeleryTasks(System):
    name = "Celery, acks_late"

    def __init__(self, data_dir: Path, queue_url: str, workers: Workers, indexer: Workers) -> None:
        os.environ["BENCH_QUEUE_URL"] = queue_url
        self._data_dir = str(data_dir)
        self._workers = workers
        self._indexer = indexer
        self._counters = redis.Redis.from_url(queue_url)

    @property
    def roots(self) -> list[int]:
        return [*self._workers.pids, *self._indexer.pids]

    def ingest(self, files: Sequence[Path]) -> None:
        from bench.ingest_celery import DONE, PLANNED, WRITTEN, prepare

        self._counters.delete(DONE, WRITTEN)
        self._counters.set(PLANNED, len(files))
        for path in files:
            prepare.delay(self._data_dir, str(path))
        wait_for_end(lambda: self._count(PLANNED) - self._count(DONE))
        wait_findable(self._data_dir, max(map(int, self._counters.lrange(WRITTEN, 0, -1))))  # type: ignore[arg-type]

    def _count(self, key: str) -> int:
        return int(self._counters.get(key) or 0)  # type: ignore[arg-type]


class Whole(System):
    """Pagemill as its users have it: files handed in by REST, a few to a call, and parsed while others are still on
    their way in, until all of them are DONE, which means findable."""

    def __init__(self, name: str, instance: Instance) -> None:
        self.name = name
        self._instance = instance
        self.dataset_id = instance.dataset("bench")
        self._client = RestClient(instance.address, instance.key())
        self._handed_in = 0

    @property
    def roots(self) -> list[int]:
        return [self._instance.pid]

    def ingest(self, files: Sequence[Path]) -> None:
        self._client.begin()
        for start in range(0, len(files), _FILES_A_CALL):
            self._handed_in += self._client.hand_in(self.dataset_id, files[start : start + _FILES_A_CALL])
        wait_for_end(self._open_tasks)
        assert self._total("run=DONE") == self._handed_in

    def another_dataset(self, name: str) -> str:
        return self._instance.dataset(name)

    def upload(self, files: Sequence[Path]) -> list[str]:
        return [self._instance.upload(self.dataset_id, path) for path in files]

    def parse(self, documents: Sequence[str]) -> None:
        self._client.begin()
        self._client.parse(self.dataset_id, documents)
        while self._total("run=RUNNING&run=UNSTART"):
            time.sleep(_LOOK_S)

    def are_done(self, documents: Sequence[str]) -> bool:
        return all(self._instance.document(self.dataset_id, one)["run"] == "DONE" for one in documents)

    def _open_tasks(self) -> int:
        """None are left once all is DONE: whatever follows from a task is there when it ends."""
        pool = self._client.get("/worker-pool-status")
        return int(pool["queue_size"]) + int(pool["active_tasks"])

    def _total(self, which: str) -> int:
        path = f"/datasets/{self.dataset_id}/documents?page_size=1&{which}"
        return int(self._client.get(path)["data"]["total"])


def wait_for_end(open_tasks: Callable[[], int]) -> None:
    """Ask how many tasks are left, the more often the fewer they are: asking costs the system that is asked."""
    while left := open_tasks():
        time.sleep(min(_LONGEST_LOOK_S, max(_LOOK_S, left * _LOOK_S / 2)))


def wait_findable(data_dir: str, written: int) -> None:
    assert ingest_steps.opened_index(data_dir).wait_findable(TENANT, written, _PATIENCE_S)


@contextmanager
def bare(folder: Path, processes: int, *, as_ragflow: bool = False) -> Iterator[BarePool]:
    name = "as RAGFlow's default" if as_ragflow else f"bare loop, {processes} processes"
    step = ingest_steps.ingest_as_ragflow if as_ragflow else ingest_steps.ingest
    with _indexer(folder) as indexer:
        pool = multiprocessing.get_context("spawn").Pool(processes, ingest_steps.warm)
        with pool:
            pool.map(_nothing, range(processes * 4), chunksize=1)
            yield BarePool(name, folder, pool, indexer, step)


@contextmanager
def celery(folder: Path, processes: int) -> Iterator[CeleryTasks]:
    with ExitStack() as stack:
        indexer = stack.enter_context(_indexer(folder))
        url = stack.enter_context(valkey(folder / "q"))
        options = ("-A", "bench.ingest_celery", "worker", "--loglevel=WARNING", f"--concurrency={processes}")
        command = ["-m", "celery", *options, "--without-gossip", "--without-mingle"]
        workers = Workers([command], {"BENCH_QUEUE_URL": url, "C_FORCE_ROOT": "1"}, folder / "celery.log")
        stack.callback(workers.stop)
        yield CeleryTasks(folder, url, workers, indexer)


@contextmanager
def whole(folder: Path, executors: int) -> Iterator[Whole]:
    folder.mkdir()
    with running_instance(folder / "data", PAGEMILL_EXECUTOR_PROCESSES=str(executors)) as instance:
        yield Whole(f"Pagemill, {executors} executor{'s' if executors > 1 else ''}", instance)


@contextmanager
def _indexer(folder: Path) -> Iterator[Workers]:
    folder.mkdir()
    indexer = Workers([["-m", "api.cli", "indexer", "--data", str(folder)]], {}, folder / "indexer.log")
    try:
        yield indexer
    finally:
        indexer.stop()


def _nothing(_: int) -> None:
    """So that every process of the pool is there and warm."""
