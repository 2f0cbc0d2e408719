"""Where the letters, words and stretches of a PDF page's lines stand, and what noise its text has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pypdfium2 as pdfium
import pytest

from rag.parser import pdf_native as native
from rag.parser.layout import Line
from rag.parser.pdf_frame import Frame
from rag.parser.pdf_letters import has_noise
from rag.parser.pdf_lines import LineReader, read_lines, read_text
from rag.parser.pdf_page import read_page
from rag.parser.pdf_places import Places, Word, joined
from tests import pdfs

_TURNED = {0: b"1 0 0 1 150 300", 90: b"0 1 -1 0 300 150", 180: b"-1 0 0 -1 450 300", 270: b"0 -1 1 0 300 450"}


@contextmanager
def _lines(path: Path) -> Iterator[tuple[list[Line], Places]]:
    with pdfium.PdfDocument(path) as document:
        page = native.load_page(document.raw, 0)
        textpage = native.load_text(page)
        try:
            text = read_text(textpage)
            reader = LineReader(textpage, Frame(page), text)
            yield list(read_lines(reader, text, is_noisy=False)), reader.places
        finally:
            native.close_text(textpage)
            native.close_page(page)


def _by_letters(line: Line, places: Places) -> list[Word]:
    words: list[list[tuple[str, float, float]]] = [[]]
    for letter, (left, _, right, _) in places.letters(line):
        if letter.isspace():
            words.append([])
        else:
            words[-1].append((letter, left, right))
    return [
        (joined(letter for letter, _, _ in word), word[0][1], word[0][2], word[-1][1], word[-1][2])
        for word in words
        if word
    ]


@pytest.mark.parametrize("turned", [0, 90, 180, 270])
@pytest.mark.parametrize("box", [b"[0 0 612 792]", b"[-40 -30 612 792]"])
def test_words_have_the_edges_of_their_letters(tmp_path: Path, turned: int, box: bytes) -> None:
    content = b"BT /F1 12 Tf %s Tm ( Upper  mill, 1804) Tj ET" % _TURNED[turned]
    path = pdfs.write_raw(tmp_path / "a.pdf", [content], page=b"/Rotate %d /MediaBox %s" % (turned, box))
    with _lines(path) as ((line,), places):
        words = places.words(line)
        assert [word[0] for word in words] == ["Upper", "mill,", "1804"]
        assert words == _by_letters(line, places)
        assert line.left <= words[0][2] and words[-1][3] <= line.right and line.right - line.left > 70


def test_words_where_letters_take_two_units(tmp_path: Path) -> None:
    """The file says of its letter A that it is one beyond the first plane of Unicode."""
    codes = b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap 1 begincodespacerange <00> <ff>"
    codes += b" endcodespacerange 1 beginbfchar <41> <D835DC00> endbfchar endcmap end end"
    path = pdfs.write_raw(
        tmp_path / "a.pdf",
        [b"BT /F2 12 Tf 72 700 Td (AA mill A4) Tj ET"],
        resources=b"/Font << /F1 3 0 R /F2 4 0 R >>",
        more=b"4 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 5 0 R >>\nendobj\n"
        b"5 0 obj\n<< /Length %d >>\nstream\n%s\nendstream\nendobj\n" % (len(codes), codes),
    )
    with _lines(path) as ((line,), places):
        assert not places.is_plain
        assert [word[0][-1] for word in places.words(line)] == ["\U0001d400", "l", "4"]
        assert places.words(line) == _by_letters(line, places)


_NARROW, _WIDE = "illi fill till", "WWMM MMWW WMWM"


@pytest.mark.parametrize(
    "texts",
    [
        ("Upper mill", "1804", "twelve vats"),
        (_NARROW, _WIDE, _NARROW),
        (_WIDE, _NARROW, "i"),
        ("i", _WIDE, _NARROW, "1", "2"),
        ("one two three four five six seven", "8", "9"),
        tuple("abcdefgh"),
    ],
)
def test_stretches_start_with_the_word_at_their_left_edge(tmp_path: Path, texts: tuple[str, ...]) -> None:
    x, content = 40, b""
    for text in texts:
        content += b"BT /F1 8 Tf %d 700 Td (%s) Tj ET\n" % (x, text.encode())
        x += 8 * len(text) + 20
    with _lines(pdfs.write_raw(tmp_path / "a.pdf", [content], page=b"/MediaBox [10 0 1010 792]")) as ((line,), _):
        starts = [span.start for span in line.spans]
        assert [line.text[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)] == [
            *texts
        ]
        assert [span.left for span in line.spans] == sorted(span.left for span in line.spans)
        assert all(before.right < after.left for before, after in zip(line.spans, line.spans[1:], strict=False))


@pytest.mark.parametrize("noise", ["\x00", "\x0b", "\x1f", "\x7f", "\ufeff", "\ufffd", "\ue000", "\uf8ff"])
def test_noise_is_found_in_any_script(noise: str) -> None:
    for text in ("plain\r\ntext", "gro\u00df\r\nund \u201eklein\u201c", "\u6587\u6863\r\n\ufffe\u00a0\t."):
        assert not has_noise(text)
        assert has_noise(text + noise) and has_noise(noise + text)


def test_a_page_that_is_missing_is_no_handle(tmp_path: Path) -> None:
    with pdfium.PdfDocument(pdfs.write_pages(tmp_path / "a.pdf", 1)) as document:
        assert not native.load_page(document.raw, 1)


@pytest.mark.parametrize("ruled", [True, False])
def test_of_a_table_only_the_ends_of_words_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ruled: bool
) -> None:
    rows = [("A long name of a mill", "Founded"), *((f"Somewhere upstream {n}", f"{1800 + n}") for n in range(8))]
    path = pdfs.write_table(tmp_path / "a.pdf", rows, ruled=ruled)
    asked: list[int] = []
    get_char_box = native.get_char_box

    def counted(textpage: native.Handle, index: int, room: object) -> int:
        asked.append(index)
        return int(get_char_box(textpage, index, room))

    monkeypatch.setattr(native, "get_char_box", counted)
    with pdfium.PdfDocument(path) as document:
        page = read_page(document, path, 0)
    assert page.items and page.items[0].block is not None and page.items[0].block.table is not None
    words = sum(len(cell.split()) for row in rows for cell in row)
    # Of each word the first letter and the last, and a few where a wide gap is in a line.
    assert 0 < len(asked) <= 2 * words + 2 * len(rows)


def test_letters_of_a_font_that_is_nowhere_to_be_had_have_their_places(tmp_path: Path) -> None:
    font = (
        b"<< /Type /Font /Subtype /Type0 /BaseFont /Ryumin-Light-Identity-H /Encoding /Identity-H /DescendantFonts"
        b" [<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Ryumin-Light /DW 1000"
        b" /CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 2 >>"
        b" /FontDescriptor << /Type /FontDescriptor /FontName /Ryumin-Light /Flags 6 /FontBBox [-170 -331 1024 903]"
        b" /Ascent 723 /Descent -241 /CapHeight 709 /ItalicAngle 0 /StemV 69 >> >>] >>"
    )
    # Hiragana, by their numbers in that collection of letters.
    letters = [b"".join(b"%04x" % number for number in range(850 + row, 880 + row)) for row in range(3)]
    rows = [b"BT /F1 9 Tf 1 0 0 1 72 %d Tm <%b> Tj ET\n" % (720 - 20 * row, text) for row, text in enumerate(letters)]
    path = tmp_path / "a.pdf"
    path.write_bytes(pdfs.one_page(b"".join(rows), font=font))
    with pdfium.PdfDocument(path) as document:
        lines = read_page(document, path, 0).lines
    assert [len(line.text) for line in lines] == [30] * 3
    for row, line in enumerate(lines):
        assert (line.left, line.right) == (pytest.approx(72, abs=2), pytest.approx(72 + 30 * 9, abs=2))
        assert line.top < line.base == pytest.approx(72 + 20 * row, abs=1) and line.bottom < line.base + 6
        assert not line.spans
