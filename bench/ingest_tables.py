"""What the ingest bench measured, and its tables: on the terminal and in docs/benchmarks.md."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.search_tables import PAGE, Rows

_BEGIN, _END = "<!-- ingest bench: begin -->", "<!-- ingest bench: end -->"
_MEASURES = ("pages/s", "of the first", "CPU s per 1,000 pages", "peak memory, MB")


@dataclass
class Run:
    pages: int
    seconds: float
    cpu_s: float
    peak_mb: int


@dataclass
class Summary:
    system: str
    runs: list[Run] = field(default_factory=list)

    @property
    def pages_a_second(self) -> float:
        return statistics.median(run.pages / run.seconds for run in self.runs)

    @property
    def cpu_s_of_1000(self) -> float:
        return statistics.median(1000 * run.cpu_s / run.pages for run in self.runs)

    @property
    def peak_mb(self) -> int:
        return max(run.peak_mb for run in self.runs)


@dataclass(frozen=True)
class Reuse:
    """Seconds of a parse; all but those of the first are medians. `in_a_row_s` is of copies that follow each other."""

    pages: int
    first_s: float
    again_s: float
    other_dataset_s: float
    in_a_row_s: float

    def __str__(self) -> str:
        return (
            f"{self.pages:,} pages: first parse {self.first_s:.2f} s, unchanged again {self.again_s:.3f} s"
            f" ({self.first_s / self.again_s:.0f} times faster), in another dataset {self.other_dataset_s:.4f} s"
            f" ({self.first_s / self.other_dataset_s:.0f} times), in five one after the other {self.in_a_row_s:.4f} s"
            f" each ({self.first_s / self.in_a_row_s:.0f} times)."
        )


def tables(compared: Sequence[Summary], grown: Sequence[Summary]) -> list[Rows]:
    return [_table("From files to findable chunks", "way", compared), _table("How it grows", "Pagemill", grown)]


def write_page(about: str, found: Sequence[Rows], reused: Reuse) -> None:
    """Put the tables between their marks in docs/benchmarks.md."""
    page = PAGE.read_text(encoding="utf-8")
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    assert begin and end, f"{PAGE} has no place for the tables"
    middle = "\n\n".join([about, *(rows.written() for rows in found), str(reused)])
    PAGE.write_text(f"{before}{begin}\n{middle}\n{end}{after}", encoding="utf-8")


def _table(title: str, heading: str, summaries: Sequence[Summary]) -> Rows:
    base = summaries[0].pages_a_second
    return Rows(
        title,
        (heading, *_MEASURES),
        [
            [
                one.system,
                f"{one.pages_a_second:,.0f}",
                f"{one.pages_a_second / base:.2f}",
                f"{one.cpu_s_of_1000:.2f}",
                f"{one.peak_mb:,}",
            ]
            for one in summaries
        ],
    )
