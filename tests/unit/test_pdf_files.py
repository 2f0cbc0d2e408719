"""PDF files as a whole: passwords, dates, ranges that cost what they hold, and files made to do harm."""

from __future__ import annotations

import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fpdf import FPDF

from common.errors import DocumentError, EncryptedFile, UnreadableFile
from common.settings import ROOT
from rag.flow.chunk import ChunkSettings
from rag.flow.chunker import Chunker
from rag.parser import pdf_open, registry
from rag.parser.blocks import Block, BlockKind, ReadOptions
from rag.parser.pdf_lines import MAX_LINES
from tests import pdfs


def _read(path: Path, options: ReadOptions = ReadOptions()) -> list[Block]:  # noqa: B008
    profile = registry.profile(path, path.name, options)
    return list(registry.read(path, profile, 0, profile.units, options))


@pytest.mark.parametrize("password", ["sesame", "\u00f6ffne dich"])
def test_the_password_opens(tmp_path: Path, password: str) -> None:
    path = pdfs.write_encrypted(tmp_path / "a.pdf", password)
    (block,) = _read(path, ReadOptions(password=password))
    assert block.text == "Nobody reads this without the password."


def test_a_wrong_password_is_told_from_none(tmp_path: Path) -> None:
    path = pdfs.write_encrypted(tmp_path / "a.pdf")
    with pytest.raises(EncryptedFile, match=r"a.pdf is encrypted and needs a password"):
        _read(path)
    with pytest.raises(EncryptedFile, match=r"a.pdf is encrypted, and the password given for it is wrong"):
        _read(path, ReadOptions(password="open"))


def test_a_file_that_only_its_owner_locked_opens(tmp_path: Path) -> None:
    assert _read(pdfs.write_encrypted(tmp_path / "a.pdf", ""))[0].text.startswith("Nobody")


def test_an_open_file_is_not_read_without_its_password(tmp_path: Path) -> None:
    path = pdfs.write_encrypted(tmp_path / "a.pdf")
    profile = registry.profile(path, "a.pdf", ReadOptions(password="sesame"))
    with pytest.raises(EncryptedFile):
        list(registry.read(path, profile, 0, 1))


def test_dates(tmp_path: Path) -> None:
    pdf = FPDF()
    pdf.set_creation_date(datetime(2021, 3, 4, 5, 6, 7, tzinfo=UTC))
    pdf.add_page()
    pdf.output(str(tmp_path / "a.pdf"))
    assert registry.profile(tmp_path / "a.pdf", "a.pdf").created == "2021-03-04T05:06:07+00:00"


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        (b"D:20210304050607+01'30'", "2021-03-04T05:06:07+01:30"),
        (b"D:2021", "2021-01-01T00:00:00"),
        (b"D:20219999", ""),
        (b"yesterday", ""),
    ],
)
def test_dates_of_many_forms(tmp_path: Path, date: bytes, expected: str) -> None:
    path = pdfs.write_raw(tmp_path / "a.pdf", [b""], more=b"4 0 obj\n<< /ModDate (%s) >>\nendobj\n" % date)
    path.write_bytes(path.read_bytes().replace(b"/Root 1 0 R", b"/Root 1 0 R /Info 4 0 R"))
    assert registry.profile(path, "a.pdf").modified == expected


def _many_kinds(path: Path) -> Path:
    """Pages of prose, headings, tables, notes and running lines."""
    pdf = FPDF()
    pdf.set_auto_page_break(auto=False)
    for page in range(1, 15):
        pdf.add_page()
        pdf.set_font("Helvetica", size=16)
        pdf.cell(0, 10, f"Part {page}", new_x="LMARGIN", new_y="NEXT")
        pdf.set_font("Helvetica", size=11)
        pdf.multi_cell(0, 5, " ".join(pdfs.sentence(page, number) for number in range(1, 9)))
        if page % 3 == 0:
            pdf.ln(4)
            with pdf.table() as table:
                for row in range(4):
                    table.row((f"Mill {row}", str(page * row), "kept"))
        pdf.set_font("Helvetica", size=8)
        pdf.set_xy(10, 260)
        pdf.cell(0, 4, f"{page} A note on this page.")
        pdf.set_xy(10, 285)
        pdf.cell(0, 4, f"The mills, page {page}", align="C")
    pdf.output(str(path))
    return path


def test_blocks_and_chunks_do_not_depend_on_the_split(tmp_path: Path) -> None:
    path = _many_kinds(tmp_path / "a.pdf")
    profile = registry.profile(path, "a.pdf")
    chunker = Chunker(lambda texts: [len(text.split()) for text in texts], ChunkSettings(chunk_token_num=40), profile)
    whole = list(registry.read(path, profile, 0, profile.units))
    assert {block.kind for block in whole} == {
        *(BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.TABLE, BlockKind.FOOTNOTE)
    }
    chunks = list(chunker.chunk(whole))
    for pages in (1, 5, 12):
        blocks, parts = [], []
        for start in range(0, profile.units, pages):
            pdf_open.release()
            found = list(registry.read(path, profile, start, start + pages))
            blocks += found
            parts += list(chunker.chunk(found))
        assert blocks == whole and parts == chunks


def _large(path: Path, pages: int) -> Path:
    return pdfs.write_raw(path, [b"BT /F1 12 Tf 72 700 Td (Page %d.) Tj ET" % page for page in range(1, pages + 1)])


def test_the_last_pages_of_ten_thousand(tmp_path: Path) -> None:
    path = _large(tmp_path / "a.pdf", 10_000)
    profile = registry.profile(path, "a.pdf")
    assert profile.units == 10_000
    costs = []
    for start in (0, 9_988):
        began = time.process_time()
        blocks = list(registry.read(path, profile, start, start + 12))
        costs.append(time.process_time() - began)
        assert [block.text for block in blocks] == [f"Page {page}." for page in range(start + 1, start + 13)]
    assert costs[1] < costs[0] + 0.25


_READ_ALL = """
import sys
from pathlib import Path
import psutil
from rag.parser import registry
path = Path(sys.argv[1])
profile = registry.profile(path, path.name)
for start in range(0, profile.units, 1500):
    assert len(list(registry.read(path, profile, start, start + 1500))) == 1500
    print(psutil.Process().memory_info().rss >> 20)
"""


def test_memory_does_not_grow_with_the_pages(tmp_path: Path) -> None:
    """pdfium keeps about 3 KB of each of these pages for as long as their document is open."""
    path = _large(tmp_path / "a.pdf", 6_000)
    done = subprocess.run([sys.executable, "-c", _READ_ALL, str(path)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    first, *later = map(int, done.stdout.split())
    assert len(later) == 3 and max(later) <= first + 8


def test_a_document_that_is_opened_anew_between_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _many_kinds(tmp_path / "a.pdf")
    profile = registry.profile(path, "a.pdf")
    whole = list(registry.read(path, profile, 0, profile.units))
    monkeypatch.setattr(pdf_open, "_PAGES_AT_ONCE", 3)
    pdf_open.release()
    opened = pdf_open.open_file(path, "a.pdf")
    before = opened.document
    assert list(registry.read(path, profile, 0, profile.units)) == whole
    assert opened.document is not before


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_file_that_is_changed_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_replaced: bool
) -> None:
    monkeypatch.setattr(pdf_open, "_PAGES_AT_ONCE", 2)
    path = pdfs.write_pages(tmp_path / "a.pdf", 5)
    opened = pdf_open.open_file(path, "a.pdf")
    before = opened.document
    first = opened.page(0, ocr=False)
    if is_replaced:
        pdfs.write_pages(tmp_path / "b.pdf", 9).replace(path)
    else:
        path.unlink()
    assert len([opened.page(index, ocr=False) for index in range(5)]) == 5
    assert opened.page(0, ocr=False) == first and opened.document is before


def test_a_hundred_thousand_empty_pages(tmp_path: Path) -> None:
    path = pdfs.write_raw(tmp_path / "a.pdf", [b""])
    data = path.read_bytes().replace(
        b"/Kids [100 0 R] /Count 1", b"/Kids [" + b"100 0 R " * 100_000 + b"] /Count 100000"
    )
    path.write_bytes(data)
    profile = registry.profile(path, "a.pdf")
    assert profile.units == 100_000
    assert list(registry.read(path, profile, 99_000, 100_000)) == []


def _cyclic_pages(path: Path) -> Path:
    pdfs.write_raw(path, [b"BT /F1 12 Tf 72 700 Td (Here.) Tj ET"])
    data = path.read_bytes().replace(b"/Kids [100 0 R] /Count 1", b"/Kids [100 0 R 2 0 R] /Count 3")
    path.write_bytes(data)
    return path


def _cyclic_outline(path: Path) -> Path:
    more = b"4 0 obj\n<< /First 5 0 R /Last 6 0 R >>\nendobj\n"
    more += b"5 0 obj\n<< /Title (One) /Next 6 0 R /First 5 0 R /Dest [100 0 R /Fit] >>\nendobj\n"
    more += b"6 0 obj\n<< /Title (Two) /Next 5 0 R /Dest [100 0 R /Fit] >>\nendobj\n"
    content = b"BT /F1 12 Tf 72 700 Td (Here.) Tj ET"
    return pdfs.write_raw(path, [content], catalog=b"/Outlines 4 0 R", more=more)


def _cyclic_forms(path: Path) -> Path:
    form = b"4 0 obj\n<< /Type /XObject /Subtype /Form /BBox [0 0 600 700] /Resources << /XObject << /X1 4 0 R >> >>"
    form += b" /Length 17 >>\nstream\n/X1 Do 0 0 9 9 re\nendstream\nendobj\n"
    content = b"/X1 Do BT /F1 12 Tf 72 700 Td (Here.) Tj ET"
    return pdfs.write_raw(path, [content], resources=b"/XObject << /X1 4 0 R >>", more=form)


def _bomb(path: Path) -> Path:
    squeezed = zlib.compress(b" " * (64 << 20), 9)
    pdfs.write_raw(path, [squeezed])
    path.write_bytes(path.read_bytes().replace(b"<< /Length", b"<< /Filter /FlateDecode /Length"))
    return path


def _absurd_numbers(path: Path) -> Path:
    content = b"BT /F1 1e38 Tf 1e38 0 0 1e38 -1e38 99999999999999999999 Tm (Vast) Tj ET "
    content += b"BT /F1 0.0000001 Tf 0 0 0 0 0 0 Tm (Tiny) Tj ET BT /F1 NaN Tf nan inf Td (None) Tj ET "
    content += b"1e38 -1e38 1e38 1e38 re S 0 0 m NaN 9e99 l S"
    return pdfs.write_raw(path, [content])


def _wrong_xref(path: Path) -> Path:
    data = pdfs.write_pages(path, 3).read_bytes()
    start = data.rindex(b"startxref")
    path.write_bytes(data[:start] + b"startxref\n17\n%%EOF\n")
    return path


@pytest.mark.parametrize("write", [_cyclic_pages, _cyclic_outline, _cyclic_forms, _bomb, _absurd_numbers, _wrong_xref])
def test_files_made_to_do_harm_end_in_blocks_or_a_document_error(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    try:
        blocks = _read(write(tmp_path / "a.pdf"))
    except DocumentError as exc:
        assert exc.public_message
    else:
        for block in blocks:
            assert all(
                0 <= place <= 20_000 for box in block.boxes for place in (box.left, box.right, box.top, box.bottom)
            )


def test_a_page_of_too_many_lines_is_read_up_to_a_limit(tmp_path: Path) -> None:
    content = b"BT /F1 1 Tf 72 700 Td " + b"(x) Tj 0 -3 Td " * (MAX_LINES + 5_000) + b"ET"
    text = " ".join(block.text for block in _read(pdfs.write_raw(tmp_path / "a.pdf", [content])))
    assert 0 < len(text) <= 2 * MAX_LINES


def test_a_page_of_a_million_pieces_of_text_is_refused(tmp_path: Path) -> None:
    content = b"BT /F1 8 Tf 20 780 Td " + b"(x) Tj 1 0 Td " * 1_000_000 + b"ET"
    path = pdfs.write_raw(tmp_path / "a.pdf", [content])
    with pytest.raises(UnreadableFile, match="page 1 has more than 30,000 pieces of text"):
        _read(path)


def test_a_page_of_very_many_rules_and_pictures(tmp_path: Path) -> None:
    content = b"".join(b"%d 10 m %d 700 l S 10 %d m 600 %d l S " % (x, x, x, x) for x in range(2, 600)) * 40
    content += b"BT /F1 12 Tf 72 700 Td (Here.) Tj ET"
    assert [block.text for block in _read(pdfs.write_raw(tmp_path / "a.pdf", [content]))] == ["Here."]
