"""What printed pages have: a large first letter, rules between the articles of a newspaper, cells in the middle of
their row's height."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag.parser import registry
from rag.parser.blocks import Block, ReadOptions
from rag.parser.drop_caps import with_drop_caps
from rag.parser.layout import Line, Page, order
from tests.pdfs_placed import Placed, prose, write_placed


def _line(text: str, left: float, base: float, *, width: float = 200, size: float = 10) -> Line:
    return Line(text, left, left + width, base - size, base + 2, base, size)


def _read(path: Path) -> list[Block]:
    options = ReadOptions(ocr=False)
    profile = registry.profile(path, path.name, options)
    return list(registry.read(path, profile, 0, profile.units, options))


@pytest.mark.parametrize(
    ("letter", "first", "whole"),
    [
        ("T", "he mill stands", "The mill stands"),
        ("T", "HE MILL stands", "THE MILL stands"),
        ("A", "mill stands", "A mill stands"),
        ("A", "nother one", "Another one"),
    ],
)
def test_a_large_first_letter_is_put_before_its_word(letter: str, first: str, whole: str) -> None:
    cap = _line(letter, 72, 124, width=22, size=30)
    lines = (cap, _line(first, 98, 108), _line("by the river, a mill", 98, 122), _line("for years", 72, 136))
    found = with_drop_caps(lines)
    assert [line.text for line in found] == [whole, "by the river, a mill", "for years"]
    assert found[0].left == 72


def test_a_large_letter_with_no_text_beside_it_stays() -> None:
    lines = (_line("A", 72, 100, width=20, size=30), _line("anchor, 12", 72, 130), _line("apron, 40", 72, 144))
    assert with_drop_caps(lines) == lines
    beside = (_line("K", 72, 110, width=20, size=30), _line("one line only", 100, 108))
    assert with_drop_caps(beside) == beside


def test_articles_do_not_go_on_beyond_a_rule_across_the_page() -> None:
    texts = [f"the words of line {number} go on here" for number in range(32)]
    columns = [(72, 100, texts[:8]), (320, 100, texts[8:16]), (72, 300, texts[16:24]), (320, 300, texts[24:])]
    lines = tuple(_line(text, x, y + 12 * n, width=220) for x, y, own in columns for n, text in enumerate(own))
    page = Page(1, 612, 792, lines, rules=((70.0, 545.0, 240.0),))
    assert [line.text for line in order(page)] == texts
    short = Page(1, 612, 792, lines, rules=((70.0, 200.0, 240.0),))
    assert [line.text for line in order(short)] == texts[:8] + texts[16:24] + texts[8:16] + texts[24:]


def test_a_rule_below_the_header_parts_nothing() -> None:
    lines = tuple(
        _line(f"the words of line {n} go on here", x, 100 + 12 * n, width=220) for x in (72, 320) for n in range(9)
    )
    with_rule = Page(1, 612, 792, (_line("Header", 72, 60), *lines), rules=((70.0, 545.0, 70.0),))
    assert order(with_rule) == [with_rule.lines[0], *lines]


def test_cells_in_the_middle_of_their_rows_height(tmp_path: Path) -> None:
    head, *rows = [
        ("Pos", "What", "Count", "Price"),
        ("2", "Wheel", "3", "31.20"),
        ("3", "Axle", "1", "85.00"),
        ("4", "Feed roller", "2", "19.90"),
        ("5", "Belt", "6", "12.40"),
    ]
    xs = (72, 120, 330, 420)
    placed = [Placed(x, 100, text) for x, text in zip(xs, head, strict=True)]
    placed += [Placed(72, 125, "1"), Placed(330, 125, "4"), Placed(420, 125, "48.50")]
    placed += [Placed(x, 148 + 18 * n, text) for n, row in enumerate(rows) for x, text in zip(xs, row, strict=True)]
    placed += [Placed(120, 117, "Planing knife of hard steel"), Placed(120, 133, "with two spare bolts")]
    placed += [Placed(72, 260 + 12 * n, text) for n, text in enumerate(prose("payment", 3))]
    blocks = _read(write_placed(tmp_path / "invoice.pdf", [placed]))
    (table,) = [block.table for block in blocks if block.table is not None]
    found = [[cell.text for cell in row] for row in table.rows]
    knife = ["1", "Planing knife of hard steel with two spare bolts", "4", "48.50"]
    assert found == [list(head), knife, *map(list, rows)]


def test_three_lines_that_are_one_row_are_no_table(tmp_path: Path) -> None:
    row = [Placed(72, 125, "1"), Placed(330, 125, "4"), Placed(420, 125, "48.50")]
    around = [Placed(120, 117, "Planing knife"), Placed(220, 117, "of steel")]
    around += [Placed(120, 133, "with two"), Placed(220, 133, "spare bolts")]
    blocks = _read(write_placed(tmp_path / "row.pdf", [[*row, *around]]))
    assert not [block for block in blocks if block.table is not None]
    assert {"1", "4", "48.50", "knife", "bolts"} <= set(" ".join(block.text for block in blocks).split())
