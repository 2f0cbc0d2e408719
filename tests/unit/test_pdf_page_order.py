"""PDF: the order of pages that are put together from pieces, and what is drawn across them."""

from __future__ import annotations

from pathlib import Path

from rag.parser import registry
from rag.parser.blocks import Block, BlockKind
from tests.pdfs import one_page
from tests.pdfs_placed import Placed, column, prose, width_of, write_placed


def _read(path: Path) -> list[Block]:
    profile = registry.profile(path, path.name)
    return list(registry.read(path, profile, 0, profile.units))


def _story(topic: str, lines: int, *, x: float, y: float) -> list[Placed]:
    texts = [f"the {topic} went {number} times around and" for number in range(lines)]
    texts[0], texts[-1] = texts[0].capitalize(), texts[-1].removesuffix(" and") + "."
    return list(column(texts, x=x, y=y))


def test_a_front_page_is_read_from_its_top(tmp_path: Path) -> None:
    lead = [Placed(72, 100, "Flood at the mill", 24), *column(prose("lead", 5), y=140)]
    first, second = _story("wheel", 9, x=72, y=260), _story("weir", 9, x=72, y=400)
    aside = [*_story("index", 7, x=330, y=275), *_story("editor", 7, x=330, y=430)]
    path = write_placed(tmp_path / "a.pdf", [[*aside, *second, *first, *lead]])
    starts = [block.text.split()[1] for block in _read(path)]
    assert starts == ["at", "0", "wheel", "weir", "index", "editor"]


def test_a_header_that_is_drawn_last_comes_first_and_leaves_the_order_of_the_file(tmp_path: Path) -> None:
    header = Placed(72, 40, "Of mills and weirs")
    path = write_placed(tmp_path / "a.pdf", [[*column(prose("mill", 20)), *column(prose("weir", 8), y=480), header]])
    assert [block.text[:4] for block in _read(path)] == ["Of m", "Line", "Line"]


def test_a_word_across_the_page_is_no_heading_and_comes_last(tmp_path: Path) -> None:
    mark = Placed(60, 450, "DRAFT", 150)
    first, last = _read(write_placed(tmp_path / "a.pdf", [[mark, *column(prose("mill", 40), y=72)]]))
    assert first.text == " ".join(prose("mill", 40))
    assert (last.kind, last.text) == (BlockKind.PARAGRAPH, "DRAFT")


def test_a_large_word_on_a_page_with_hardly_any_text_stays_a_heading(tmp_path: Path) -> None:
    words = [Placed(60, 300, "MILL", 150), *column(prose("mill", 3), y=400)]
    body = [list(column(prose("weir", 40), y=72)) for _ in range(3)]
    first, *_ = _read(write_placed(tmp_path / "a.pdf", [words, *body]))
    assert (first.kind, first.text) == (BlockKind.HEADING, "MILL")


def test_a_foot_that_is_drawn_first_comes_last(tmp_path: Path) -> None:
    foot = [Placed(72, 740, "206 Mills and weirs"), Placed(300, 752, "Abstract of the county, of this year")]
    path = write_placed(tmp_path / "a.pdf", [[*foot, *column(prose("mill", 20)), *column(prose("weir", 8), y=480)]])
    assert [block.text[:4] for block in _read(path)] == ["Line", "Line", "206 ", "Abst"]


def test_a_text_across_the_gutter_with_notes_beside_it_is_read_in_one_piece(tmp_path: Path) -> None:
    notes = [
        Placed(60, 90, "Article info"),
        *column(["Received in May", "Accepted in June", "Mills, weirs"], x=60, y=110, size=7),
    ]
    abstract = [Placed(210, 90, "Abstract"), *column(prose("abstract", 6), x=210, y=109.5, step=10)]
    body = [*_narrow("wheel", 20, x=60), *_narrow("weir", 20, x=320)]
    texts = " ".join(block.text for block in _read(write_placed(tmp_path / "a.pdf", [[*notes, *abstract, *body]])))
    assert "Received in May Accepted in June Mills, weirs Abstract" in texts
    assert " ".join(prose("abstract", 6)) in texts
    assert texts.index("seven patient people.") < texts.index("Line 0 of the wheel") < texts.index("Line 0 of the weir")


def _narrow(topic: str, lines: int, *, x: float) -> list[Placed]:
    texts = [f"line {number} of the {topic} goes on to the edge of its" for number in range(lines)]
    texts[0] = texts[0].capitalize()
    return list(column(texts, x=x, y=220))


def test_a_line_that_raised_signs_part_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    names = ["Ann Miller", ", Ben Weir", ", Cara Wheel", ", Dan Ford"]
    drawn, x = [], 100.0
    for name in names:
        drawn.append(b"BT /F1 11 Tf 1 0 0 1 %.2f 700 Tm (%b) Tj ET" % (x, name.encode()))
        x += width_of(name, 11)
        drawn.append(b"BT /F1 7 Tf 1 0 0 1 %.2f 704.5 Tm (*) Tj ET" % x)
        x += width_of("*", 7) + 2
    body = [
        b"BT /F1 10 Tf 1 0 0 1 72 %d Tm (%b) Tj ET" % (640 - 12 * n, t.encode()) for n, t in enumerate(prose("mill", 9))
    ]
    path.write_bytes(one_page(b"\n".join([*drawn, *body])))
    assert _read(path)[0].text == "Ann Miller*, Ben Weir*, Cara Wheel*, Dan Ford*"


def test_two_columns_of_an_index_are_no_table(tmp_path: Path) -> None:
    words = [
        "clip",
        "close",
        "colors",
        "column",
        "contour",
        "cosine",
        "curve",
        "cycle",
        "daily",
        "data",
        "debug",
        "depth",
    ]
    left = [f"{word}, {20 + n}, {81 + n}, {137 + n}" for n, word in enumerate(words)]
    right = [f"e{word}, {39 + n}" for n, word in enumerate(words)]
    blocks = _read(write_placed(tmp_path / "a.pdf", [[*column(left), *column(right, x=330)]]))
    assert not any(block.table for block in blocks)
    assert " ".join(block.text for block in blocks) == " ".join([*left, *right])


def test_dots_that_lead_to_several_numbers_are_of_a_table(tmp_path: Path) -> None:
    names = ["Robbery", "Arson", "Fraud", "Gambling", "Vagrancy", "Runaways"]
    placed = []
    for row, name in enumerate(names):
        y = 200 + 12 * row
        dots = " ." * int((150 - width_of(name)) / width_of(" ."))
        numbers = [f"{100 * row + 10 * n + 1}.{n}" for n in range(4)]
        placed += [Placed(72, y, name + dots), *(Placed(260 + 60 * n, y, text) for n, text in enumerate(numbers))]
    (table,) = [block.table for block in _read(write_placed(tmp_path / "a.pdf", [placed]))]
    assert table is not None
    assert [row[0].text for row in table.rows] == names
    assert [cell.text for cell in table.rows[1]] == ["Arson", "101.0", "111.1", "121.2", "131.3"]
