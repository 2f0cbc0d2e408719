"""PDF: code keeps its lines and how far in they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag.parser import registry
from rag.parser.blocks import Block, BlockKind
from rag.parser.pdf_fonts import BOLD, MONO, style_of
from tests.pdfs_placed import Placed, column, prose, write_placed

_LETTER = 0.6
_CODE = ["def grind(corn):", "    for ear in corn:", "        turn(wheel, ear);", "", "    return flour"]


def _read(path: Path) -> list[Block]:
    profile = registry.profile(path, path.name)
    return list(registry.read(path, profile, 0, profile.units))


def _code(lines: list[str], *, x: float = 72, y: float = 300, size: float = 9) -> list[Placed]:
    """Each line at its own place: spaces before it are not drawn."""
    return [
        Placed(x + _LETTER * size * (len(line) - len(line.lstrip())), y + 11 * number, line.lstrip(), size, "Courier")
        for number, line in enumerate(lines)
        if line
    ]


def test_code_between_paragraphs(tmp_path: Path) -> None:
    above, below = prose("mill", 4), prose("weir", 4)
    path = write_placed(tmp_path / "a.pdf", [[*column(above), *_code(_CODE), *column(below, y=366)]])
    blocks = _read(path)
    assert [block.kind for block in blocks] == [BlockKind.PARAGRAPH, BlockKind.CODE, BlockKind.PARAGRAPH]
    assert [block.text for block in blocks] == [" ".join(above), "\n".join(_CODE), " ".join(below)]


def test_every_line_of_code_has_its_place(tmp_path: Path) -> None:
    path = write_placed(tmp_path / "a.pdf", [[*column(prose("mill", 4)), *_code(_CODE)]])
    block = _read(path)[1]
    assert [block.text[line.start :].split("\n")[0] for line in block.lines] == [
        line.strip() for line in _CODE if line.strip()
    ]
    lefts = [line.box.left for line in block.lines]
    assert lefts[0] < lefts[1] == lefts[3] < lefts[2] and lefts[0] == 72


def test_code_with_numbered_lines_is_no_table(tmp_path: Path) -> None:
    lines = [f"\\let\\wheel@{letter}\\mill@{letter}" for letter in "abcdef"]
    numbers = [Placed(60, 300 + 11 * number, str(number + 1), 6) for number in range(len(lines))]
    drawn = [each for pair in zip(numbers, _code(lines, x=90), strict=True) for each in pair]
    block = _read(write_placed(tmp_path / "a.pdf", [[*column(prose("mill", 8)), *drawn]]))[1]
    assert block.kind is BlockKind.CODE
    assert block.text.split("\n") == [f"{number} {line}" for number, line in enumerate(lines, start=1)]


def test_a_line_of_code_by_itself(tmp_path: Path) -> None:
    above, below = prose("mill", 4), prose("weir", 4)
    placed = [*column(above), Placed(100, 262, "mill --grind all", font="Courier"), *column(below, y=288)]
    blocks = _read(write_placed(tmp_path / "a.pdf", [placed]))
    assert [block.kind for block in blocks] == [BlockKind.PARAGRAPH, BlockKind.CODE, BlockKind.PARAGRAPH]


def test_a_line_of_a_paragraph_that_is_set_like_code_stays_in_it(tmp_path: Path) -> None:
    lines = list(column(prose("mill", 6)))
    lines[2] = lines[2]._replace(text="mill --grind all --turn wheels --keep in-order", font="Courier")
    (block,) = _read(write_placed(tmp_path / "a.pdf", [lines]))
    assert block.kind is BlockKind.PARAGRAPH and "--keep in-order line 3" in block.text


def test_a_document_that_is_all_in_such_type_has_no_code(tmp_path: Path) -> None:
    path = write_placed(tmp_path / "a.pdf", [list(column(prose("mill", 20), font="Courier", size=8))])
    (block,) = _read(path)
    assert (block.kind, block.text) == (BlockKind.PARAGRAPH, " ".join(prose("mill", 20)))


def test_a_heading_in_such_type_is_no_code(tmp_path: Path) -> None:
    title = Placed(72, 160, "mill.grind", 16, "Courier")
    first, *_ = _read(write_placed(tmp_path / "a.pdf", [[title, *column(prose("mill", 8))]]))
    assert (first.kind, first.text) == (BlockKind.HEADING, "mill.grind")


@pytest.mark.parametrize(
    ("name", "style"),
    [
        *((b"txtt", MONO), (b"CMTT10", MONO), (b"Inconsolata", MONO), (b"NimbusRomNo9L-Medi", BOLD)),
        *((b"NimbusRomNo9L-MediItal", BOLD), (b"Roboto-Medium", 0), (b"Helvetica", 0), (b"Matter", 0)),
    ],
)
def test_fonts_are_told_by_their_names(name: bytes, style: int) -> None:
    assert style_of(name, 0) == style
