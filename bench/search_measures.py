"""What the search bench measures of an index that holds so many chunks: filling it, its first search, searches with and
without filters, searches while others write, memory and disk."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path

import numpy as np
import psutil

from bench.made_chunks import DIMENSION, OF_A_DOCUMENT, TENANT, Maker, batches
from common.settings import Settings
from rag.utils.doc_index import DocIndex, Query, Scope
from rag.utils.doc_indexes import open_index

DATASETS = 4
WRITERS = 4
_ALL = range(DATASETS)
_BATCH = 128
_QUESTIONS = 200
_WARMING = 10  # the first ones load what is kept
_LIMIT = 90  # what a page of 30 hits is cut out of
_WRITE_S = 10.0
_PATIENCE_S = 1800.0
# Where the chunks of the writers begin: no size comes so far.
_WRITTEN_FROM = 1_000_000_000
_OF_A_WRITER = 10_000_000


@dataclass(frozen=True)
class Latency:
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class Size:
    index: str
    chunks: int
    filled_a_second: float
    first_search_s: float
    all_datasets: Latency
    largest_dataset: Latency
    half_the_documents: Latency
    ten_documents: Latency
    while_writing: Latency
    written_a_second: float
    # A matrix of so many vectors, scanned and nothing else: how fast the machine was just then.
    bare_scan: Latency
    memory_mb: int
    disk_bytes_a_chunk: int


def measure(name: str, settings: Settings, size: int, folder: Path) -> Size:
    """Of an index that is empty, with its files in the folder."""
    filled = fill(settings, size)
    disk_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    before_mb = _memory_mb(with_children=False)
    index = open_index(settings)
    first_s = _first_search_s(index)
    documents = -(-size // OF_A_DOCUMENT)
    found = (
        ask(index, _ALL),
        ask(index, [0]),
        ask(index, _ALL, lambda number: range(number % 2, documents, 2)),
        ask(index, _ALL, lambda number: [place % documents for place in range(number, number + 10)]),
    )
    memory_mb = _memory_mb(with_children=True) - before_mb
    while_writing, written = ask_while_writing(settings, index)
    index.close()
    bare = bare_scan(size)
    return Size(name, size, filled, first_s, *found, while_writing, written, bare, memory_mb, disk_bytes // size)


def fill(settings: Settings, size: int) -> float:
    """Chunks a second, making them included, until all are findable."""
    index, maker, written, began_s = open_index(settings), Maker(DATASETS), 0, time.monotonic()
    for records, vectors in batches(maker, 0, size, _BATCH):
        written = index.upsert(records, vectors)
    assert index.wait_findable(TENANT, written, _PATIENCE_S)
    taken_s = time.monotonic() - began_s
    held = sum(index.count(Scope(TENANT, f"set{dataset}")) for dataset in _ALL)
    assert held == size, f"{held} of {size} chunks are there"
    index.close()
    return round(size / taken_s, 1)


def ask(index: DocIndex, datasets: Sequence[int], documents: Callable[[int], Sequence[int]] | None = None) -> Latency:
    """`documents` gives the numbers of those that a question is limited to."""
    maker, taken_ms = Maker(DATASETS, seed=99), []
    for number in range(_QUESTIONS + _WARMING):
        query = _query(maker, datasets, documents(number) if documents else None)
        began_s = time.perf_counter()
        index.search(query)
        taken_ms.append((time.perf_counter() - began_s) * 1000)
    return _latency(taken_ms[_WARMING:])


def ask_while_writing(settings: Settings, index: DocIndex) -> tuple[Latency, float]:
    """Questions over all datasets, and the chunks a second that the writers write into them meanwhile."""
    context = multiprocessing.get_context("spawn")
    start, stop, rates = context.Barrier(WRITERS + 1), context.Event(), context.Queue()
    firsts = [_WRITTEN_FROM + number * _OF_A_WRITER for number in range(WRITERS)]
    writers = [context.Process(target=write_on, args=(settings, first, start, stop, rates)) for first in firsts]
    for writer in writers:
        writer.start()
    start.wait()
    until_s = time.monotonic() + _WRITE_S
    latency = ask(index, _ALL)
    time.sleep(max(0.0, until_s - time.monotonic()))
    stop.set()
    written = sum(rates.get() for _ in writers)
    for writer in writers:
        writer.join()
    return latency, round(written, 1)


def write_on(settings: Settings, first: int, start: Barrier, stop: Event, rates: multiprocessing.Queue[float]) -> None:
    """A writer in a process of its own: batches until told to stop."""
    index, maker, written = open_index(settings), Maker(DATASETS, seed=first), 0
    start.wait()
    began_s = time.monotonic()
    for records, vectors in batches(maker, first, first + _OF_A_WRITER, _BATCH):
        if stop.is_set():
            break
        index.upsert(records, vectors)
        written += len(records)
    rates.put(written / (time.monotonic() - began_s))
    index.close()


def bare_scan(size: int) -> Latency:
    dice = np.random.default_rng(3)
    matrix, taken_ms = dice.random((size, DIMENSION), np.float32), []
    for _ in range(_QUESTIONS + _WARMING):
        vector = dice.random(DIMENSION, np.float32)
        began_s = time.perf_counter()
        np.vecdot(matrix, vector)
        taken_ms.append((time.perf_counter() - began_s) * 1000)
    return _latency(taken_ms[_WARMING:])


def _first_search_s(index: DocIndex) -> float:
    query = _query(Maker(DATASETS, seed=98), _ALL, None)
    began_s = time.perf_counter()
    index.search(query)
    return round(time.perf_counter() - began_s, 2)


def _query(maker: Maker, datasets: Sequence[int], documents: Sequence[int] | None) -> Query:
    terms, vector = maker.question()
    chosen = None if documents is None else tuple(f"d{number}" for number in documents)
    sets = tuple(f"set{dataset}" for dataset in datasets)
    return Query(TENANT, sets, terms, vector, limit=_LIMIT, document_ids=chosen)


def _latency(taken_ms: Sequence[float]) -> Latency:
    p50, p99 = np.percentile(taken_ms, (50, 99))
    return Latency(round(float(p50), 1), round(float(p99), 1))


def _memory_mb(*, with_children: bool) -> int:
    own = psutil.Process()
    processes = [own, *(own.children(recursive=True) if with_children else [])]
    return int(sum(process.memory_info().rss for process in processes)) >> 20
