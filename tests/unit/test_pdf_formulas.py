"""PDF: formulas that a file draws piece by piece."""

from __future__ import annotations

from pathlib import Path

from rag.parser import registry
from rag.parser.blocks import Block
from rag.parser.formulas import with_formulas
from rag.parser.layout import Line, Span
from rag.parser.paragraphs import HeadingFinder, to_blocks
from tests.pdfs_mapped import write_mapped
from tests.pdfs_placed import Placed, column, prose, width_of, write_placed


def _read(path: Path) -> list[Block]:
    profile = registry.profile(path, path.name)
    return list(registry.read(path, profile, 0, profile.units))


def _texts(path: Path) -> list[str]:
    return [block.text for block in _read(path)]


def _line(text: str, left: float, base: float, size: float = 10, *, first: int = 0) -> Line:
    right = left + 0.5 * size * len(text)
    return Line(text, left, right, base - 0.7 * size, base + 0.2 * size, base, size, first=first, count=len(text))


def test_a_formula_of_many_pieces_is_one_block(tmp_path: Path) -> None:
    x = 200 + width_of("y = x")
    formula = [
        Placed(200, 300, "y = x"),
        Placed(x + 0.5, 296, "2", 7),
        Placed(x + 6, 300, "+ z"),
        Placed(x + 22, 293, "a + b"),
        Placed(x + 22, 307, "c + d"),
        Placed(500, 300, "(7)"),
    ]
    path = write_placed(tmp_path / "a.pdf", [[*column(prose("mill", 6)), *formula, *column(prose("weir", 6), y=340)]])
    before, shown, after = _texts(path)
    assert (before, after) == (" ".join(prose("mill", 6)), " ".join(prose("weir", 6)))
    assert sorted(shown.replace(" ", "")) == sorted("y=x2+za+bc+d(7)")
    assert shown.startswith("y = x2")


def test_an_index_does_not_part_a_paragraph() -> None:
    before, index = _line("it is 2", 72, 100), _line("31", 107, 96, 7, first=10)
    after = _line("pounds of flour that the people of the mill have kept", 116, 100, first=14)
    below = _line("in order through all of the winter and of the spring.", 72, 112, first=80)
    whole, last = with_formulas([before, index, after, below])
    assert whole.text == "it is 2 31 pounds of flour that the people of the mill have kept"
    assert (whole.base, whole.size, last) == (100, 10, below)
    (block,) = to_blocks(1, [whole, last], HeadingFinder(10, {}, has_outline=False))
    assert block.text == f"{whole.text} {below.text}"


def test_limits_belong_to_their_sign() -> None:
    lines = [_line("lim", 200, 300), _line("n", 203, 308, 7, first=5), _line("x = 0", 220, 300, first=8)]
    (formula,) = with_formulas(lines)
    assert formula.text == "lim n x = 0"
    assert (formula.left, formula.base, formula.size, formula.first, formula.count) == (200, 300, 10, 0, 13)


def test_pieces_of_brackets_hold_the_rows_of_a_matrix(tmp_path: Path) -> None:
    signs = [
        Placed(200, 300, "<"), Placed(200, 310, ">"), Placed(210, 300, "a b"), Placed(210, 314, "c d"),
        Placed(228, 300, "["), Placed(228, 310, "]"),
    ]  # fmt: skip
    brackets = {"<": "\uf8ee", ">": "\uf8f0", "[": "\uf8f9", "]": "\uf8fb"}
    path = write_mapped(tmp_path / "a.pdf", [*column(prose("mill", 12), y=72), *signs], brackets)
    assert _texts(path) == [" ".join(prose("mill", 12)), "a b c d"]


def test_lines_of_prose_are_no_formula() -> None:
    lines = [_line(text, 72, 100 + 12 * number, first=100 * number) for number, text in enumerate(prose("mill", 5))]
    assert with_formulas(lines) is lines


def test_cells_beside_each_other_are_no_formula() -> None:
    first = _line("Nobody knows what the mill is good for, but it sells well", 72, 100)
    second = _line("in winter", 72, 110, first=80)
    overlapping = [first, Line("in winter", 72, 120, 98, 112, 110, 10, first=80, count=len(second.text))]
    assert list(with_formulas(overlapping)) == overlapping


def test_a_row_with_an_index_keeps_its_gaps() -> None:
    spans = (Span(72, 78, 0), Span(120, 128, 2), Span(205, 215, 5))
    row = Line("n n! n", 72, 215, 93, 102, 100, 10, spans=spans, count=6)
    (whole,) = with_formulas([row, _line("2", 216, 96, 7, first=8)])
    assert whole.text == "n n! n2"
    assert [span.start for span in whole.spans] == [0, 2, 5]
