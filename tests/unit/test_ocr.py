"""OCR: the text of a scan is right, its lines are in place, and nothing is fetched for it."""

from __future__ import annotations

import socket
from difflib import SequenceMatcher
from io import BytesIO

import numpy as np
import pypdfium2
import pytest
from fpdf import FPDF

from rag.parser import ocr
from rag.parser.layout import Line, Page, order
from rag.parser.paragraphs import HeadingFinder, to_blocks

_WIDTH, _HEIGHT = 420, 250
_TITLE = "Report of the harbour"
_FIRST = (
    "The harbour handled 4,312 ships last year, which is more than in any year since 1987. Most of them carried"
    " grain, timber and machine parts; the rest were ferries."
)
_SECOND = "In winter the eastern quay was closed for 41 days. See page 7 for every berth."


def _scan() -> ocr.Pixels:
    pdf = FPDF(unit="pt", format=(_WIDTH, _HEIGHT))
    pdf.add_page()
    pdf.set_font("Helvetica", size=20)
    pdf.cell(0, 32, _TITLE, new_x="LMARGIN", new_y="NEXT")
    pdf.set_font("Helvetica", size=11)
    for text in (_FIRST, _SECOND):
        pdf.multi_cell(0, 14, text, new_x="LMARGIN", new_y="NEXT")
        pdf.ln(14)
    with pypdfium2.PdfDocument(BytesIO(bytes(pdf.output()))) as document:
        page = document[0]
        pixels = page.render(scale=150 / 72, rev_byteorder=True).to_numpy().copy()
        page.close()
    return np.asarray(pixels, dtype=np.uint8)


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    """Read with the network cut: the models are those that the wheel carries."""

    def refuse(*_: object) -> None:
        raise AssertionError("a connection was attempted")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        return ocr.read_scan(_scan(), _WIDTH, _HEIGHT).lines


def _rightness(text: str, expected: str) -> float:
    matcher = SequenceMatcher(None, text, expected, autojunk=False)
    return sum(block.size for block in matcher.get_matching_blocks()) / max(len(expected), len(text))


def test_characters_are_right(lines: list[Line]) -> None:
    text = " ".join(line.text for line in lines)
    assert _rightness(text, f"{_TITLE} {_FIRST} {_SECOND}") >= 0.95


def test_lines_stand_where_they_are_printed(lines: list[Line]) -> None:
    title = lines[0]
    assert title.text == _TITLE
    assert 24 < title.left < 33 and 27 < title.top < title.base < title.bottom < 62
    assert 15 < title.size < 23 and all(9 < line.size < 13.5 for line in lines[1:])
    assert [line.base for line in lines] == sorted(line.base for line in lines)
    assert all(0 <= line.left < line.right <= _WIDTH and 0 <= line.top < line.bottom <= _HEIGHT for line in lines)


def test_lines_join_to_a_heading_and_paragraphs(lines: list[Line]) -> None:
    body = lines[-1].size
    page = Page(1, _WIDTH, _HEIGHT, tuple(lines))
    blocks = list(to_blocks(1, order(page), HeadingFinder(body, {}, has_outline=False)))
    assert [block.kind for block in blocks] == ["heading", "paragraph", "paragraph"]
    assert _rightness(blocks[1].text, _FIRST) >= 0.95 and _rightness(blocks[2].text, _SECOND) >= 0.95


@pytest.mark.parametrize("shape", [(0, 10, 3), (1, 1, 3), (3, 900)])
def test_a_picture_with_nothing_in_it(shape: tuple[int, ...]) -> None:
    assert ocr.read_scan(np.full(shape, 255, dtype=np.uint8), 100, 100).lines == []


def test_a_page_on_its_head_is_turned(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the score of its text alone, so the recogniser need not run."""
    corners = np.array([[0, 0], [50, 0], [50, 10], [0, 10]], dtype=np.float32)

    def recognise(pixels: ocr.Pixels) -> list[ocr._Found]:
        upright = pixels[0, 0, 0] == 7
        return [ocr._Found("upright" if upright else "gibber", 0.97 if upright else 0.5, corners)]

    monkeypatch.setattr(ocr, "_recognise", recognise)
    pixels = np.zeros((60, 80, 3), dtype=np.uint8)
    pixels[-1, -1] = 7
    assert [line.text for line in ocr.read_scan(pixels, 80, 60).lines] == ["upright"]


def test_a_hyphen_at_the_end_of_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    corners = np.array([[0, 0], [50, 0], [50, 10], [0, 10]], dtype=np.float32)
    below = corners + np.array([0, 14], dtype=np.float32)
    found = [ocr._Found("over-", 0.9, corners), ocr._Found(" sea \x00 x -", 0.9, below)]
    monkeypatch.setattr(ocr, "_recognise", lambda pixels: found)
    lines = ocr.read_scan(np.zeros((60, 80), dtype=np.uint8), 80, 60).lines
    assert [(line.text, line.hyphened) for line in lines] == [("over", True), ("sea x -", False)]


def test_pieces_of_a_row_stand_on_one_base(monkeypatch: pytest.MonkeyPatch) -> None:
    corners = np.array([[0, 0], [30, 0], [30, 10], [0, 10]], dtype=np.float32)
    places = {"right": (40, 0), "left": (0, 1.5), "below": (0, 14)}
    found = [ocr._Found(text, 0.9, corners + np.array(at, dtype=np.float32)) for text, at in places.items()]
    monkeypatch.setattr(ocr, "_recognise", lambda pixels: found)
    left, right, below = ocr.read_scan(np.zeros((60, 80, 3), dtype=np.uint8), 80, 60).lines
    assert (left.text, right.text, below.text) == ("left", "right", "below")
    assert left.base == right.base < below.base


def test_a_tall_picture_is_read_in_strips_cut_between_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each bar of ink stands for a line; the recogniser must see every one whole, and once."""
    seen: list[int] = []

    def recognise(pixels: ocr.Pixels) -> list[ocr._Found]:
        seen.append(len(pixels))
        dark = pixels[:, 50, 0] == 0
        edges = np.flatnonzero(np.diff(np.concatenate(([False], dark, [False])).astype(np.int8)))
        bars = zip(edges[::2], edges[1::2], strict=True)
        return [
            ocr._Found(f"{bottom - top}", 0.9, np.array([[0, top], [90, top], [90, bottom], [0, bottom]], np.float32))
            for top, bottom in bars
        ]

    monkeypatch.setattr(ocr, "_recognise", recognise)
    pixels = np.full((6_000, 900, 3), 255, dtype=np.uint8)
    tops = range(100, 5_900, 60)
    for top in tops:
        pixels[top : top + 40, 10:800] = 0
        pixels[top : top + 40, 60:800:2] = 200
    lines = ocr.read_scan(pixels, 450, 3_000).lines
    assert len(seen) in (4, 5) and max(seen) <= ocr.MAX_SIDE
    assert [line.top * 2 for line in lines] == list(tops) and {line.text for line in lines} == {"40"}


def test_a_picture_of_any_height_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, ...]] = []
    monkeypatch.setattr(ocr, "_recognise", lambda pixels: seen.append(pixels.shape) or [])
    assert ocr.read_scan(np.zeros((40_000, 400), dtype=np.uint8), 10, 1_000).lines == []
    assert len(seen) <= ocr.MAX_STRIPS and all(max(shape) <= ocr.MAX_SIDE for shape in seen)
