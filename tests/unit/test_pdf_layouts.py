"""PDF: headings, paragraphs, lists and rows as real programs set them."""

from __future__ import annotations

from pathlib import Path

from rag.parser import registry
from rag.parser.blocks import Block, BlockKind
from tests import pdfs
from tests.pdfs_mapped import write_mapped
from tests.pdfs_placed import Placed, column, prose, width_of, write_placed


def _read(path: Path) -> list[Block]:
    profile = registry.profile(path, path.name)
    return list(registry.read(path, profile, 0, profile.units))


def _texts(path: Path) -> list[str]:
    return [block.text for block in _read(path)]


def test_rows_of_a_table_that_are_drawn_in_one_piece(tmp_path: Path) -> None:
    rows = [
        ("Mill", "Founded", "Wheels"),
        ("Upstream", "1801", "4"),
        ("Downstream", "1822", "2"),
        ("Ford", "1840", "1"),
    ]
    drawn = [b"BT /F1 10 Tf 72 700 Td (%s) Tj ET" % line.encode() for line in prose("mill", 1)]
    for number, (name, founded, wheels) in enumerate(rows):
        # The columns start at 72, 172 and 272 points, whatever the words before take.
        shift = [int(100 * (100 - width_of(text))) for text in (name, founded)]
        pieces = f"[({name}) {-shift[0]} ({founded}) {-shift[1]} ({wheels})]".encode()
        drawn.append(b"BT /F1 10 Tf 72 %d Td %s TJ ET" % (660 - 14 * number, pieces))
    table = _read(pdfs.write_raw(tmp_path / "a.pdf", [b"\n".join(drawn)]))[-1].table
    assert table is not None
    assert [tuple(cell.text for cell in row) for row in table.rows] == rows


def test_entries_of_a_table_of_contents_are_parted_and_have_no_dots(tmp_path: Path) -> None:
    entries = [f"{number} Of mills and weirs {'. ' * 30}{number * 7}" for number in range(1, 6)]
    path = write_placed(tmp_path / "a.pdf", [[*column(entries), *column(prose("mill", 4), y=400)]])
    expected = [f"{number} Of mills and weirs {number * 7}" for number in range(1, 6)]
    assert _texts(path) == [*expected, " ".join(prose("mill", 4))]


def test_dots_that_end_a_sentence_stay(tmp_path: Path) -> None:
    lines = ["Nobody knows what came of the mill....", "Nor does anybody ask."]
    assert _texts(write_placed(tmp_path / "a.pdf", [list(column(lines))])) == [" ".join(lines)]


def test_a_bold_beginning_makes_no_heading(tmp_path: Path) -> None:
    start = [Placed(72, 300, "Note:", style="B"), Placed(104, 300, "the wheel that turns by night is not the one")]
    path = write_placed(tmp_path / "a.pdf", [[*column(prose("mill", 6)), *start, Placed(72, 312, "that grinds.")]])
    note = _read(path)[-1]
    assert (note.kind, note.text) == (
        BlockKind.PARAGRAPH,
        "Note: the wheel that turns by night is not the one that grinds.",
    )


def test_a_bold_line_by_itself_is_a_heading(tmp_path: Path) -> None:
    title = Placed(72, 170, "Wheels and weirs", style="B")
    first, *_ = _read(write_placed(tmp_path / "a.pdf", [[title, *column(prose("mill", 6))]]))
    assert (first.kind, first.text) == (BlockKind.HEADING, "Wheels and weirs")


def test_smaller_type_that_is_set_closer_does_not_part_a_paragraph(tmp_path: Path) -> None:
    notes = [f"small remark {number} on how the weir was kept in order by seven patient people" for number in range(30)]
    path = write_placed(
        tmp_path / "a.pdf", [[*column(prose("mill", 8), step=16), *column(notes, y=400, step=8, size=7)]]
    )
    assert _texts(path)[0] == " ".join(prose("mill", 8))


def test_entries_of_a_bibliography_hang_together(tmp_path: Path) -> None:
    placed: list[Placed] = []
    for number in range(1, 4):
        top = 200 + 36 * number
        placed.append(
            Placed(72, top, f"[{number}] A. Writer, On the keeping of mills and weirs in the hills above the ford of")
        )
        placed.append(
            Placed(90, top + 12, "the river, with remarks on the wheels that were found there by later visitors and")
        )
        placed.append(Placed(90, top + 24, f"their children, volume {number}."))
    blocks = _read(write_placed(tmp_path / "a.pdf", [placed]))
    assert [(block.kind, block.text[:13], block.text[-9:]) for block in blocks] == [
        (BlockKind.LIST_ITEM, f"[{number}] A. Writer", f"volume {number}.") for number in (1, 2, 3)
    ]


def test_a_second_line_that_is_further_in_goes_on_with_the_first(tmp_path: Path) -> None:
    first, *others = prose("mill", 4)
    placed = [Placed(72, 200, f"Wheel {first[0].lower()}{first[1:]}"), *column(others, x=96, y=212)]
    assert len(_texts(write_placed(tmp_path / "a.pdf", [placed]))) == 1


def test_a_title_of_two_lines_is_one_heading(tmp_path: Path) -> None:
    title = [Placed(72, 100, "On the keeping of mills", 20), Placed(72, 128, "in the hills above the ford", 20)]
    first, *_ = _read(write_placed(tmp_path / "a.pdf", [[*title, *column(prose("mill", 12))]]))
    assert (first.kind, first.text) == (BlockKind.HEADING, "On the keeping of mills in the hills above the ford")


def test_a_title_in_the_middle_is_no_part_of_the_paragraph_below_it(tmp_path: Path) -> None:
    lines, title = prose("mill", 5), "Abstract"
    x = 72 + (width_of(lines[0]) - width_of(title)) / 2
    texts = _texts(write_placed(tmp_path / "a.pdf", [[Placed(x, 188, title), *column(lines)]]))
    assert texts == ["Abstract", " ".join(lines)]


def test_bullets_of_the_symbol_fonts(tmp_path: Path) -> None:
    lines = [b"BT /F1 10 Tf 72 %d Td (*) Tj 14 0 Td (the wheel %d) Tj ET" % (700 - 14 * n, n) for n in range(3)]
    to_unicode = (
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap 1 begincodespacerange <00> <ff>"
        b" endcodespacerange 1 beginbfchar <2a> <f0b7> endbfchar endcmap end end"
    )
    path = tmp_path / "a.pdf"
    objects = [
        pdfs.CATALOG,
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        _stream(b"\n".join(lines)),
        pdfs.HELVETICA.replace(b">>", b"/ToUnicode 6 0 R >>"),
        _stream(to_unicode),
    ]
    path.write_bytes(pdfs.pdf_of(objects))
    blocks = _read(path)
    assert [block.text for block in blocks] == [f"\u2022 the wheel {number}" for number in range(3)]
    assert {block.kind for block in blocks} == {BlockKind.LIST_ITEM}


def _stream(data: bytes) -> bytes:
    return b"<< /Length %d >>\nstream\n%s\nendstream" % (len(data), data)


def test_text_off_the_page_is_not_read(tmp_path: Path) -> None:
    seen, hidden = list(column(prose("mill", 3))), list(column(["A step that comes later"], x=900, y=300))
    long = Placed(
        400, 500, "A line that starts on the page, and goes on far beyond its right edge, is read to its end."
    )
    assert _texts(write_placed(tmp_path / "a.pdf", [[*seen, *hidden, long]])) == [" ".join(prose("mill", 3)), long.text]


def test_a_page_that_is_all_off_is_read(tmp_path: Path) -> None:
    path = write_placed(tmp_path / "a.pdf", [list(column(["The size of this page is wrong."], x=900))])
    assert _texts(path) == ["The size of this page is wrong."]


def test_four_columns_of_prose_are_no_table(tmp_path: Path) -> None:
    words = ("the old mill by", "its weir was kept", "by seven people who", "never asked for corn", "or for its flour")
    lines = [words[number % len(words)] for number in range(12)]
    placed = [
        Placed(72 + 125 * column, 200 + 12 * row, line, 11) for row, line in enumerate(lines) for column in range(4)
    ]
    assert all(block.table is None for block in _read(write_placed(tmp_path / "a.pdf", [placed])))


def test_a_numbered_bold_title_with_a_wide_gap_is_a_heading(tmp_path: Path) -> None:
    number, title = Placed(72, 170, "3.2", 11, style="B"), Placed(110, 170, "Wheels and weirs", 11, style="B")
    first, *_ = _read(write_placed(tmp_path / "a.pdf", [[number, title, *column(prose("mill", 6), size=11)]]))
    assert (first.kind, first.text) == (BlockKind.HEADING, "3.2 Wheels and weirs")


def test_a_cell_of_many_lines_does_not_end_its_table(tmp_path: Path) -> None:
    placed: list[Placed] = []
    y = 200.0
    for day, notes in (("1 May", 1), ("2 May", 7), ("3 May", 1), ("4 May", 1)):
        placed += [Placed(72, y, day), Placed(300, y, "12.50")]
        for number in range(notes):
            placed.append(Placed(150, y, f"flour {number}"))
            y += 12
    (block,) = [each for each in _read(write_placed(tmp_path / "a.pdf", [placed])) if each.table is not None]
    assert block.table is not None
    assert [row[0].text for row in block.table.rows] == ["1 May", "2 May", "3 May", "4 May"]
    assert block.table.rows[1][1].text == " ".join(f"flour {number}" for number in range(7))


def test_a_numbered_bold_title_smaller_than_the_body_is_a_heading(tmp_path: Path) -> None:
    titles = [Placed(250, 100, "II. WHEELS AND WEIRS", 9, style="B"), Placed(250, 300, "A. Of weirs", 9, style="B")]
    body = [*column(prose("mill", 10), y=130), titles[1], *column(prose("weir", 10), y=330)]
    blocks = _read(write_placed(tmp_path / "a.pdf", [[titles[0], *body]]))
    assert [block.text for block in blocks if block.kind is BlockKind.HEADING] == [title.text for title in titles]


def test_a_numbered_title_in_capitals_is_a_heading(tmp_path: Path) -> None:
    title = Placed(260, 240, "II. WHEELS AND WEIRS", 9)
    path = write_placed(
        tmp_path / "a.pdf", [[*column(prose("mill", 10), y=100), title, *column(prose("weir", 10), y=260)]]
    )
    assert [block.text for block in _read(path) if block.kind is BlockKind.HEADING] == [title.text]


def test_items_of_a_list_in_capitals_stay_items(tmp_path: Path) -> None:
    items = ["A. MEAL", "B. FLOUR", "C. BRAN"]
    blocks = _read(write_placed(tmp_path / "a.pdf", [[*column(prose("mill", 10), y=100), *column(items, y=240)]]))
    assert [block.text for block in blocks if block.kind is BlockKind.LIST_ITEM] == items


def test_the_title_of_a_document_stands_above_its_outline(tmp_path: Path) -> None:
    title, section = Placed(72, 100, "Of mills", 24), Placed(72, 160, "Wheels", 14)
    pages = [[title, section, *column(prose("mill", 20))], [Placed(72, 160, "Weirs", 14), *column(prose("weir", 20))]]
    path = write_placed(tmp_path / "a.pdf", pages, ["Wheels", "Weirs"])
    headings = [(block.text, block.level) for block in _read(path) if block.kind is BlockKind.HEADING]
    assert headings == [("Of mills", 1), ("Wheels", 1), ("Weirs", 1)]


def test_large_type_on_later_pages_stands_below_the_outline(tmp_path: Path) -> None:
    pages = [[Placed(72, 160, "Wheels", 14), *column(prose("mill", 20))], [Placed(72, 160, "Weirs", 24)]]
    pages[1] += column(prose("weir", 20))
    last = _read(write_placed(tmp_path / "a.pdf", pages, ["Wheels"]))[-2]
    assert (last.kind, last.text, last.level > 10) == (BlockKind.HEADING, "Weirs", True)


_HAN = {letter: chr(0x4E00 + 7 * number) for number, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}


def test_a_paragraph_of_a_script_without_spaces_in_larger_type_is_no_heading(tmp_path: Path) -> None:
    large = [f"{'abcdefghij' * 3}" for _ in range(3)]
    small = ["".join(letter for letter in line if letter.isalpha()) for line in prose("mill", 20)]
    texts = [Placed(72, 80, "abcdef", 14), *column(large, y=110, step=18, size=14), *column(small)]
    title, paragraph, *_ = _read(write_mapped(tmp_path / "a.pdf", texts, _HAN))
    assert (title.kind, len(title.text)) == (BlockKind.HEADING, 6)
    assert (paragraph.kind, len(paragraph.text)) == (BlockKind.PARAGRAPH, 90)


def test_paragraphs_that_are_read_from_right_to_left(tmp_path: Path) -> None:
    arabic = {letter: chr(0x0628 + number) for number, letter in enumerate("abcdefghijklmnopqr")}
    arabic |= {letter: chr(0x0641 + number) for number, letter in enumerate("stuvwxyz")}
    texts: list[Placed] = []
    for number in range(3):
        lines = ["of the mill and the weir by the ford", "there is no more to be told than this,", "or so they say."]
        # Further in on the right at the start, and an end on the left that comes early.
        rights = [480, 500, 500]
        for row, (line, right) in enumerate(zip(lines, rights, strict=True)):
            y = 200 + 42 * number + 14 * row
            left = right - width_of(line) if row else right - width_of(lines[0])
            texts.append(Placed(left, y, line))
    blocks = _read(write_mapped(tmp_path / "a.pdf", texts, arabic))
    assert [len(block.lines) for block in blocks] == [3, 3, 3]
