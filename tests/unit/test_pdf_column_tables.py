"""Tables of PDF pages in one of two columns, rows that have no known gaps, and headings that are no table."""

from __future__ import annotations

from pathlib import Path

from rag.parser import registry
from rag.parser.blocks import Block, BlockKind
from tests.pdfs_placed import Placed, column, prose, write_placed

_ROWS = (("Mill", "Founded", "Wheels"), ("Upper", "1804", "12"), ("Lower", "1811", "7"), ("Ford", "1840", "3"))


def _read(path: Path) -> list[Block]:
    profile = registry.profile(path, path.name)
    return list(registry.read(path, profile, 0, profile.units))


def _rows(block: Block) -> list[tuple[str, ...]]:
    assert block.table is not None
    return [tuple(cell.text for cell in row) for row in block.table.rows]


def _story(topic: str, lines: int) -> list[str]:
    found = [f"the {topic} of line {number} was kept by seven people and" for number in range(lines)]
    found[-1] = f"the {topic} was kept by seven people who ask for nothing."
    return found


def _table(x: float, y: float, step: float = 12) -> list[Placed]:
    return [
        Placed(x + 80 * at, y + step * number, text) for number, row in enumerate(_ROWS) for at, text in enumerate(row)
    ]


def test_a_table_in_one_of_two_columns(tmp_path: Path) -> None:
    left = list(column(_story("mill", 40), x=72, y=100))
    right = [*_table(330, 100), *column(_story("weir", 30), x=330, y=172)]
    blocks = _read(write_placed(tmp_path / "a.pdf", [[*left, *right]]))
    assert [block.kind for block in blocks] == [BlockKind.PARAGRAPH, BlockKind.TABLE, BlockKind.PARAGRAPH]
    assert (blocks[0].text, blocks[2].text) == (" ".join(_story("mill", 40)), " ".join(_story("weir", 30)))
    assert _rows(blocks[1]) == list(_ROWS)


def test_a_table_at_the_heights_of_the_prose_beside_it(tmp_path: Path) -> None:
    """Each row is drawn at once with the line of prose on its left, and pdfium gives the two as one line."""
    prose_lines = _story("mill", 40)
    placed: list[Placed] = []
    cells = _table(330, 100)
    for number, line in enumerate(prose_lines):
        placed.append(Placed(72, 100 + 12 * number, line))
        placed += [cell for cell in cells if cell.y == 100 + 12 * number]
    placed += column(_story("weir", 30), x=330, y=172)
    blocks = _read(write_placed(tmp_path / "a.pdf", [placed]))
    assert [_rows(block) for block in blocks if block.table is not None] == [list(_ROWS)]
    assert " ".join(prose_lines) in [block.text for block in blocks]


def test_a_line_over_both_columns_stays_whole(tmp_path: Path) -> None:
    """As the header of every page, which is known by all of its text."""
    pages = [
        [
            Placed(72, 50, "Of mills and of their weirs"),
            Placed(400, 50, "The keepers of the ford"),
            *column(_story(f"mill {number}", 40), x=72, y=100),
            *_table(330, 100),
            *column(_story(f"weir {number}", 30), x=330, y=172),
        ]
        for number in range(4)
    ]
    texts = [block.text for block in _read(write_placed(tmp_path / "a.pdf", pages))]
    assert not [text for text in texts if "keepers of the ford" in text or "their weirs" in text]
    assert len(texts) == 3 * len(pages)


def test_headings_with_numbers_are_no_table(tmp_path: Path) -> None:
    placed = [Placed(72, 60, "Of mills"), Placed(500, 60, "9")]
    for y, number, size in ((90, "1.6", 14), (115, "1.6.1", 12), (135, "1.6.1.1", 11)):
        placed += [Placed(72, y, number, size, style="B"), Placed(140, y, f"Of wheels {number}", size, style="B")]
    blocks = _read(write_placed(tmp_path / "a.pdf", [[*placed, *column(prose("mill", 30))]]))
    assert not [block for block in blocks if block.table is not None]
    assert blocks[1].kind is BlockKind.HEADING


def test_entries_of_contents_with_dots_are_no_table(tmp_path: Path) -> None:
    placed = [
        part
        for number in range(8)
        for part in (
            Placed(72, 200 + 14 * number, f"{number}"),
            Placed(100, 200 + 14 * number, f"Of wheels {number}" + " ." * 30),
            Placed(400, 200 + 14 * number, f"{7 * number}"),
        )
    ]
    blocks = _read(write_placed(tmp_path / "a.pdf", [placed]))
    assert not [block for block in blocks if block.table is not None or ". ." in block.text]
