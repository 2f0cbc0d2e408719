"""The search bench: hybrid retrieval and upserts at several sizes, on the embedded index and on Elasticsearch.

    make bench-search ARGS="--sizes 10000 100000 --elastic-sizes 10000"

Four datasets of uneven size, a fresh index for each size. What is measured is in bench/search_measures.py. Compare the
figures of one run only."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from bench import plots
from bench.search_measures import WRITERS, Size, measure
from bench.search_tables import PAGE, print_tables, write_page
from bench.servers import Workers
from common.settings import ROOT, Settings, load

RESULTS = ROOT / "bench" / "results" / "search.json"
EMBEDDED, ELASTIC = "embedded", "Elasticsearch"
# What is aimed at for p99 over four datasets in the embedded index, by chunks.
_AIMS_MS = {100_000: 50.0, 1_000_000: 250.0}
console = Console(width=max(Console().width, 120))


@contextmanager
def embedded(folder: Path) -> Iterator[Settings]:
    folder.mkdir()
    indexer = Workers([["-m", "api.cli", "indexer", "--data", str(folder)]], {}, folder.with_suffix(".log"))
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
        yield load(data_dir=folder / "unused", overrides={"index.url": server.url}).settings
    finally:
        server.stop()


_SYSTEMS: dict[str, Callable[[Path], AbstractContextManager[Settings]]] = {EMBEDDED: embedded, ELASTIC: elastic}


def measure_all(sizes: dict[str, Sequence[int]]) -> Iterator[Size]:
    """Each size in a folder of its own, which goes when it is measured."""
    for name, opened in _SYSTEMS.items():
        for size in sizes[name]:
            with tempfile.TemporaryDirectory(prefix="pm-bench-") as root:
                Path(root).chmod(0o755)  # Elasticsearch runs as another user
                with opened(Path(root) / "index") as settings:
                    found = measure(name, settings, size, Path(root) / "index")
            console.print(
                f"[dim]{name}, {size:,} chunks: {found.all_datasets.p50_ms} / {found.all_datasets.p99_ms} ms,"
                f" filled at {found.filled_a_second:,.0f} a second"
            )
            yield found


def print_aims(sizes: Sequence[Size]) -> None:
    for size in sizes:
        aim_ms = _AIMS_MS.get(size.chunks)
        if size.index == EMBEDDED and aim_ms is not None:
            seen_ms = size.all_datasets.p99_ms
            word = "met" if seen_ms < aim_ms else "missed"
            console.print(f"{size.chunks:,} chunks in 4 datasets: p99 {seen_ms} ms, under {aim_ms:g} ms: {word}")


def print_left_out(sizes: dict[str, Sequence[int]]) -> None:
    left_out = [size for size in sizes[EMBEDDED] if size > max(sizes[ELASTIC], default=0)]
    if sizes[ELASTIC] and left_out:
        console.print(
            f"{ELASTIC} is left out at {', '.join(f'{size:,}' for size in left_out)} chunks: it takes some 500 chunks"
            " a second on two cores, which is over half an hour for a million. --elastic-sizes 1000000 measures it."
        )


def panels(sizes: Sequence[Size]) -> Iterator[plots.Lines]:
    """A panel for each index: p99 by size."""
    for name in dict.fromkeys(size.index for size in sizes):
        own = [size for size in sizes if size.index == name]
        by_kind = {
            "4 datasets": [size.all_datasets.p99_ms for size in own],
            "the largest": [size.largest_dataset.p99_ms for size in own],
            "half the documents": [size.half_the_documents.p99_ms for size in own],
            "10 documents": [size.ten_documents.p99_ms for size in own],
            f"while {WRITERS} processes write": [size.while_writing.p99_ms for size in own],
        }
        if name == EMBEDDED:
            by_kind["a bare scan"] = [size.bare_scan.p99_ms for size in own]
        chunks = [float(size.chunks) for size in own]
        yield plots.Lines(f"{name}: p99 of a search", "chunks", "ms", chunks, by_kind, log_x=True, log_y=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000], help="embedded index")
    parser.add_argument("--elastic-sizes", type=int, nargs="*", default=[10_000, 100_000], help=ELASTIC)
    options = parser.parse_args()
    sizes: dict[str, Sequence[int]] = {EMBEDDED: options.sizes, ELASTIC: options.elastic_sizes}
    load_before = os.getloadavg()[0]
    console.print(f"[dim]load before: {load_before:.1f} on {os.cpu_count()} cores")
    print_left_out(sizes)
    found = list(measure_all(sizes))
    print_tables(console, found)
    print_aims(found)
    print_left_out(sizes)
    plots.draw("search", list(panels(found)))
    facts = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "load_before": round(load_before, 2),
        "sizes": [asdict(size) for size in found],
    }
    RESULTS.write_text(json.dumps(facts, indent=1) + "\n")
    if write_page(found, f"{command()}, {datetime.now(UTC).date()}, {os.cpu_count()} cores, load {load_before:.1f}."):
        console.print(f"written to {PAGE.relative_to(ROOT)}")


def command() -> str:
    arguments = " ".join(sys.argv[1:])
    return f'`make bench-search ARGS="{arguments}"`' if arguments else "`make bench-search`"


if __name__ == "__main__":
    main()
