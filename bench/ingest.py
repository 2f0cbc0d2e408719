"""The ingest bench: from files to findable chunks, by the bare steps in a pool of processes, by the whole of Pagemill,
by the same steps as Celery tasks, and as RAGFlow's default does it. One run, the same files, the same cores.

    make bench-ingest ARGS="--pages 1200"

Compare the figures of one run only: machines differ, and are busy with other things."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from bench import plots
from bench.ingest_systems import System, Whole, bare, celery, whole
from bench.ingest_tables import Reuse, Run, Summary, tables, write_page
from bench.meter import Meter
from common.settings import ROOT
from tests import pdfs

RESULTS = ROOT / "bench" / "results" / "ingest.json"
CORES = 2
_PAGES_EACH = 100
# Several files, so that every process has had one.
_WARM_UP_PAGES = 8 * _PAGES_EACH
_SETTLED_S = 1.0
_COPIES = 5
console = Console(width=max(Console().width, 100))


class Files:
    """Documents of a hundred pages that differ from each other, so that no chunk is reused."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._source = pdfs.write_pages(folder / "source.pdf", _PAGES_EACH, sentences=24, footer=True).read_bytes()
        self._made = 0

    def make(self, pages: int) -> list[Path]:
        return [self._make_one() for _ in range(max(1, pages // _PAGES_EACH))]

    def _make_one(self) -> Path:
        self._made += 1
        path = self._folder / f"{self._made:05}.pdf"
        path.write_bytes(self._source + f"%{self._made}\n".encode())  # what follows a PDF's end is not read
        return path


def measure(system: System, files: Sequence[Path]) -> Run:
    with Meter(system.roots) as meter:
        began_s = time.monotonic()
        system.ingest(files)
        seconds = time.monotonic() - began_s
    pages = len(files) * _PAGES_EACH
    console.print(f"[dim]{system.name}: {pages:,} pages in {seconds:.1f} s, {pages / seconds:,.0f} pages/s")
    return Run(pages, seconds, meter.cpu_s, meter.peak_mb)


def side_by_side(folder: Path, files: Files, pages: int, rounds: int) -> list[Summary]:
    """The systems take turns, so that a slow minute of the machine hits all of them."""
    with ExitStack() as stack:
        systems: list[System] = [
            stack.enter_context(bare(folder / "bare", CORES)),
            stack.enter_context(whole(folder / "whole", CORES)),
            stack.enter_context(celery(folder / "celery", CORES)),
            stack.enter_context(bare(folder / "ragflow", CORES, as_ragflow=True)),
        ]
        systems[-1].share = 0.1
        summaries = [Summary(system.name) for system in systems]
        for system in systems:
            system.ingest(files.make(int(_WARM_UP_PAGES * system.share)))
        for _ in range(rounds):
            for system, summary in zip(systems, summaries, strict=True):
                summary.runs.append(measure(system, files.make(int(pages * system.share))))
    return summaries


def growth(folder: Path, files: Files, sizes: Sequence[int]) -> list[Summary]:
    """By executors, and by pages."""
    found = []
    with whole(folder / "one", 1) as one:
        one.ingest(files.make(_WARM_UP_PAGES))
        found.append(Summary(one.name, [measure(one, files.make(sizes[1]))]))
    with whole(folder / "two", CORES) as two:
        two.ingest(files.make(_WARM_UP_PAGES))
        found += [Summary(f"{two.name}, {size:,} pages", [measure(two, files.make(size))]) for size in sizes]
    return found


def reuse(folder: Path, files: Files, pages: int) -> Reuse:
    with whole(folder / "reuse", CORES) as system:
        system.ingest(files.make(_WARM_UP_PAGES))
        path = folder / "long.pdf"
        pdfs.write_pages(path, pages, sentences=24, footer=True)
        documents = system.upload([path])
        first_s = _parse_s(system, documents)
        again_s = statistics.median(_parse_s(system, documents) for _ in range(3))
        alone = [_elsewhere_s(system, path, [f"alone {number}"])[0] for number in range(_COPIES)]
        in_a_row = _elsewhere_s(system, path, [f"in a row {number}" for number in range(_COPIES)])
        return Reuse(pages, first_s, again_s, statistics.median(alone), statistics.median(in_a_row))


def _elsewhere_s(system: Whole, path: Path, names: Sequence[str]) -> list[float]:
    """The same file in each of these new datasets, one parse after the other. Before them all is at rest: the chunks of
    earlier copies are written out behind their answers."""
    waiting = []
    for name in names:
        system.dataset_id = system.another_dataset(name)
        waiting.append((system.dataset_id, system.upload([path])))
    time.sleep(_SETTLED_S)
    found = []
    for system.dataset_id, documents in waiting:
        found.append(_parse_s(system, documents))
    return found


def _parse_s(system: Whole, documents: Sequence[str]) -> float:
    began_s = time.monotonic()
    system.parse(documents)
    took_s = time.monotonic() - began_s
    assert system.are_done(documents)
    return took_s


def _speeds(compared: Sequence[Summary]) -> plots.Bars:
    speeds = {one.system: [one.pages_a_second] for one in compared}
    return plots.Bars("From files to findable chunks", "pages/s", ["all steps"], speeds)


def _growth(grown: Sequence[Summary]) -> plots.Lines:
    by_size = [one for one in grown if len({run.pages for run in one.runs}) == 1][1:]
    pages = [float(one.runs[0].pages) for one in by_size]
    return plots.Lines(
        "Pagemill by pages", "pages", "pages/s", pages, {"pages/s": [one.pages_a_second for one in by_size]}, log_x=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1200, help="pages of a round")
    parser.add_argument("--rounds", type=int, default=3, help="the median counts")
    parser.add_argument("--largest", type=int, default=10_000, help="pages of the largest run")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="pm-bench-") as name:
        folder = Path(name)
        files = Files(folder)
        compared = side_by_side(folder, files, options.pages, options.rounds)
        grown = growth(folder, files, (_PAGES_EACH, options.largest // 10, options.largest))
        reused = reuse(folder, files, 1000)
    found = tables(compared, grown)
    for rows in found:
        console.print(rows.printed())
    console.print(str(reused))
    about = (
        f"`make bench-ingest`, {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, load {load:.1f} before it;"
        f" medians of {options.rounds} rounds of {options.pages:,} pages."
    )
    write_page(about, found, reused)
    plots.draw("ingest", [_speeds(compared), _growth(grown)])
    RESULTS.write_text(
        json.dumps(
            {
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
                "cores": os.cpu_count(),
                "compared": [asdict(one) for one in compared],
                "growth": [asdict(one) for one in grown],
                "reuse": asdict(reused),
            },
            indent=1,
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
