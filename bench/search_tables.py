"""The tables of the search bench, on the terminal and in docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from bench.search_measures import WRITERS, Size
from common.settings import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
_BEGIN, _END = "<!-- search bench: begin -->", "<!-- search bench: end -->"
_SEARCHES = ("4 datasets", "the largest", "half the documents", "10 documents", f"while {WRITERS} write", "bare scan")
_OTHERS = ("filled/s", f"written/s by {WRITERS}", "first search, s", "memory, MB", "disk bytes a chunk")


@dataclass(frozen=True)
class Rows:
    title: str
    headings: Sequence[str]
    cells: Sequence[Sequence[str]]

    def printed(self) -> Table:
        table = Table(title=self.title)
        for number, heading in enumerate(self.headings):
            table.add_column(heading, justify="right" if number else "left")
        for row in self.cells:
            table.add_row(*row)
        return table

    def written(self) -> str:
        lines = [self.headings, ["---", *(["---:"] * (len(self.headings) - 1))], *self.cells]
        return "\n".join([f"{self.title}:", "", *("| " + " | ".join(line) + " |" for line in lines)])


def tables(sizes: Sequence[Size]) -> list[Rows]:
    names = [(size.index, f"{size.chunks:,}") for size in sizes]
    searches = [[*name, *_latencies(size)] for name, size in zip(names, sizes, strict=True)]
    others = [[*name, *_others(size)] for name, size in zip(names, sizes, strict=True)]
    return [
        Rows("Hybrid search, p50 / p99 ms", ("index", "chunks", *_SEARCHES), searches),
        Rows("Writing, starting, memory and disk", ("index", "chunks", *_OTHERS), others),
    ]


def print_tables(console: Console, sizes: Sequence[Size]) -> None:
    for rows in tables(sizes):
        console.print(rows.printed())


def write_page(sizes: Sequence[Size], about: str) -> bool:
    """Put the tables between their marks in docs/benchmarks.md, if it has them."""
    page = PAGE.read_text(encoding="utf-8")
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        return False
    text = "\n\n".join([about, *(rows.written() for rows in tables(sizes))])
    PAGE.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
    return True


def _latencies(size: Size) -> list[str]:
    filtered = (size.largest_dataset, size.half_the_documents, size.ten_documents)
    found = (size.all_datasets, *filtered, size.while_writing, size.bare_scan)
    return [f"{latency.p50_ms:,} / {latency.p99_ms:,}" for latency in found]


def _others(size: Size) -> list[str]:
    rates = [f"{rate:,.0f}" for rate in (size.filled_a_second, size.written_a_second)]
    return [*rates, f"{size.first_search_s:,}", f"{size.memory_mb:,}", f"{size.disk_bytes_a_chunk:,}"]
