"""The API bench: the running product over rows of a large tenant. Pages of lists, submits by fifty clients while the
executors are busy, five hundred followers, and the web server beside others that could serve the same app.

    make bench-api ARGS="--documents 100000 --mariadb"

Latencies are the clients', on the same cores as everything else; CPU milliseconds are the web server's own, and do not
depend on what else the machine does. Compare the figures of one run only."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from api.db.database import open_rows
from api.db.migrations import migrate
from api.db.services.account_service import AccountService
from bench import plots
from bench.api_measures import Measured, busy_executors, followers, pages, read_pages, submits, whole_reads
from bench.api_rows import Filled, fill
from bench.api_servers import Served, compare, kinds
from bench.api_tables import PAGE, Figures, print_tables, tables, write_page
from bench.servers import mariadb
from common.settings import ROOT
from rag.utils.embedder import PackagedEmbedder
from tests.acceptance.instance import Instance, running_instance

RESULTS = ROOT / "bench" / "results" / "api.json"
SQLITE, MARIADB = "SQLite", "MariaDB"
_PAGE_AIM_MS, _SUBMIT_AIM_MS = 50.0, 100.0
_BUSY_DOCUMENTS = 40
console = Console(width=max(Console().width, 140))


def measure(name: str, folder: Path, database_url: str, options: argparse.Namespace) -> Figures:
    """Fill the rows, start the product over them, and ask."""
    folder.mkdir()
    filled = _filled(database_url or f"sqlite:///{folder / 'pagemill.db'}", options.documents)
    console.print(f"[dim]{name}: filled {filled.documents:,} documents, {filled.tasks:,} tasks")
    environ = {"PAGEMILL_DATABASE_URL": database_url} if database_url else {}
    with running_instance(folder, **environ) as instance:
        seen_pages = list(_shown(read_pages(instance, pages(filled), options.times)))
        seen_whole = list(_shown(read_pages(instance, whole_reads(filled), max(20, options.times // 10))))
        seen_submits = list(_shown(_busy_submits(instance, folder.parent, options.seconds)))
        followed = followers(instance, folder.parent, options.seconds)
    return Figures(name, filled.documents, filled.tasks, seen_pages, seen_whole, seen_submits, followed)


def _filled(database_url: str, documents: int) -> Filled:
    rows = open_rows(database_url)
    migrate(rows)
    accounts = AccountService(rows, PackagedEmbedder.name)
    accounts.ensure_admin()
    filled = fill(rows, accounts.admin(), documents)
    rows.close_connection()
    return filled


def _busy_submits(instance: Instance, folder: Path, seconds: float) -> Iterator[Measured]:
    with busy_executors(instance, folder, _BUSY_DOCUMENTS):
        yield from submits(instance, seconds)


def _shown(measured: Iterator[Measured]) -> Iterator[Measured]:
    for one in measured:
        console.print(f"[dim]{one.name}: {one.latencies} ms, {one.cpu_ms} ms CPU, load {one.load} {one.problems or ''}")
        yield one


def print_aims(figures: Sequence[Figures]) -> None:
    for one in figures:
        worst = max(one.pages, key=lambda page: page.latencies.p99_ms)
        _say_aim(f"{one.name}: the slowest page ({worst.name})", worst.latencies.p99_ms, _PAGE_AIM_MS)
        for submit in one.submits:
            _say_aim(f"{one.name}: {submit.name}", submit.latencies.p99_ms, _SUBMIT_AIM_MS)


def _say_aim(what: str, seen_ms: float, aim_ms: float) -> None:
    word = "met" if seen_ms < aim_ms else "missed"
    console.print(f"{what}: p99 {seen_ms} ms, under {aim_ms:g} ms: {word}")


def panels(figures: Sequence[Figures], servers: Sequence[Served]) -> Iterator[plots.Lines | plots.Bars]:
    if figures:
        shown = [page.name for page in figures[0].pages if page.name.startswith(("documents", "by", "run", "keywords"))]
        numbers = [float(number) for number in range(1, len(shown) + 1)]
        lines = {
            f"{one.name}, {label}": [getattr(page.latencies, field) for page in one.pages if page.name in shown]
            for one in figures
            for field, label in (("p50_ms", "p50"), ("p99_ms", "p99"))
        }
        yield plots.Lines("Pages of lists", "kind of page, as in the table", "ms", numbers, lines)
    if servers:
        rates = {one.server: [one.median(one.a_second, kind) for kind in kinds(servers)] for one in servers}
        yield plots.Bars("The same app under other servers", "requests/s", kinds(servers), rates)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000, help="in the large dataset; eleven tasks each")
    parser.add_argument("--times", type=int, default=150, help="how often each page is asked for")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each way to submit, and for the followers")
    parser.add_argument("--mariadb", action="store_true", help="also over MariaDB")
    parser.add_argument("--rounds", type=int, default=2, help="of the other web servers; the median counts")
    parser.add_argument("--no-servers", action="store_true", help="leave the other web servers out")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    console.print(f"[dim]load before: {load_before:.1f} on {os.cpu_count()} cores")
    figures: list[Figures] = []
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pm-bench-")))
        root.chmod(0o755)  # MariaDB runs as another user
        figures.append(measure(SQLITE, root / "sqlite", "", options))
        if options.mariadb:
            url = stack.enter_context(mariadb(root / "server"))
            figures.append(measure(MARIADB, root / "mariadb", url, options))
    servers = [] if options.no_servers else compare(3.0, options.rounds)
    found = tables(figures, servers)
    print_tables(console, found)
    print_aims(figures)
    plots.draw("api", list(panels(figures, servers)))
    facts = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "load_before": round(load_before, 2),
        "figures": [asdict(one) for one in figures],
        "servers": [asdict(one) for one in servers],
    }
    RESULTS.write_text(json.dumps(facts, indent=1) + "\n")
    about = f"{command()}, {datetime.now(UTC).date()}, {os.cpu_count()} cores, load before {load_before:.1f}."
    if write_page(found, about):
        console.print(f"written to {PAGE.relative_to(ROOT)}")


def command() -> str:
    arguments = " ".join(sys.argv[1:])
    return f'`make bench-api ARGS="{arguments}"`' if arguments else "`make bench-api`"


if __name__ == "__main__":
    main()
