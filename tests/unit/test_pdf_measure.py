"""The lines of PDF pages measured in two ways, by compiled code and without it: the answers are the same."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pypdfium2 as pdfium
import pytest

from rag.parser import pdf_measure
from rag.parser import pdf_native as native
from rag.parser.layout import Line
from rag.parser.pdf_frame import Frame
from rag.parser.pdf_lines import LineReader, read_lines, read_text
from tests import pdfs
from tests.compiled import require
from tests.known_documents import MAKERS
from tests.pdfs_placed import Placed, write_placed

_MAX_PAGES = 20


def _documents(folder: Path) -> list[Path]:
    made = [make(folder).path for make in MAKERS]
    outlined = pdfs.write_outlined(folder / "outlined.pdf", ["One", "Two"], pages_each=2)
    return [*made, outlined, *sorted(Path("docs/examples").glob("*.pdf"))]


@pytest.fixture
def compiled() -> None:
    require(pdf_measure.sweep, "rag/parser/pdf_sweep.c")


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
                fast, slow = pdf_measure.measurer(textpage, frame).line, pdf_measure.Measure(textpage, frame).line
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
        pdf_measure.sweep.Measure(0, 0.0, 0.0, 600.0, 800.0, 8.0)
    with pytest.raises(TypeError):
        pdf_measure.sweep.Measure("page", 0.0, 0.0, 600.0, 800.0, 8.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a span is a tuple"):
        pdf_measure.sweep.bind((1,) * 8, len, Line, Line)  # type: ignore[arg-type]


@pytest.mark.usefixtures("compiled")
def test_pages_are_read_the_same_without_compiled_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [*_documents(tmp_path), _odd_lines(tmp_path / "odd.pdf")]
    fast = [_read(path) for path in paths]
    monkeypatch.setattr(pdf_measure, "sweep", None)
    for path, (lines, rects) in zip(paths, fast, strict=True):
        assert (lines, rects) == _read(path), path.name
        assert lines
    everything = [line for lines, _ in fast for line in lines]
    assert {len(line.spans) for line in everything} >= {0, 2, 3}
    assert any(line.hyphened for line in everything)
    assert any(line.bold for line in everything)


@pytest.mark.usefixtures("compiled")
def test_an_error_in_a_line_that_is_not_plain_is_told(tmp_path: Path) -> None:
    def made(*_: object) -> Line:
        raise LookupError("no such line")

    with pdfium.PdfDocument(_odd_lines(tmp_path / "odd.pdf")) as document:
        page = native.load_page(document.raw, 0)
        textpage = native.load_text(page)
        text = read_text(textpage)
        with pytest.raises(LookupError):
            pdf_measure.measurer(textpage, Frame(page)).lines(text, 100, made)
        with pytest.raises(TypeError):
            pdf_measure.measurer(textpage, Frame(page)).lines(text.encode(), 100, made)  # type: ignore[arg-type]
        native.close_text(textpage)
        native.close_page(page)


def _odd_lines(path: Path) -> Path:
    """Lines that start with a number or a space, hyphens at line ends, what is off the page, letters far apart."""
    lines = [
        Placed(72, 100, "12 mills stood here"),
        Placed(72, 120, "   spaces before it   "),
        Placed(72, 140, "the wa-"),
        Placed(72, 154, "ter wheel"),
        Placed(900, 180, "far to the right"),
        Placed(72, 200, "a          b          c"),
        Placed(72, 220, "caf\xe9 na\xefve \xa0 behind it"),
    ]
    return write_placed(path, [lines])


def _read(path: Path) -> tuple[list[Line], int]:
    lines: list[Line] = []
    rects = 0
    with pdfium.PdfDocument(path) as document:
        for index in range(min(len(document), _MAX_PAGES)):
            page = native.load_page(document.raw, index)
            textpage = native.load_text(page)
            reader = LineReader(textpage, Frame(page), text := read_text(textpage))
            lines += read_lines(reader, text, is_noisy=False)
            rects += reader.rects
            native.close_text(textpage)
            native.close_page(page)
    return lines, rects
