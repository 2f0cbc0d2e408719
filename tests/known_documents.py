"""PDF files of which everything is known: the words in the order in which they are read, and the cells of their tables.
Fidelity is measured against them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from fpdf import FPDF

from rag.parser.blocks import Block, Table
from tests.known_tables import Cells, draw_table
from tests.pdfs import one_page, write_columns

_VOCABULARY = (
    "river stone window careful machine letter harvest evening copper library distance gentle answer market weather"
    " kitchen patient thunder village pattern mountain quiet history garden signal measure travel winter bridge paper"
    " candle forest journey silver method island yellow memory morning purpose vessel number orchard engine"
)

_WORDS = _VOCABULARY.split()


@dataclass(frozen=True)
class Known:
    """A document, its words in reading order, and the cells of its tables: one on each page, or none."""

    name: str
    path: Path
    words: list[str]
    tables: tuple[Cells, ...] = ()


def prose(seed: int, sentences: int) -> str:
    dice = random.Random(seed)
    made = []
    for _ in range(sentences):
        words = [dice.choice(_WORDS) for _ in range(dice.randint(7, 14))]
        made.append(" ".join(words).capitalize() + ".")
    return " ".join(made)


def _new() -> FPDF:
    pdf = FPDF()
    pdf.set_auto_page_break(auto=False)
    pdf.set_font("Times", size=11)
    return pdf


def _heading(pdf: FPDF, text: str, size: float = 16) -> str:
    pdf.set_font("Times", style="B", size=size)
    pdf.cell(0, size * 0.6, text, new_x="LMARGIN", new_y="NEXT")
    pdf.set_font("Times", size=11)
    return text


def _paragraph(pdf: FPDF, text: str, width: float = 0) -> str:
    pdf.multi_cell(width, 5, text, new_x="LMARGIN", new_y="NEXT")
    pdf.ln(3)
    return text


def _saved(pdf: FPDF, folder: Path, name: str, text: Sequence[str], tables: Sequence[Cells] = ()) -> Known:
    path = folder / f"{name}.pdf"
    pdf.output(str(path))
    return Known(name, path, " ".join(text).split(), tuple(tables))


def one_column(folder: Path) -> Known:
    pdf, text = _new(), []
    for page in range(3):
        pdf.add_page()
        text.append(_heading(pdf, f"Chapter {page + 1} of the account"))
        text += [_paragraph(pdf, prose(page * 10 + n, 5)) for n in range(6)]
    return _saved(pdf, folder, "one column", text)


def two_columns(folder: Path) -> Known:
    title, left, right = "On the keeping of records", prose(100, 28), prose(101, 28)
    path = write_columns(folder / "two columns.pdf", left, right, title)
    return Known("two columns", path, f"{title} {left} {right}".split())


def three_columns(folder: Path) -> Known:
    pdf = _new()
    pdf.add_page()
    title = _heading(pdf, "Notes in three columns")
    top, texts = pdf.get_y() + 4, []
    for column in range(3):
        text = prose(200 + column, 14)
        pdf.set_xy(10 + column * 65, top)
        pdf.multi_cell(58, 5, text, align="L")
        texts.append(text)
    return _saved(pdf, folder, "three columns", [title, *texts])


def footnotes(folder: Path) -> Known:
    pdf = _new()
    pdf.add_page()
    text = [_heading(pdf, "A text with notes"), *(_paragraph(pdf, prose(300 + n, 6)) for n in range(5))]
    pdf.set_y(265)
    pdf.line(10, 263, 70, 263)
    pdf.set_font("Times", size=8)
    for number in (1, 2):
        note = f"{number} {prose(320 + number, 1)}"
        pdf.cell(0, 4, note, new_x="LMARGIN", new_y="NEXT")
        text.append(note)
    return _saved(pdf, folder, "footnotes", text)


def headings(folder: Path) -> Known:
    pdf, text = _new(), []
    pdf.add_page()
    for number, size in ((1, 20), (2, 16), (3, 13), (4, 16)):
        text.append(_heading(pdf, f"Heading number {number}", size))
        text.append(_paragraph(pdf, prose(400 + number, 4)))
    return _saved(pdf, folder, "headings", text)


def rotated(folder: Path) -> Known:
    """A page that is shown turned by a quarter, its text drawn so that it stands upright then."""
    words = prose(500, 30).split()
    lines = [" ".join(words[start : start + 11]) for start in range(0, len(words), 11)]
    shown = b"".join(
        b"BT /F1 11 Tf 0 1 -1 0 %d 60 Tm (%b) Tj ET\n" % (60 + 15 * n, line.encode()) for n, line in enumerate(lines)
    )
    path = folder / "rotated.pdf"
    path.write_bytes(one_page(shown, page=b"/Rotate 90"))
    return Known("rotated", path, words)


def _rows(seed: int, rows: int, columns: int) -> Cells:
    dice = random.Random(seed)
    header = [f"{dice.choice(_WORDS).capitalize()} {n}" for n in range(1, columns + 1)]
    body = [
        [dice.choice(_WORDS) + f" {row}"] + [f"{dice.randint(1, 9999) / 10:.1f}" for _ in range(columns - 1)]
        for row in range(1, rows)
    ]
    return [header, *body]


def _draw_table(pdf: FPDF, cells: Cells, widths: Sequence[float], border: int) -> None:
    for row in cells:
        for text, width in zip(row, widths, strict=True):
            pdf.cell(width, 7, text, border=border)
        pdf.ln(7)
    pdf.ln(5)


def _table_document(folder: Path, name: str, border: int) -> Known:
    pdf, text, tables = _new(), [], []
    for page in range(2):
        pdf.add_page()
        text.append(_heading(pdf, f"Figures of part {page + 1}"))
        text.append(_paragraph(pdf, prose(600 + page, 5)))
        cells = _rows(610 + page, 9, 4)
        _draw_table(pdf, cells, (55, 40, 40, 40), border)
        tables.append(cells)
        text += [" ".join(row) for row in cells]
        text.append(_paragraph(pdf, prose(620 + page, 5)))
    return _saved(pdf, folder, name, text, tables)


def ruled_tables(folder: Path) -> Known:
    return _table_document(folder, "ruled tables", border=1)


def unruled_tables(folder: Path) -> Known:
    return _table_document(folder, "unruled tables", border=0)


def _varied_tables(folder: Path, name: str, *, wraps: bool) -> Known:
    pdf, text, tables = _new(), [], []
    for page in range(40):
        pdf.add_page()
        text.append(_heading(pdf, f"Tables of part {page + 1}"))
        text.append(_paragraph(pdf, prose(700 + page, 4)))
        cells = draw_table(pdf, 710 + page, _WORDS, wraps=wraps)
        pdf.set_font("Times", size=11)
        tables.append(cells)
        text += [" ".join(row) for row in cells]
        text.append(_paragraph(pdf, prose(720 + page, 4)))
    return _saved(pdf, folder, name, text, tables)


def unruled_words(folder: Path) -> Known:
    return _varied_tables(folder, "unruled, several words to a cell", wraps=False)


def unruled_wrapped(folder: Path) -> Known:
    return _varied_tables(folder, "unruled, several lines to a cell", wraps=True)


def chinese(folder: Path) -> Known:
    """With a font that every reader knows by name, so that none has to be in the file."""
    lines = ["文档处理系统读取每一页的文字", "并且保持阅读顺序与位置信息", "表格和标题也会被正确识别"]
    shown = b"".join(
        b"BT /F1 14 Tf 1 0 0 1 72 %d Tm <%b> Tj ET\n" % (720 - 24 * n, line.encode("utf-16-be").hex().encode())
        for n, line in enumerate(lines)
    )
    font = (
        b"<< /Type /Font /Subtype /Type0 /BaseFont /STSong-Light /Encoding /UniGB-UCS2-H /DescendantFonts"
        b" [<< /Type /Font /Subtype /CIDFontType0 /BaseFont /STSong-Light /DW 1000"
        b" /CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 2 >> >>] >>"
    )
    path = folder / "chinese.pdf"
    path.write_bytes(one_page(shown, font=font))
    return Known("chinese", path, [character for line in lines for character in line])


MAKERS: tuple[Callable[[Path], Known], ...] = (
    one_column, two_columns, three_columns, footnotes, headings, rotated, ruled_tables, unruled_tables, chinese,
)  # fmt: skip
# Tables of many kinds, one to a page: more of these than of all others, so that no rates are taken from them.
TABLE_MAKERS: tuple[Callable[[Path], Known], ...] = (unruled_words, unruled_wrapped)


def words_of(blocks: Sequence[Block], *, by_character: bool = False) -> list[str]:
    text = " ".join(block.text for block in blocks)
    return [each for each in text if not each.isspace()] if by_character else text.split()


def f1(expected: Sequence[str], got: Sequence[str]) -> float:
    """Of the words, whatever their order."""
    common = sum((Counter(expected) & Counter(got)).values())
    return 2 * common / max(1, len(expected) + len(got))


def order(expected: Sequence[str], got: Sequence[str]) -> float:
    """How much of the text stands in the right order: 1 is all of it."""
    matcher = SequenceMatcher(None, expected, got, autojunk=False)
    return sum(block.size for block in matcher.get_matching_blocks()) / max(1, len(expected))


def cells_right(known: Known, blocks: Sequence[Block]) -> float:
    """The share of cells that were found in their row and column, in the first table of their page."""
    found: dict[int, Table] = {}
    for block in blocks:
        if block.table is not None:
            found.setdefault(block.page, block.table)
    total = sum(len(row) for cells in known.tables for row in cells)
    right = 0
    for page, cells in enumerate(known.tables, start=1):
        for row, got_row in zip(cells, found[page].rows if page in found else (), strict=False):
            right += sum(text == got.text.strip() for text, got in zip(row, got_row, strict=False))
    return right / total if total else 1.0
