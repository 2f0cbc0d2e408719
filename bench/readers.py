"""One reader of PDF over the files it is given, in a process of its own: pages, CPU seconds and peak memory as JSON.

    python -m bench.readers NAME FILE...

`pagemill` is the whole path from file to chunks. The others give text and nothing else."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def pagemill(path: Path) -> tuple[int, int]:
    """Profile, blocks in reading order with tables, and chunks."""
    from rag.flow.chunk import ChunkSettings
    from rag.flow.chunker import Chunker
    from rag.parser import registry
    from rag.parser.blocks import ReadOptions

    options = ReadOptions(ocr=False)
    profile = registry.profile(path, path.name, options)
    chunker = Chunker(_counter(), ChunkSettings(), profile)
    chunks = chunker.chunk(registry.read(path, profile, 0, profile.units, options))
    return profile.units, sum(len(chunk.text) for chunk in chunks)


def pdfium(path: Path) -> tuple[int, int]:
    import pypdfium2

    with pypdfium2.PdfDocument(path) as document:
        size = 0
        for page in document:
            text = page.get_textpage()
            size += len(text.get_text_bounded())
            text.close()
            page.close()
        return len(document), size


def pymupdf(path: Path) -> tuple[int, int]:
    import pymupdf

    with pymupdf.open(path) as document:
        return len(document), sum(len(page.get_text()) for page in document)


def pdftotext(path: Path) -> tuple[int, int]:
    done = subprocess.run(["pdftotext", str(path), "-"], capture_output=True, check=True)
    return done.stdout.count(b"\f"), len(done.stdout)


def pdf_oxide(path: Path) -> tuple[int, int]:
    import pdf_oxide

    document = pdf_oxide.PdfDocument(str(path))
    pages = document.page_count() if callable(document.page_count) else document.page_count
    return pages, sum(len(document.extract_text(number)) for number in range(pages))


def pypdf(path: Path) -> tuple[int, int]:
    import pypdf

    reader = pypdf.PdfReader(path)
    return len(reader.pages), sum(len(page.extract_text()) for page in reader.pages)


def pdfminer(path: Path) -> tuple[int, int]:
    from pdfminer.high_level import extract_pages
    from pdfminer.layout import LTTextContainer

    pages = size = 0
    for page in extract_pages(path):
        pages += 1
        size += sum(len(part.get_text()) for part in page if isinstance(part, LTTextContainer))
    return pages, size


def pdfplumber(path: Path) -> tuple[int, int]:
    import pdfplumber

    with pdfplumber.open(path) as document:
        return len(document.pages), sum(len(page.extract_text()) for page in document.pages)


def docling_parse(path: Path) -> tuple[int, int]:
    from docling_parse.docling_parse import pdf_parser_v2

    parser = pdf_parser_v2("fatal")
    parser.load_document("key", str(path))
    pages = parser.number_of_pages("key")
    size = 0
    for number in range(pages):
        found = parser.parse_pdf_from_key_on_page("key", number)
        size += sum(len(cell[12]) for cell in found["pages"][0]["sanitized"]["cells"]["data"])
    return pages, size


READERS: dict[str, Callable[[Path], tuple[int, int]]] = {
    "pagemill": pagemill,
    "pypdfium2": pdfium,
    "PyMuPDF": pymupdf,
    "pdftotext": pdftotext,
    "pdf_oxide": pdf_oxide,
    "pypdf": pypdf,
    "pdfminer.six": pdfminer,
    "pdfplumber": pdfplumber,
    "docling-parse": docling_parse,
}


def is_there(name: str) -> bool:
    return name != "pdftotext" or shutil.which("pdftotext") is not None


_counters: list[Callable[..., list[int]]] = []


def _counter() -> Callable[..., list[int]]:
    from common.settings import EmbeddingSettings
    from rag.flow.token_counter import token_counter
    from rag.utils.embedder import load_tokenizer

    if not _counters:
        _counters.append(token_counter(load_tokenizer(EmbeddingSettings())))
    return _counters[0]


def _cpu_s() -> float:
    """Of this process and of the programs it started."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    below = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + below.ru_utime + below.ru_stime


def _peak_mb() -> int:
    """Of this process: what getrusage tells counts that of its parent too."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10


def main() -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # moves between cores would count
    read, files = READERS[sys.argv[1]], [Path(name) for name in sys.argv[2:]]
    read(files[0])  # imports and models, which are loaded once
    began_s, began_wall_s = _cpu_s(), time.monotonic()
    pages = characters = failed = 0
    for path in files:
        try:
            more_pages, more_characters = read(path)
        except Exception as exc:  # noqa: BLE001 (a reader of others may raise anything; the file is counted)
            failed += 1
            print(f"{path}: {exc!r}", file=sys.stderr)
            continue
        pages, characters = pages + more_pages, characters + more_characters
    print(
        json.dumps(
            {
                "pages": pages,
                "characters": characters,
                "failed": failed,
                "cpu_s": _cpu_s() - began_s,
                "wall_s": time.monotonic() - began_wall_s,
                "peak_mb": _peak_mb(),
            }
        )
    )


if __name__ == "__main__":
    main()
