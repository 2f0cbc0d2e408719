"""Tables of PDF pages: ruled ones cell by cell, aligned ones without rules, and what must not become one."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fpdf import FPDF
from fpdf.fonts import FontFace

from rag.parser import registry
from rag.parser.blocks import Block, BlockKind, Cell, Table
from rag.parser.layout import Line
from rag.parser.pdf_frame import Rect
from rag.parser.pdf_grid import Grid, GridCell
from rag.parser.pdf_places import Word
from rag.parser.pdf_tables import read_grid
from tests import pdfs

_ROWS = (
    ("Mill", "Founded", "Vats", "Reams a day"),
    ("Upper mill", "1804", "12", "1,250"),
    ("Lower mill", "1811", "7", "640"),
    ("Bridge house", "1832", "9", "815.5"),
    ("Old ford", "1840", "3", "98"),
)


def _read(path: Path) -> list[Block]:
    profile = registry.profile(path, path.name)
    return list(registry.read(path, profile, 0, profile.units))


def _tables(blocks: list[Block]) -> list[Table]:
    return [block.table for block in blocks if block.table is not None]


def _texts(table: Table) -> list[tuple[str, ...]]:
    return [tuple(cell.text for cell in row) for row in table.rows]


@pytest.mark.parametrize("ruled", [True, False])
def test_a_table_stands_between_its_paragraphs(tmp_path: Path, ruled: bool) -> None:
    before, block, after = _read(pdfs.write_table(tmp_path / "a.pdf", _ROWS, ruled=ruled))
    assert before.text == " ".join(pdfs.sentence(1, number) for number in (1, 2, 3))
    assert after.text == " ".join(pdfs.sentence(2, number) for number in (1, 2, 3))
    assert block.kind is BlockKind.TABLE and block.table is not None
    assert _texts(block.table) == list(_ROWS) and block.table.header_rows == 1
    assert block.text == "\n".join("\t".join(row) for row in _ROWS)


def test_rows_have_their_places(tmp_path: Path) -> None:
    (block,) = [block for block in _read(pdfs.write_table(tmp_path / "a.pdf", _ROWS)) if block.table]
    assert block.table is not None and len(block.table.places) == len(_ROWS)
    tops = [place.top for place in block.table.places]
    assert tops == sorted(tops) and all(place.bottom - place.top in range(16, 20) for place in block.table.places)
    start = block.text.index("Bridge")
    assert block.boxes_of(start, start + 6) == (block.table.places[3],)


def test_joined_cells(tmp_path: Path) -> None:
    pdf = FPDF()
    pdf.set_font("Helvetica", size=10)
    pdf.add_page()
    with pdf.table(line_height=6, num_heading_rows=2) as table:
        heading = table.row()
        heading.cell("Mill", rowspan=2)
        heading.cell("Output", colspan=2)
        row = table.row()
        row.cell("Reams")
        row.cell("Bales")
        table.row(("Upper", "12", "3"))
        table.row(("Lower", "7", "1"))
    pdf.output(str(tmp_path / "a.pdf"))
    (found,) = _tables(_read(tmp_path / "a.pdf"))
    assert found.header_rows == 2
    assert found.rows == (
        (Cell("Mill", rows=2), Cell("Output", columns=2)),
        (Cell("Reams"), Cell("Bales")),
        (Cell("Upper"), Cell("12"), Cell("3")),
        (Cell("Lower"), Cell("7"), Cell("1")),
    )


def test_lines_of_a_cell_are_joined(tmp_path: Path) -> None:
    long = "A long remark that takes several lines in its narrow cell, and ends here."
    rows = (("Mill", "Remark", "Vats"), ("Upper", long, "4"), ("Lower", "Short", "5"))
    (found,) = _tables(_read(pdfs.write_table(tmp_path / "a.pdf", rows)))
    assert _texts(found) == list(rows)


def test_columns_without_rules_between_rows(tmp_path: Path) -> None:
    pdf = FPDF()
    pdf.set_font("Helvetica", size=10)
    pdf.add_page()
    with pdf.table(
        borders_layout="NO_HORIZONTAL_LINES", line_height=6, headings_style=FontFace(emphasis="BOLD")
    ) as table:
        for row in _ROWS:
            table.row(row)
    pdf.output(str(tmp_path / "a.pdf"))
    (found,) = _tables(_read(tmp_path / "a.pdf"))
    assert _texts(found) == list(_ROWS)


@pytest.mark.parametrize(("ruled", "least"), [(True, 0.95), (False, 0.85)])
def test_most_cells_of_many_tables_are_right(tmp_path: Path, ruled: bool, least: float) -> None:
    right = total = 0
    for seed in range(12):
        rows = _random_rows(random.Random(seed))
        tables = _tables(_read(pdfs.write_table(tmp_path / f"{seed}.pdf", rows, ruled=ruled, size=8)))
        total += sum(len(row) for row in rows)
        for found in tables[:1]:
            right += sum(
                one == other
                for row, wanted in zip(_texts(found), rows, strict=False)
                for one, other in zip(row, wanted, strict=False)
            )
    assert right >= least * total


def _random_rows(source: random.Random) -> list[tuple[str, ...]]:
    def cell(kind: int) -> str:
        if kind == 0:
            return f"{source.randint(1, 9999):,}"
        if kind == 1:
            return f"{source.uniform(0, 100):.2f}"
        if kind == 2:
            return " ".join(source.sample(("mill", "pulp", "felt", "vat", "ream", "bale"), source.randint(1, 2)))
        return f"{source.choice('ABC')}-{source.randint(10, 99)}"

    kinds = [2, *(source.randrange(4) for _ in range(source.randint(2, 5)))]
    heading = tuple(f"Name {chr(65 + number)}" for number in range(len(kinds)))
    return [heading, *(tuple(cell(kind) for kind in kinds) for _ in range(source.randint(4, 12)))]


def test_prose_in_columns_is_no_table(tmp_path: Path) -> None:
    left = " ".join(pdfs.sentence(1, number) for number in range(1, 13))
    right = " ".join(pdfs.sentence(2, number) for number in range(1, 13))
    blocks = _read(pdfs.write_columns(tmp_path / "a.pdf", left, right))
    assert not _tables(blocks) and " ".join(block.text for block in blocks) == f"{left} {right}"


def test_a_list_with_wide_gaps_is_no_table(tmp_path: Path) -> None:
    content = b"BT /F1 11 Tf 72 720 Td " + b"".join(
        b"(%d.) Tj 30 0 Td (Thing number %d to take along) Tj -30 -14 Td " % (number, number) for number in range(1, 9)
    )
    assert not _tables(_read(pdfs.write_raw(tmp_path / "a.pdf", [content + b"ET"])))


def test_signs_of_formulas_that_are_drawn_later_are_kept(tmp_path: Path) -> None:
    content = b"".join(
        b"1 0 0 1 72 %d Tm (%s) Tj 128 0 Td (1.0) Tj 25 0 Td [(-) 7500 (=)] TJ 20 0 Td (%s) Tj " % (y, one, other)
        for y, one, other in ((700, b"cyan", b"red"), (680, b"magenta", b"green"), (660, b"yellow", b"blue"))
    )
    blocks = _read(pdfs.write_raw(tmp_path / "a.pdf", [b"BT /F1 11 Tf " + content + b"ET"]))
    assert "".join(block.text for block in blocks).count("=") == 3


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "cell", [b"%d %d 1000 200 re S ", b"%d %d m 0 200 l 1000 200 l 1000 0 l h S "], ids=["rectangle", "lines"]
)
def test_cells_drawn_one_by_one_in_another_scale(tmp_path: Path, cell: bytes, turned: bool) -> None:
    words = ((b"Mill", b"Vats"), (b"Upper", b"4"), (b"Lower", b"5"))
    content = b"q 0.1 0 0 0.1 100 500 cm "
    for row in range(3):
        for column in range(2):
            x, y = 1000 * column, 400 - 200 * row
            drawn = cell % (x, y) if b"re" in cell else b"q 1 0 0 1 %d %d cm " % (x, y) + cell % (0, 0) + b"Q "
            content += drawn
    content += b"Q "
    for row, line in enumerate(words):
        for column, word in enumerate(line):
            content += b"BT /F1 10 Tf %d %d Td (%s) Tj ET " % (105 + 100 * column, 545 - 20 * row, word)
    if turned:  # drawn on its side on a page that is shown turned
        content = b"q 0 1 -1 0 700 0 cm " + content + b"Q"
    path = pdfs.write_raw(tmp_path / "a.pdf", [content], page=b"/Rotate %d" % (90 if turned else 0))
    (found,) = _tables(_read(path))
    assert _texts(found) == [("Mill", "Vats"), ("Upper", "4"), ("Lower", "5")]


def test_a_word_over_the_edge_of_a_cell_is_cut_there() -> None:
    grid = Grid([0.0, 50.0, 100.0], [0.0, 20.0, 40.0], [GridCell(row, at, 1, 1) for row in (0, 1) for at in (0, 1)])
    lines = [
        Line(text, 5.0, 95.0, top + 5.0, top + 15.0, top + 14.0, 10.0, count=len(text))
        for text, top in (("MillVats", 0.0), ("4 5", 20.0))
    ]
    found = read_grid(grid, lines, _Letters(), 1)
    assert found is not None and found.item.block is not None and found.item.block.table is not None
    assert _texts(found.item.block.table) == [("Mill", "Vats"), ("4", "5")] and not found.lines


class _Letters:
    """Letters of a line that all are as wide, from x = 5 to 95."""

    def letters(self, line: Line) -> Iterator[tuple[str, Rect]]:
        width = 90 / len(line.text)
        for at, letter in enumerate(line.text):
            yield letter, (5 + at * width, line.top, 5 + (at + 1) * width, line.bottom)

    def words(self, line: Line) -> list[Word]:
        boxes = [box for _, box in self.letters(line)]
        found = [(word[0], boxes[word.start()], boxes[word.end() - 1]) for word in re.finditer(r"\S+", line.text)]
        return [(text, first[0], first[2], last[0], last[2]) for text, first, last in found]


def test_a_box_around_text_is_no_table(tmp_path: Path) -> None:
    content = b"60 600 400 120 re S BT /F1 11 Tf 72 700 Td (A note in a box.) Tj 0 -14 Td (It goes on.) Tj ET"
    (block,) = _read(pdfs.write_raw(tmp_path / "a.pdf", [content]))
    assert block.kind is BlockKind.PARAGRAPH and block.text == "A note in a box. It goes on."


def test_a_grid_drawn_inside_a_form(tmp_path: Path) -> None:
    rules = b"".join(b"0 %d m 200 %d l S " % (y, y) for y in (0, 20, 40, 60))
    rules += b"".join(b"%d 0 m %d 60 l S " % (x, x) for x in (0, 100, 200))
    form = (
        b"4 0 obj\n<< /Type /XObject /Subtype /Form /BBox [0 0 200 60] /Length %d >>\nstream\n%s\nendstream\nendobj\n"
    )
    words = ((b"Mill", b"Vats"), (b"Upper", b"4"), (b"Lower", b"5"))
    texts = b"".join(
        b"BT /F1 10 Tf %d %d Td (%s) Tj ET " % (105 + 100 * column, 545 - 20 * row, word)
        for row, line in enumerate(words)
        for column, word in enumerate(line)
    )
    path = pdfs.write_raw(
        tmp_path / "a.pdf",
        [b"q 1 0 0 1 100 500 cm /X1 Do Q " + texts],
        resources=b"/XObject << /X1 4 0 R >>",
        more=form % (len(rules), rules),
    )
    (found,) = _tables(_read(path))
    assert _texts(found) == [("Mill", "Vats"), ("Upper", "4"), ("Lower", "5")]
