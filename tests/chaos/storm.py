"""The storm: documents keep coming while everything that can be killed, flushed, stopped and restarted is. In the end
every document is DONE, and its chunks are those of a calm run, each of them once.

`make chaos` runs it for ten minutes. The seed is printed; `make chaos ARGS="--seed N"` rolls the same dice again."""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.acceptance.instance import running_instance
from tests.chaos.blows import Blows, Kill
from tests.chaos.feeder import Feeder, chunks_of, run_calmly
from tests.chaos.site import Site, site
from tests.waiting import wait_until

_SETTLE_S = 240.0
console = Console(width=max(Console().width, 100))


@dataclass
class Report:
    seed: int
    seconds: int
    documents: int = 0
    tasks: int = 0
    claims: int = 0
    stopped: int = 0
    dealt: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    duplicated: int = 0
    stuck: int = 0
    not_done: dict[str, str] = field(default_factory=dict)
    miscounted: int = 0
    pages_given_up: int = 0
    settled_s: float = 0.0
    chunks: int = 0
    recoveries_s: list[float] = field(default_factory=list)
    host_recoveries_s: list[float] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not (
            self.lost or self.duplicated or self.stuck or self.not_done or self.miscounted or self.pages_given_up
        )

    def show(self) -> None:
        table = Table(title=f"{self.seconds} s of storm, seed {self.seed}")
        table.add_column("what")
        table.add_column("figure", justify="right")
        for name, count in sorted(self.dealt.items()):
            table.add_row(name, str(count))
        table.add_section()
        for name, figure in (
            ("documents (of these stopped and started again)", f"{self.documents} ({self.stopped})"),
            ("tasks, and claims of them", f"{self.tasks:,} / {self.claims:,}"),
            ("chunks of the calm run", f"{self.chunks:,}"),
            ("chunks lost", str(self.lost)),
            ("chunks duplicated", str(self.duplicated)),
            ("documents stuck", str(self.stuck)),
            ("documents that did not end DONE", str(len(self.not_done))),
            ("documents whose counts are wrong", str(self.miscounted)),
            ("pages given up as bad", str(self.pages_given_up)),
            ("from the last blow until all was done", f"{self.settled_s:.1f} s"),
            ("killed executor's task running again, p50 / p99", _p50_p99(self.recoveries_s)),
            ("the same after the loss of a host", _p50_p99(self.host_recoveries_s)),
        ):
            table.add_row(name, figure)
        console.print(table)
        for document_id, why in self.not_done.items():
            console.print(f"{document_id}: {why}", markup=False)


def run_storm(folder: Path, seconds: int, seed: int, most: int = 100_000) -> Report:
    """`most` bounds the number of documents."""
    report = Report(seed, seconds)
    files = folder / "files"
    files.mkdir()
    with site(folder / "wild") as wild:
        feeder = Feeder(wild.instance, files, most, random.Random(seed + 1))
        blows = Blows(wild, random.Random(seed))
        feeder.start()
        _blow(blows, feeder, seconds, random.Random(seed + 2))
        _settle(wild, feeder, blows, report)
        got = chunks_of(wild.instance, feeder.dataset_id, feeder.names)
        _count(wild, blows, report)
        report.documents, report.stopped = len(feeder.names), feeder.stopped
        report.dealt = dict(blows.dealt)
    with running_instance(folder / "calm") as calm:
        expected = run_calmly(calm, files, report.documents)
        calm.stop()
    report.chunks = sum(expected.values())
    report.lost, report.duplicated = sum((expected - got).values()), sum((got - expected).values())
    return report


def _blow(blows: Blows, feeder: Feeder, seconds: int, dice: random.Random) -> None:
    wait_until(lambda: feeder.open_documents() > 0, 60, "the first document", look_s=0.1)
    began_s = time.monotonic()
    # The heaviest ones at set times: each of them in every storm, however short.
    heavy = [(dice.uniform(0.1, 0.4), blows.restart_database), (dice.uniform(0.4, 0.7), blows.refuse_index_writes)]
    for _ in range(seconds // 120):
        heavy.append((dice.uniform(0.0, 0.9), blows.restart_database))
    for _ in range(seconds // 300):
        heavy.append((dice.uniform(0.0, 0.9), blows.refuse_index_writes))
    heavy.sort(key=lambda planned: planned[0])
    while (passed_s := time.monotonic() - began_s) < seconds:
        if heavy and passed_s >= heavy[0][0] * seconds:
            heavy.pop(0)[1]()
        else:
            blows.deal_one()
        time.sleep(dice.uniform(0.2, 2.5))
    for _, blow in heavy:  # where the others took so long that its time did not come
        blow()


def _settle(wild: Site, feeder: Feeder, blows: Blows, report: Report) -> None:
    blows.settle()
    feeder.stop()
    began_s = time.monotonic()
    while time.monotonic() - began_s < _SETTLE_S:
        if len(feeder.ended()) == len(feeder.names):
            break
        time.sleep(0.2)
    report.settled_s = time.monotonic() - began_s
    ended = feeder.ended()
    report.stuck = len(feeder.names) - len(ended)
    for document_id in feeder.names:
        if ended.get(document_id) != "DONE":
            report.not_done[document_id] = wild.instance.document(feeder.dataset_id, document_id)["progress_msg"]


def _count(wild: Site, blows: Blows, report: Report) -> None:
    ((report.tasks,),) = wild.query("SELECT COUNT(*) FROM task WHERE task_type != 'finish'")
    ((report.claims,),) = wild.query("SELECT COUNT(*) FROM task_event WHERE kind = 'claim'")
    ((report.miscounted,),) = wild.query(
        "SELECT COUNT(*) FROM document d JOIN (SELECT doc_id, generation, SUM(chunk_count) AS chunks FROM task"
        " WHERE state = 4 GROUP BY doc_id, generation) t ON t.doc_id = d.id AND t.generation = d.generation"
        " WHERE d.run = 3 AND d.chunk_count != t.chunks"
    )
    ((report.pages_given_up,),) = wild.query("SELECT SUM(failed_pages) FROM document")
    claims = {
        (task_id, claim_no): at_ms
        for task_id, claim_no, at_ms in wild.query("SELECT task_id, claim_no, at_ms FROM task_event WHERE kind='claim'")
    }
    for kill in blows.kills:
        found = _recoveries_s(kill, claims)
        (report.host_recoveries_s if kill.whole_host else report.recoveries_s).extend(found)


def _recoveries_s(kill: Kill, claims: dict[tuple[str, int], int]) -> list[float]:
    """From the kill until the next claim of each task it held; of those that had just ended there is none."""
    again = (claims.get((task_id, claim_no + 1)) for task_id, claim_no in kill.held)
    return [(at_ms - kill.at_ms) / 1000 for at_ms in again if at_ms is not None]


def _p50_p99(taken_s: list[float]) -> str:
    if len(taken_s) < 2:
        return "-"
    return f"{statistics.median(taken_s):.1f} / {statistics.quantiles(taken_s, n=100)[98]:.1f} s of {len(taken_s)}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.storm", description=__doc__)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--keep", action="store_true", help="keep the folder with data and logs")
    options = parser.parse_args()
    console.print(f"seed {options.seed}")
    folder = Path(tempfile.mkdtemp(prefix="pmc-"))
    folder.chmod(0o755)
    try:
        report = run_storm(folder, options.seconds, options.seed)
        report.show()
    finally:
        if options.keep:
            console.print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    if not report.is_clean:
        sys.exit("something was lost, doubled, stuck or miscounted")


if __name__ == "__main__":
    main()
