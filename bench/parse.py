"""The parse bench: files to blocks and chunks beside bare readers of PDF, in one run over the same files; how faithful
the blocks are; and whether the last pages of a long document cost what its first ones cost.

    make bench-parse ARGS="--folder DIR"

Rates are pages a second of CPU time on one core. The machine may be busy with other things, so Pagemill and bare
pypdfium2 read in turns, several times, and the middle one of their ratios counts."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.readers import READERS, is_there
from common.settings import ROOT
from rag.parser import ocr, registry
from rag.parser.blocks import ReadOptions
from tests import pdfs
from tests.known_documents import MAKERS, TABLE_MAKERS, cells_right, f1, order, prose, words_of

RESULTS = ROOT / "bench" / "results" / "parse.json"
_LONG_PAGES = 10_000
# Memory at the end of these, against that after the first thousand.
_FLAT = 1.05
# The slowest readers get a part of the pages.
_SLOW = {"pdfplumber", "pdfminer.six", "docling-parse", "pypdf"}
_OURS, _BARE = "pagemill", "pypdfium2"
_ROUNDS = 5
# At least: fewer pages of a layout are read several times.
_PAGES_OF_LAYOUT = 100
console = Console(width=max(Console().width, 100))


@dataclass(frozen=True)
class Speed:
    reader: str
    pages: int
    pages_a_second: float
    peak_mb: int
    failed: int
    # Against bare pypdfium2.
    ratio: float = 0.0


class ReaderFailed(Exception):
    pass


@dataclass(frozen=True)
class Layout:
    """How fast Pagemill reads pages of one layout."""

    layout: str
    pages: int
    pages_a_second: float
    ratio: float


@dataclass(frozen=True)
class Fidelity:
    document: str
    f1: float
    order: float
    cells: float | None


@dataclass(frozen=True)
class LongDocument:
    pages: int
    first_s: float
    last_s: float
    memory_mb_at_1000: int
    memory_mb_at_end: int


def made_files(folder: Path) -> dict[str, list[Path]]:
    """Several layouts, about 400 pages."""
    files = {
        "plain pages": [
            pdfs.write_pages(folder / f"plain-{n}.pdf", 60, sentences=27, footer=True, title=str(n)) for n in range(3)
        ],
        "outlined": [pdfs.write_outlined(folder / "outlined.pdf", [f"Part {n}" for n in range(1, 31)], pages_each=3)],
        "two columns": [
            pdfs.write_columns(folder / f"c{number}.pdf", prose(number, 34), prose(900 + number, 34), "Title")
            for number in range(40)
        ],
    }
    for round_ in range(8):
        part = folder / f"known-{round_}"
        part.mkdir()
        for make in MAKERS:
            known = make(part)
            files.setdefault(known.name, []).append(known.path)
    return files


def speeds(files: list[Path]) -> list[Speed]:
    found = list(_in_turns(files))
    bare = found[1].pages_a_second
    for reader in READERS:
        if reader in (_OURS, _BARE):
            continue
        if not is_there(reader):
            console.print(f"[yellow]{reader} is not installed: left out")
            continue
        try:
            speed = _speed(reader, files[:: 6 if reader in _SLOW else 1])
        except ReaderFailed as exc:
            console.print(f"[red]{exc}")
            continue
        found.append(replace(speed, ratio=speed.pages_a_second / bare))
        console.print(f"[dim]{reader}: {speed.pages_a_second:,.0f} pages/s")
    return found


def layouts(files: dict[str, list[Path]]) -> list[Layout]:
    found = []
    for layout, given in files.items():
        pages = _speed(_BARE, given).pages
        ours, _ = _in_turns(given * -(-_PAGES_OF_LAYOUT // pages))
        found.append(Layout(layout, pages, ours.pages_a_second, ours.ratio))
        console.print(f"[dim]{layout}: {ours.ratio:.2f} of bare pypdfium2")
    return found


def _in_turns(files: list[Path]) -> tuple[Speed, Speed]:
    """Pagemill and bare pypdfium2."""
    rounds = [(_speed(_OURS, files), _speed(_BARE, files)) for _ in range(_ROUNDS)]
    ratio = statistics.median(ours.pages_a_second / bare.pages_a_second for ours, bare in rounds)
    ours, bare = (sorted(each, key=lambda speed: speed.pages_a_second) for each in zip(*rounds, strict=True))
    return replace(ours[_ROUNDS // 2], ratio=ratio), replace(bare[_ROUNDS // 2], ratio=1.0)


def _speed(reader: str, files: list[Path]) -> Speed:
    """Of a reader in a process of its own. Raises ReaderFailed."""
    command = [sys.executable, "-m", "bench.readers", reader, *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise ReaderFailed(f"{reader}: {done.stderr.strip().splitlines()[-1]}")
    said = json.loads(done.stdout.splitlines()[-1])
    return Speed(reader, said["pages"], said["pages"] / said["cpu_s"], said["peak_mb"], said["failed"])


def fidelity(folder: Path) -> list[Fidelity]:
    found = []
    for make in (*MAKERS, *TABLE_MAKERS):
        known = make(folder)
        profile = registry.profile(known.path, known.path.name)
        blocks = list(registry.read(known.path, profile, 0, profile.units))
        got = words_of(blocks, by_character=known.name == "chinese")
        cells = cells_right(known, blocks) if known.tables else None
        found.append(Fidelity(known.name, f1(known.words, got), order(known.words, got), cells))
    return found


def scan(folder: Path) -> Fidelity:
    """A clean scan at 150 dpi: characters right."""
    import pypdfium2

    known = MAKERS[0](folder)
    with pypdfium2.PdfDocument(known.path) as document:
        page = document[0]
        picture = page.render(scale=150 / 72).to_pil().convert("RGB")
        expected = list("".join(page.get_textpage().get_text_bounded().split()))
        width, height = page.get_size()
    lines = ocr.read_lines(picture, width, height)
    got = list("".join("".join(line.text for line in lines).split()))
    return Fidelity("scan at 150 dpi, by character", f1(expected, got), order(expected, got), None)


def long_document(folder: Path) -> LongDocument:
    """In a process of its own, so that its memory is its own."""
    path = pdfs.write_pages(folder / "long.pdf", _LONG_PAGES, sentences=6)
    done = subprocess.run(
        [sys.executable, "-m", "bench.parse", "--read-long", str(path)], cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    found = LongDocument(**json.loads(done.stdout.splitlines()[-1]))
    if found.memory_mb_at_end > _FLAT * found.memory_mb_at_1000:
        raise SystemExit(f"memory grows with the pages: {found.memory_mb_at_1000} to {found.memory_mb_at_end} MB")
    return found


def read_long(path: Path) -> LongDocument:
    import psutil

    process = psutil.Process()
    options = ReadOptions(ocr=False)
    profile = registry.profile(path, path.name, options)
    units = profile.units

    def seconds(first: int) -> float:
        began_s = time.process_time()
        assert list(registry.read(path, profile, first, first + 12, options))
        return time.process_time() - began_s

    ends = [(seconds(24 * n), seconds(units - 12 - 24 * n)) for n in range(9)]
    first_s, last_s = (statistics.median(side) for side in zip(*ends, strict=True))
    memory = []
    for start in range(0, units, 1000):
        for _ in registry.read(path, profile, start, min(start + 1000, units), options):
            pass
        memory.append(process.memory_info().rss >> 20)
    return LongDocument(units, first_s, last_s, memory[0], memory[-1])


def show(found: list[Speed], by_layout: list[Layout], faithful: list[Fidelity], long: LongDocument) -> None:
    table = Table(title="PDF to text, one core; pagemill: to blocks with tables, and chunks")
    for heading in ("reader", "pages", "pages/s of CPU", "of bare pypdfium2", "peak MB", "files failed"):
        table.add_column(heading, justify="left" if heading == "reader" else "right")
    for speed in found:
        rate, ratio = f"{speed.pages_a_second:,.0f}", f"{speed.ratio:.2f}"
        table.add_row(speed.reader, str(speed.pages), rate, ratio, str(speed.peak_mb), str(speed.failed))
    console.print(table)
    if by_layout:
        table = Table(title="Pagemill by layout")
        for heading in ("layout", "pages", "pages/s of CPU", "of bare pypdfium2"):
            table.add_column(heading, justify="left" if heading == "layout" else "right")
        for each in by_layout:
            table.add_row(each.layout, str(each.pages), f"{each.pages_a_second:,.0f}", f"{each.ratio:.2f}")
        console.print(table)
    table = Table(title="Fidelity on known documents")
    for heading in ("document", "words F1", "in order", "cells right"):
        table.add_column(heading, justify="left" if heading == "document" else "right")
    for known in faithful:
        cells = "-" if known.cells is None else f"{known.cells:.3f}"
        table.add_row(known.document, f"{known.f1:.3f}", f"{known.order:.3f}", cells)
    console.print(table)
    console.print(f"{long.pages:,} pages: the first 12 in {long.first_s * 1000:.1f} ms,")
    console.print(f"  the last 12 in {long.last_s * 1000:.1f} ms (ratio {long.last_s / long.first_s:.2f});")
    console.print(f"  memory after 1,000 pages {long.memory_mb_at_1000} MB, at the end {long.memory_mb_at_end} MB")


def draw(found: list[Speed], by_layout: list[Layout]) -> None:
    from bench import plots  # the process whose memory is measured has no need of it

    rates = {"pages/s of CPU, one core": [speed.pages_a_second for speed in found]}
    ratios = {"Pagemill, to blocks and chunks": [each.ratio for each in by_layout]}
    panels = [
        plots.Bars("PDF to text", "pages/s", _labels([speed.reader for speed in found]), rates, log_y=True),
        plots.Bars("By layout", "of bare pypdfium2", _labels([each.layout for each in by_layout]), ratios),
    ]
    plots.draw("parse", panels)


def _labels(names: list[str]) -> list[str]:
    """Every other one is further down, so that long ones have room."""
    return [name if number % 2 == 0 else f"\n{name}" for number, name in enumerate(names)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.parse", description=__doc__)
    parser.add_argument("--folder", type=Path, help="read the PDF files of this folder instead of made ones")
    parser.add_argument("--read-long", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read_long:
        print(json.dumps(asdict(read_long(options.read_long))))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        made = {} if options.folder else made_files(folder)
        files = sorted(options.folder.rglob("*.pdf")) if options.folder else list(chain(*made.values()))
        if not files:
            raise SystemExit(f"no PDF files in {options.folder}")
        found, by_layout = speeds(files), layouts(made)
        faithful, long = [*fidelity(folder), scan(folder)], long_document(folder)
    show(found, by_layout, faithful, long)
    if not options.folder:
        RESULTS.parent.mkdir(exist_ok=True)
        result = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": "make bench-parse",
            "speeds": [asdict(speed) for speed in found],
            "layouts": [asdict(each) for each in by_layout],
            "fidelity": [asdict(each) for each in faithful],
            "long_document": asdict(long),
        }
        RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
        draw(found, by_layout)
        console.print(f"written to {RESULTS.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
