"""The search bench: hybrid retrieval and upserts at several sizes, on the embedded index and on Elasticsearch.

    make bench-search ARGS="--sizes 10000 100000 --elastic-sizes 10000"

Four datasets of uneven size. Questions are asked over all of them, over the largest, and within ten documents; then all
over again while four processes write. Compare the figures of one run only."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from bench import plots
from bench.made_chunks import TENANT, Maker, batches
from bench.servers import Workers
from common.settings import ROOT, Settings, load
from rag.utils.doc_index import DocIndex, Query
from rag.utils.doc_indexes import open_index

RESULTS = ROOT / "bench" / "results" / "search.json"
DATASETS = 4
WRITERS = 4
_BATCH = 128
_QUESTIONS = 200
_LIMIT = 90  # what a page of 30 hits is cut out of
_WRITE_S = 10.0
_PATIENCE_S = 1800.0
console = Console(width=max(Console().width, 110))


@dataclass(frozen=True)
class Latency:
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class Size:
    index: str
    chunks: int
    filled_a_second: float
    all_datasets: Latency
    largest_dataset: Latency
    ten_documents: Latency
    while_writing: Latency
    written_a_second: float


def fill(index: DocIndex, first: int, last: int) -> float:
    """Chunks a second, until all are findable."""
    maker, written, began_s = Maker(DATASETS, seed=first + 1), 0, time.monotonic()
    for records, vectors in batches(maker, first, last, _BATCH):
        written = index.upsert(records, vectors)
    assert index.wait_findable(TENANT, written, _PATIENCE_S)
    return (last - first) / (time.monotonic() - began_s)


def ask(index: DocIndex, datasets: Sequence[int], documents: int = 0) -> Latency:
    maker, taken_ms = Maker(DATASETS, seed=99), []
    for number in range(_QUESTIONS + 10):
        terms, vector = maker.question()
        chosen = tuple(f"d{number + place}" for place in range(documents)) or None
        sets = tuple(f"set{dataset}" for dataset in datasets)
        query = Query(TENANT, sets, terms, vector, limit=_LIMIT, document_ids=chosen)
        began_s = time.perf_counter()
        index.search(query)
        taken_ms.append((time.perf_counter() - began_s) * 1000)
    p50, p99 = np.percentile(taken_ms[10:], (50, 99))  # the first ones load what is kept
    return Latency(round(float(p50), 1), round(float(p99), 1))


def write_on(settings: Settings, first: int, stop: Event, count: multiprocessing.Queue[int]) -> None:
    """A writer of its own process: batches until told to stop."""
    index, maker, written = open_index(settings), Maker(DATASETS, seed=first), 0
    while not stop.is_set():
        index.upsert(*maker.batch(first + written, _BATCH))
        written += _BATCH
    index.close()
    count.put(written)


def ask_while_writing(settings: Settings, index: DocIndex, first: int) -> tuple[Latency, float]:
    context = multiprocessing.get_context("spawn")
    stop, count = context.Event(), context.Queue()
    targets = [first + number * 10_000_000 for number in range(WRITERS)]
    writers = [context.Process(target=write_on, args=(settings, target, stop, count)) for target in targets]
    began_s = time.monotonic()
    for writer in writers:
        writer.start()
    latency = ask(index, range(DATASETS))
    time.sleep(max(0.0, began_s + _WRITE_S - time.monotonic()))
    stop.set()
    written = sum(count.get() for _ in writers)
    for writer in writers:
        writer.join()
    return latency, written / (time.monotonic() - began_s)


def measure(name: str, settings: Settings, sizes: Sequence[int]) -> list[Size]:
    index, found, held = open_index(settings), [], 0
    for size in sizes:
        filled = fill(index, held, size)
        held = size
        at = [ask(index, range(DATASETS)), ask(index, [0]), ask(index, range(DATASETS), documents=10)]
        while_writing, written = ask_while_writing(settings, index, 1_000_000_000 + size * 100)
        found.append(Size(name, size, filled, *at, while_writing, written))
        console.print(f"[dim]{name}, {size:,} chunks: {at[0].p50_ms} / {at[0].p99_ms} ms")
    index.close()
    return found


@contextmanager
def embedded(folder: Path) -> Iterator[Settings]:
    folder.mkdir()
    indexer = Workers([["-m", "api.cli", "indexer", "--data", str(folder)]], {}, folder / "indexer.log")
    try:
        yield load(data_dir=folder).settings
    finally:
        indexer.stop()


@contextmanager
def elastic(folder: Path) -> Iterator[Settings]:
    from tests.servers.elasticsearch import ElasticServer

    server = ElasticServer(folder)
    try:
        server.start()
        yield load(data_dir=folder / "data", overrides={"index.url": server.url}).settings
    finally:
        server.stop()


def print_table(sizes: Sequence[Size]) -> None:
    table = Table(title="Hybrid search, p50 / p99 ms, and chunks written a second")
    headings = (
        "index",
        "chunks",
        "4 datasets",
        "the largest",
        "10 documents",
        "while writing",
        "written/s",
        "filled/s",
    )
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "index" else "right")
    for size in sizes:
        latencies = (size.all_datasets, size.largest_dataset, size.ten_documents, size.while_writing)
        cells = [f"{at.p50_ms} / {at.p99_ms}" for at in latencies]
        table.add_row(
            size.index, f"{size.chunks:,}", *cells, f"{size.written_a_second:,.0f}", f"{size.filled_a_second:,.0f}"
        )
    console.print(table)


def panels(sizes: Sequence[Size]) -> Iterator[plots.Lines]:
    """A panel for each index: p99 by size."""
    for name in dict.fromkeys(size.index for size in sizes):
        own = [size for size in sizes if size.index == name]
        by_kind = {
            "4 datasets": [size.all_datasets.p99_ms for size in own],
            "the largest": [size.largest_dataset.p99_ms for size in own],
            "10 documents": [size.ten_documents.p99_ms for size in own],
            "while 4 processes write": [size.while_writing.p99_ms for size in own],
        }
        chunks = [float(size.chunks) for size in own]
        yield plots.Lines(f"{name}: p99 of a search", "chunks", "ms", chunks, by_kind, log_x=True, log_y=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000], help="embedded index")
    parser.add_argument("--elastic-sizes", type=int, nargs="*", default=[10_000, 100_000], help="Elasticsearch")
    options = parser.parse_args()
    systems: list[tuple[str, Callable[[Path], object], list[int]]] = [
        ("embedded", embedded, options.sizes),
        ("Elasticsearch", elastic, options.elastic_sizes),
    ]
    found: list[Size] = []
    with tempfile.TemporaryDirectory(prefix="pm-bench-") as name:
        for number, (title, opened, sizes) in enumerate(systems):
            if sizes:
                with opened(Path(name) / str(number)) as settings:  # type: ignore[attr-defined]
                    found += measure(title, settings, sizes)
    print_table(found)
    plots.draw("search", list(panels(found)))
    at = datetime.now(UTC).isoformat(timespec="seconds")
    facts = {"at": at, "cores": os.cpu_count(), "sizes": [asdict(size) for size in found]}
    RESULTS.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
