"""The tables of the API bench, on the terminal and in docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from bench.api_measures import Followed, Measured
from bench.api_servers import Served, kinds
from bench.search_tables import PAGE, Rows

_BEGIN, _END = "<!-- api bench: begin -->", "<!-- api bench: end -->"
_HEADINGS = ("", "p50 / p99 ms", "a second", "CPU ms each", "load")


@dataclass(frozen=True)
class Figures:
    """Of one database; `name` is its."""

    name: str
    documents: int
    tasks: int
    pages: Sequence[Measured]
    whole_reads: Sequence[Measured]
    submits: Sequence[Measured]
    followed: Followed | None


def tables(figures: Sequence[Figures], servers: Sequence[Served]) -> list[Rows]:
    found: list[Rows] = []
    for one in figures:
        size = f"{one.name}, {one.documents:,} documents in one dataset, {one.tasks:,} tasks"
        found.append(Rows(f"Pages of lists: {size}", _HEADINGS, _cells(one.pages)))
        found.append(Rows(f"Reads of the whole: {size}", _HEADINGS, _cells(one.whole_reads)))
        if one.submits:
            found.append(Rows(f"50 clients submit while executors parse: {one.name}", _HEADINGS, _cells(one.submits)))
        if one.followed:
            found.append(_followed(one.name, one.followed))
    return [*found, _servers(servers)] if servers else found


def _cells(measured: Sequence[Measured]) -> list[list[str]]:
    return [[m.name, str(m.latencies), f"{m.a_second:,}", f"{m.cpu_ms:,}", f"{m.load:,}"] for m in measured]


def _followed(name: str, found: Followed) -> Rows:
    cells = [
        ["followers", f"{found.followers:,}"],
        ["events a second", f"{found.events_a_second:,.0f}"],
        ["last follower after the first, p50 / p99 ms", str(found.spread)],
        ["CPU of the web server, % of a core", f"{found.cpu_percent}"],
        ["memory for them, MB", f"{found.memory_mb}"],
        ["other calls meanwhile, p50 / p99 ms", str(found.other_calls)],
        ["load", f"{found.load}"],
    ]
    return Rows(f"Followers of one job at once: {name}", ("", "seen"), cells)


def _servers(served: Sequence[Served]) -> Rows:
    headings = ["server", *(f"{kind}: a second, p99 ms, CPU ms" for kind in kinds(served)), "streams", "follows"]
    cells = [
        [
            one.server,
            *(
                f"{one.median(one.a_second, kind):,.0f}, {one.median(one.p99_ms, kind):,.0f},"
                f" {one.median(one.cpu_ms, kind)}"
                for kind in kinds(served)
            ),
            "yes" if one.streams_bodies else "no",
            "yes" if one.follows else "no",
        ]
        for one in served
    ]
    return Rows("The same app under other servers, 50 clients without a pause", headings, cells)


def print_tables(console: Console, found: Sequence[Rows]) -> None:
    for rows in found:
        console.print(rows.printed())


def write_page(found: Sequence[Rows], about: str) -> bool:
    """Put the tables between their marks in docs/benchmarks.md, if it has them."""
    page = PAGE.read_text(encoding="utf-8")
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        return False
    text = "\n\n".join([about, *(rows.written() for rows in found)])
    PAGE.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
    return True
