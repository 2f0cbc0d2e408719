"""The lines of PDF pages measured in two ways, by compiled code and without it: the answers are the same."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import pypdfium2 as pdfium
import pytest

from rag.parser import pdf_measure
from rag.parser import pdf_native as native
from rag.parser.pdf_frame import Frame
from rag.parser.pdf_lines import LineReader, read_lines, read_text
from tests import pdfs
from tests.known_documents import MAKERS

_MAX_PAGES = 20


def _documents(folder: Path) -> list[Path]:
    made = [make(folder).path for make in MAKERS]
    outlined = pdfs.write_outlined(folder / "outlined.pdf", ["One", "Two"], pages_each=2)
    return [*made, outlined, *sorted(Path("docs/examples").glob("*.pdf"))]


@pytest.fixture
def compiled() -> None:
    if pdf_measure.sweep is None:
        assert not os.environ.get("CI"), "rag/parser/pdf_sweep.c was not compiled"
        pytest.skip("rag/parser/pdf_sweep.c was not compiled: no compiler, or no headers of Python, when installing")


@pytest.mark.usefixtures("compiled")
def test_compiled_code_gives_the_same_measures(tmp_path: Path) -> None:
    pieces = set()
    for path in _documents(tmp_path):
        with pdfium.PdfDocument(path) as document:
            for index in range(min(len(document), _MAX_PAGES)):
                page = native.load_page(document.raw, index)
                textpage = native.load_text(page)
                frame = Frame(page)
                reader = LineReader(textpage, frame, text := read_text(textpage))
                fast, slow = pdf_measure.measurer(textpage, frame), pdf_measure.Measure(textpage, frame).line
                for line in islice(read_lines(reader, text, is_noisy=False), 500):
                    last = line.first + line.count - 1
                    measured = fast(line.first, last)
                    assert measured == slow(line.first, last), f"{path.name}, page {index + 1}: {line.text}"
                    pieces.add(min(measured[3], 2))
                native.close_text(textpage)
                native.close_page(page)
    assert pieces >= {1, 2}


@pytest.mark.usefixtures("compiled")
def test_compiled_code_refuses_what_is_no_page() -> None:
    with pytest.raises(ValueError, match="no page"):
        pdf_measure.sweep.Measure(0, 0.0, 0.0, 8.0)
    with pytest.raises(TypeError):
        pdf_measure.sweep.Measure("page", 0.0, 0.0, 8.0)  # type: ignore[arg-type]


def test_pages_are_read_without_compiled_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pdfs.write_pages(tmp_path / "plain.pdf", 1, sentences=3)

    def lines() -> list[str]:
        with pdfium.PdfDocument(path) as document:
            page = native.load_page(document.raw, 0)
            textpage = native.load_text(page)
            text = read_text(textpage)
            found = [repr(line) for line in read_lines(LineReader(textpage, Frame(page), text), text, is_noisy=False)]
            native.close_text(textpage)
            native.close_page(page)
        return found

    with_it = lines()
    monkeypatch.setattr(pdf_measure, "sweep", None)
    assert lines() == with_it
    assert with_it
