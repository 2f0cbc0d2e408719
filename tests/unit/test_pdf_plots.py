"""Charts that are drawn by paths are figures with their words; borders, boxes around text and shades are none."""

from __future__ import annotations

from collections.abc import Callable
from math import sin
from pathlib import Path

import pytest
from fpdf import FPDF

from rag.flow.chunk import ChunkSettings
from rag.flow.chunker import Chunker
from rag.parser import registry
from rag.parser.blocks import Block, BlockKind
from tests.pdfs_placed import prose

Draw = Callable[[FPDF], None]


def _write(path: Path, draw: Draw) -> Path:
    pdf = FPDF(unit="pt", format=(612, 792))
    pdf.set_auto_page_break(auto=False)
    pdf.add_page()
    pdf.set_font("Helvetica", size=10)
    for number, line in enumerate(prose("mill", 6)):
        pdf.text(72, 72 + 12 * number, line)
    draw(pdf)
    for number, line in enumerate(prose("weir", 6)):
        pdf.text(72, 500 + 12 * number, line)
    pdf.output(str(path))
    return path


def _read(path: Path) -> list[Block]:
    profile = registry.profile(path, path.name)
    return list(registry.read(path, profile, 0, profile.units))


def _axes(pdf: FPDF) -> None:
    pdf.line(150, 200, 150, 400)
    pdf.line(150, 400, 450, 400)
    for number in range(6):
        pdf.line(150 + 60 * number, 400, 150 + 60 * number, 404)
        pdf.text(147 + 60 * number, 416, str(number))
        pdf.text(128, 403 - 40 * number, f"{number / 10}")
    pdf.text(270, 432, "Years of work")


def _curve(pdf: FPDF) -> None:
    _axes(pdf)
    pdf.polyline([(150 + 3 * at, 300 - 80 * sin(at / 12)) for at in range(100)])


def _steps(pdf: FPDF) -> None:
    _axes(pdf)
    points = [(150.0, 390.0)]
    for at in range(14):
        x, y = points[-1]
        points += [(x + 20, y), (x + 20, y - 6 - at % 3)]
    pdf.polyline(points)


def _bars(pdf: FPDF) -> None:
    _axes(pdf)
    for number, high in enumerate((90, 140, 60, 170)):
        pdf.rect(170 + 60 * number, 400 - high, 30, high, style="F")


@pytest.mark.parametrize("draw", [_curve, _steps, _bars])
def test_a_chart_is_a_figure_with_its_words_and_caption(tmp_path: Path, draw: Draw) -> None:
    def with_caption(pdf: FPDF) -> None:
        draw(pdf)
        pdf.text(200, 460, "Figure 1: Sheets made in a year.")

    path = _write(tmp_path / "a.pdf", with_caption)
    blocks = _read(path)
    kinds = [BlockKind.PARAGRAPH, BlockKind.FIGURE, BlockKind.CAPTION, BlockKind.PARAGRAPH]
    assert [block.kind for block in blocks] == kinds
    figure = blocks[1]
    assert set(figure.text.split()) == {*"012345", *(f"{n / 10}" for n in range(6)), "Years", "of", "work"}
    assert figure.picture is not None
    assert figure.picture.box is not None
    assert figure.picture.box.left <= 130
    assert 430 <= figure.picture.box.bottom <= 440
    profile = registry.profile(path, path.name)
    chunks = list(Chunker(lambda texts: [len(text.split()) for text in texts], ChunkSettings(), profile).chunk(blocks))
    shown = [chunk for chunk in chunks if chunk.picture is not None]
    assert [chunk.picture for chunk in shown] == [figure.picture]
    assert "Sheets made in a year" in shown[0].text


def _border(pdf: FPDF) -> None:
    pdf.rect(30, 30, 552, 732)
    pdf.rect(34, 34, 544, 724)


def _underlines(pdf: FPDF) -> None:
    for number, line in enumerate(prose("ford", 5)):
        pdf.text(72, 250 + 14 * number, line)
        pdf.line(72, 252 + 14 * number, 400, 252 + 14 * number)


def _box_around_text(pdf: FPDF) -> None:
    for _ in range(4):
        pdf.rect(68, 230, 400, 90, style="D", round_corners=True, corner_radius=8)
    _underlines(pdf)


def _shades(pdf: FPDF) -> None:
    pdf.set_fill_color(220)
    for number, line in enumerate(prose("ford", 6)):
        if number % 2:
            pdf.rect(72, 240 + 14 * number, 400, 14, style="F")
        pdf.text(72, 250 + 14 * number, line)


@pytest.mark.parametrize("draw", [_border, _underlines, _box_around_text, _shades])
def test_what_is_drawn_around_text_is_no_figure(tmp_path: Path, draw: Draw) -> None:
    blocks = _read(_write(tmp_path / "a.pdf", draw))
    assert {block.kind for block in blocks} == {BlockKind.PARAGRAPH}
    if draw is not _border:
        assert "the ford was kept in order" in " ".join(block.text for block in blocks)
