"""Workbooks: values and headers, rows counted over sheets, ranges, and files made to do harm."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from common.errors import EmptyFile, EncryptedFile, UnreadableFile
from rag.flow.split import ROW_GROUP
from rag.parser import registry, sheet_guard, sheets
from rag.parser.blocks import Block, BlockKind, Cell, FileKind, Profile, Sheet, Table, Unit
from rag.parser.sheet_rows import value_text
from tests.zips import write_zip

_ODS_NAMES = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{prefix}:1.0"' for prefix in ("office", "table", "text")
)


def _workbook(path: Path, fill: Callable[[Any], None]) -> Path:
    book = xlsxwriter.Workbook(str(path))
    fill(book)
    book.close()
    return path


def _xlsx(tmp_path: Path, **rows_of: list[list[object]]) -> Path:
    def fill(book: Any) -> None:
        for name, rows in rows_of.items():
            sheet = book.add_worksheet(name)
            for number, row in enumerate(rows):
                sheet.write_row(number, 0, row)

    return _workbook(tmp_path / "blob", fill)


def _ods(tmp_path: Path, rows: str, name: str = "Tabelle", manifest: str = "<manifest/>") -> Path:
    content = (
        f'<?xml version="1.0"?><office:document-content {_ODS_NAMES}><office:body><office:spreadsheet>'
        f'<table:table table:name="{name}">{rows}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    mimetype = "application/vnd.oasis.opendocument.spreadsheet"
    parts = {"mimetype": mimetype, "META-INF/manifest.xml": manifest, "content.xml": content}
    return write_zip(tmp_path / "blob", parts)


def _ods_row(*texts: str, repeated: int = 1, each: int = 1) -> str:
    cells = "".join(
        f'<table:table-cell office:value-type="string" table:number-columns-repeated="{each}">'
        f"<text:p>{text}</text:p></table:table-cell>"
        for text in texts
    )
    return f'<table:table-row table:number-rows-repeated="{repeated}">{cells}</table:table-row>'


def _ole(path: Path, stream: str, content: bytes) -> Path:
    """The smallest container with one stream."""
    content = content.ljust(4096, b"\0")
    sectors = len(content) // 512
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".ljust(24, b"\0") + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6)
    head = head.ljust(44, b"\0") + struct.pack("<IIIIIIIII", 1, 1, 0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0, 0)
    table = [0xFFFFFFFD, 0xFFFFFFFE, *range(3, 2 + sectors), 0xFFFFFFFE]
    directory = _ole_entry("Root Entry", 5, 1, 0xFFFFFFFE, 0) + _ole_entry(stream, 2, 0xFFFFFFFF, 2, len(content))
    path.write_bytes(
        head.ljust(512, b"\xff") + struct.pack(f"<{len(table)}I", *table).ljust(512, b"\xff")
        + directory.ljust(512, b"\0") + content
    )  # fmt: skip
    return path


def _ole_entry(name: str, kind: int, child: int, start: int, size: int) -> bytes:
    encoded = name.encode("utf-16-le")
    head = encoded.ljust(64, b"\0") + struct.pack("<HBBIII", len(encoded) + 2, kind, 1, 2**32 - 1, 2**32 - 1, child)
    return head.ljust(116, b"\0") + struct.pack("<IQ", start, size)


def _records(*records: tuple[int, bytes]) -> bytes:
    return b"".join(struct.pack("<HH", kind, len(data)) + data for kind, data in records)


def _old_cell(row: int, column: int, text: str) -> tuple[int, bytes]:
    return 0x0204, struct.pack("<HHHHB", row, column, 0, len(text), 0) + text.encode("latin-1")


def _xls(path: Path, *cells: tuple[int, bytes]) -> Path:
    start = struct.pack("<HHHHII", 0x0600, 5, 0, 0, 0, 0)
    name = b"Old"

    def globals_with(offset: int) -> bytes:
        sheet = struct.pack("<IBBBB", offset, 0, 0, len(name), 0) + name
        return _records((0x0809, start), (0x0042, struct.pack("<H", 1200)), (0x0085, sheet), (0x000A, b""))

    front = globals_with(len(globals_with(0)))
    body = _records((0x0809, struct.pack("<HHHHII", 0x0600, 0x10, 0, 0, 0, 0)), *cells, (0x000A, b""))
    return _ole(path, "Workbook", front + body)


def _binary(kind: int, data: bytes = b"") -> bytes:
    return b"".join(_seven_bits(number) for number in (kind, len(data))) + data


def _seven_bits(number: int) -> bytes:
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + _seven_bits(number >> 7)


def _wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def _binary_row(number: int, values: list[str | float | None]) -> bytes:
    cells = _binary(0, struct.pack("<I", number) + bytes(13))
    for column, value in enumerate(values):
        match value:
            case str():
                cells += _binary(6, struct.pack("<II", column, 0) + _wide(value))
            case float():
                cells += _binary(5, struct.pack("<IId", column, 0, value))
    return cells


def _xlsb(tmp_path: Path, cells: bytes) -> Path:
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"
    relations = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        f'<Relationship Id="rId1" Type="{kind}" Target="worksheets/sheet1.bin"/></Relationships>'
    )
    sheet = _binary(0x9C, struct.pack("<II", 0, 1) + _wide("rId1") + _wide("Binary"))
    size = _binary(0x94, struct.pack("<IIII", 0, 9, 0, 9))
    parts = {
        "xl/_rels/workbook.bin.rels": relations.encode(),
        "xl/workbook.bin": _binary(0x8F) + sheet + _binary(0x90) + _binary(0x84),
        "xl/worksheets/sheet1.bin": size + _binary(0x91) + cells + _binary(0x92) + bytes(32),
    }
    return write_zip(tmp_path / "blob", parts)


def _profile(path: Path) -> Profile:
    return sheets.profile(path, "a.xlsx")


def _read(path: Path, first: int = 0, end: int | None = None) -> list[Block]:
    profile = _profile(path)
    return list(sheets.read(path, profile, first, profile.units if end is None else end))


def _texts(path: Path) -> list[str]:
    return [block.text for block in _read(path)]


def test_rows_of_a_sheet(tmp_path: Path) -> None:
    path = _xlsx(tmp_path, People=[["name", "age"], ["Ada", 36], [], ["Grace", None, "navy"]])
    profile = _profile(path)
    assert (profile.unit, profile.units) == (Unit.ROW, 2)
    assert profile.sheets == (Sheet("People", 2, ("name", "age")),)
    assert _read(path) == [
        Block(BlockKind.HEADING, "People", 1, level=1),
        Block(
            BlockKind.TABLE,
            "name: Ada; age: 36",
            1,
            table=Table(((Cell("name"), Cell("age")), (Cell("Ada"), Cell("36"))), header_rows=1),
        ),
        Block(
            BlockKind.TABLE,
            "name: Grace; column 3: navy",
            2,
            table=Table(
                ((Cell("name"), Cell("age"), Cell("")), (Cell("Grace"), Cell(""), Cell("navy"))), header_rows=1
            ),
        ),
    ]


def test_sheets_are_counted_on_and_empty_ones_left_out(tmp_path: Path) -> None:
    path = _xlsx(tmp_path, One=[["a", "b"], [1, 2]], Nothing=[], Two=[["c", "d"], ["x", "y"], ["z", "z"]])
    assert _profile(path).sheets == (Sheet("One", 1, ("a", "b")), Sheet("Two", 2, ("c", "d")))
    assert [(block.kind, block.page, block.text) for block in _read(path)] == [
        (BlockKind.HEADING, 1, "One"),
        (BlockKind.TABLE, 1, "a: 1; b: 2"),
        (BlockKind.HEADING, 2, "Two"),
        (BlockKind.TABLE, 2, "c: x; d: y"),
        (BlockKind.TABLE, 3, "c: z; d: z"),
    ]


def test_blocks_do_not_depend_on_the_range(tmp_path: Path) -> None:
    path = _xlsx(
        tmp_path,
        First=[["n", "word"], *([number, f"row {number}"] for number in range(150))],
        Second=[["m", "other"], *([number, f"line {number}"] for number in range(260))],
    )
    whole = _read(path)
    headings = [(block.page, block.text) for block in whole if block.kind is BlockKind.HEADING]
    assert headings == [
        (1, "First"),
        (101, "First"),
        (151, "Second"),
        (201, "Second"),
        (301, "Second"),
        (401, "Second"),
    ]
    assert [block.page for block in whole if block.kind is BlockKind.TABLE] == list(range(1, 411))
    for first, end in ((0, 100), (300, 410), (100, 300), (0, 410), (200, 300)):
        assert _read(path, first, end) == [block for block in whole if first < block.page <= end]
    parts = [_read(path, first, first + ROW_GROUP) for first in range(0, 410, ROW_GROUP)]
    assert [block for part in parts for block in part] == whole


def test_values(tmp_path: Path) -> None:
    def fill(book: Any) -> None:
        sheet = book.add_worksheet("Values")
        formats = {name: book.add_format({"num_format": code}) for name, code in _FORMATS.items()}
        sheet.write_row(0, 0, [1, 0.1 + 0.2, True, "two\nlines", -1e-7])
        sheet.write_datetime(1, 0, datetime(2024, 3, 1), formats["date"])
        sheet.write_datetime(1, 1, datetime(2024, 3, 1, 14, 30, 5), formats["moment"])
        sheet.write_datetime(1, 2, time(7, 8, 9), formats["time"])
        sheet.write_datetime(1, 3, timedelta(hours=36), formats["duration"])
        sheet.write_number(1, 4, 0.125, formats["percent"])
        sheet.write_formula(2, 0, "=1/0", None, "#DIV/0!")
        sheet.write_formula(2, 1, "=A1+1", None, 2)
        sheet.write_url(2, 2, "https://example.org/x", string="a link")
        sheet.merge_range(3, 1, 3, 3, "merged")
        sheet.write_blank(50, 50, None, formats["date"])

    assert _texts(_workbook(tmp_path / "blob", fill)) == [
        "Values",
        "column 1: 1; column 2: 0.3; column 3: TRUE; column 4: two lines; column 5: -1e-07",
        "column 1: 2024-03-01; column 2: 2024-03-01 14:30:05; column 3: 07:08:09; column 4: 36:00:00; column 5: 0.125",
        "column 2: 2; column 3: a link",
        "column 2: merged",
    ]


_FORMATS = {
    "date": "yyyy-mm-dd",
    "moment": "yyyy-mm-dd hh:mm",
    "time": "hh:mm:ss",
    "duration": "[h]:mm:ss",
    "percent": "0.0%",
}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567.0, "1234567"),
        (1e20, "1e+20"),
        (False, "FALSE"),
        (date(1999, 12, 31), "1999-12-31"),
        (timedelta(minutes=-90), "-1:30:00"),
        ("bell\x07 and \x00nul", "bell and nul"),
    ],
)
def test_values_as_text(value: object, text: str) -> None:
    assert value_text(value) == text


def test_titles_above_a_table(tmp_path: Path) -> None:
    path = _xlsx(tmp_path, Report=[["Sales of 2024"], [], ["in thousands"], ["town", "sum"], ["Oslo", 5]])
    assert _profile(path).sheets == (Sheet("Report", 3, ("town", "sum")),)
    assert [(block.kind, block.text) for block in _read(path)] == [
        (BlockKind.HEADING, "Report"),
        (BlockKind.PARAGRAPH, "Sales of 2024"),
        (BlockKind.PARAGRAPH, "in thousands"),
        (BlockKind.TABLE, "town: Oslo; sum: 5"),
    ]


@pytest.mark.parametrize(
    ("rows", "texts"),
    [
        ([["name"], ["Ada"], ["Grace"]], ["name: Ada", "name: Grace"]),
        ([["only", "row"]], ["column 1: only; column 2: row"]),
        ([["a", "a"], ["b", "c"]], ["column 1: a; column 2: a", "column 1: b; column 2: c"]),
        ([["town", 2024], ["Oslo", 5]], ["column 1: town; column 2: 2024", "column 1: Oslo; column 2: 5"]),
        ([["town", "2024"], ["Oslo", 5]], ["column 1: town; column 2: 2024", "column 1: Oslo; column 2: 5"]),
        ([["town", None, "sum"], ["Oslo", "x", 5]], ["town: Oslo; column 2: x; sum: 5"]),
    ],
)
def test_headers(tmp_path: Path, rows: list[list[object]], texts: list[str]) -> None:
    assert _texts(_xlsx(tmp_path, S=rows)) == ["S", *texts]


def test_hidden_sheets(tmp_path: Path) -> None:
    def fill(book: Any) -> None:
        for name in ("seen", "hidden", "machine"):
            book.add_worksheet(name).write(0, 0, f"words {name}")
        book.get_worksheet_by_name("hidden").hide()
        book.get_worksheet_by_name("machine").very_hidden()

    path = _workbook(tmp_path / "blob", fill)
    assert _texts(path) == ["seen", "column 1: words seen", "hidden", "column 1: words hidden"]


def test_a_workbook_without_rows(tmp_path: Path) -> None:
    with pytest.raises(EmptyFile, match=r"a\.xlsx has no rows in it"):
        _profile(_xlsx(tmp_path, S=[["  ", "\t"]]))


def test_another_file_at_the_same_path(tmp_path: Path) -> None:
    assert _texts(_xlsx(tmp_path, S=[["one"]])) == ["S", "column 1: one"]
    assert _texts(_xlsx(tmp_path, S=[["another thing"]])) == ["S", "column 1: another thing"]


def test_very_wide_rows_come_in_parts(tmp_path: Path) -> None:
    blocks = _read(_xlsx(tmp_path, S=[[float(number) for number in range(2500)]]))
    assert [len(block.table.rows[0]) for block in blocks if block.table] == [1000, 1000, 500]
    assert blocks[3].text.startswith("column 2001: 2000; column 2002: 2001; ")


def test_opendocument(tmp_path: Path) -> None:
    nothing = '<table:table-row table:number-rows-repeated="1048570"><table:table-cell/></table:table-row>'
    typed = (
        '<table:table-row><table:table-cell office:value-type="date" office:date-value="2024-03-01"/>'
        '<table:table-cell office:value-type="percentage" office:value="0.5"/></table:table-row>'
    )
    path = _ods(tmp_path, _ods_row("day", "share") + typed + _ods_row("x", repeated=2) + nothing, "Blatt &amp; 1")
    assert _texts(path) == ["Blatt & 1", "day: 2024-03-01; share: 0.5", "day: x", "day: x"]


def test_old_workbooks(tmp_path: Path) -> None:
    number = (0x0203, struct.pack("<HHHd", 1, 1, 0, 36.0))
    path = _xls(
        tmp_path / "blob", _old_cell(0, 0, "name"), _old_cell(0, 1, "age"), _old_cell(1, 0, "J\xfcrgen"), number
    )
    assert _texts(path) == ["Old", "name: Jürgen; age: 36"]


def test_passwords(tmp_path: Path) -> None:
    locked = _ole(tmp_path / "new", "EncryptedPackage", b"x" * 4096)
    begin = struct.pack("<HHHHII", 0x0600, 5, 0, 0, 0, 0)
    old = _ole(tmp_path / "old", "Workbook", _records((0x0809, begin), (0x002F, bytes(54)), (0x000A, b"")))
    open_document = _ods(tmp_path, "", manifest="<manifest><encryption-data/></manifest>")
    for path in (locked, old, open_document):
        with pytest.raises(EncryptedFile, match=r"a\.xlsx is protected by a password"):
            _profile(path)


@pytest.mark.parametrize("keep", [0, 10, 3000, 5000])
def test_damaged_files(tmp_path: Path, keep: int) -> None:
    path = _xlsx(tmp_path, S=[["a", "b"], [1, 2]])
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(UnreadableFile, match=r"a\.xlsx is damaged"):
        _profile(path)


def test_an_archive_that_is_no_workbook(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "blob", {"xl/notes.txt": "no workbook"})
    with pytest.raises(UnreadableFile, match="can't be opened as a workbook"):
        _profile(path)


@pytest.mark.parametrize(("stream", "content"), [("Notes", b""), ("Workbook", b"\x09\x08\xff\xffcut")])
def test_a_container_that_is_no_workbook(tmp_path: Path, stream: str, content: bytes) -> None:
    with pytest.raises(UnreadableFile, match="can't be opened as a workbook"):
        _profile(_ole(tmp_path / "blob", stream, content))


def test_a_stray_cell_far_away(tmp_path: Path) -> None:
    def fill(book: Any) -> None:
        sheet = book.add_worksheet("S")
        sheet.write(0, 0, "here")
        sheet.write(1_048_575, 16_383, "there")

    path = _workbook(tmp_path / "blob", fill)
    tracemalloc.start()
    with pytest.raises(UnreadableFile, match="over 1,048,576 rows and 16,384 columns"):
        _profile(path)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def test_formats_far_away_are_no_cells(tmp_path: Path) -> None:
    def fill(book: Any) -> None:
        sheet = book.add_worksheet("S")
        sheet.write(0, 0, "here")
        sheet.write_blank(1_048_575, 16_383, None, book.add_format({"bold": True}))

    assert _texts(_workbook(tmp_path / "blob", fill)) == ["S", "column 1: here"]


def test_opendocument_that_is_not_well_formed(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"a\.xlsx is damaged"):
        _profile(_ods(tmp_path, _ods_row("a", "b") + "<table:table-row>"))


def test_a_container_that_claims_too_many_sectors(tmp_path: Path) -> None:
    path = _xls(tmp_path / "blob", _old_cell(0, 0, "name"))
    data = bytearray(path.read_bytes())
    data[44:48] = b"\xff\xff\xff\x7f"
    path.write_bytes(data)
    with pytest.raises(UnreadableFile, match=r"a\.xlsx is damaged"):
        _profile(path)


def test_repeated_cells_of_opendocument(tmp_path: Path) -> None:
    path = _ods(tmp_path, _ods_row("x", repeated=1_048_576, each=16_384))
    with pytest.raises(UnreadableFile, match="over 1,048,576 rows and 16,384 columns"):
        _profile(path)


def test_bombs(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "blob", {"xl/worksheets/sheet1.xml": b" " * (32 << 20)})
    with pytest.raises(UnreadableFile, match="too large once unpacked"):
        _profile(path)


def test_bombs_that_lie_about_their_size(tmp_path: Path) -> None:
    size = 32 << 20
    path = write_zip(tmp_path / "blob", {"xl/worksheets/sheet1.xml": b" " * size})
    path.write_bytes(path.read_bytes().replace(struct.pack("<I", size), struct.pack("<I", 10)))
    with pytest.raises(UnreadableFile, match="too large once unpacked"):
        _profile(path)


def test_binary_workbooks(tmp_path: Path) -> None:
    cells = _binary_row(0, ["name", "age"]) + _binary_row(1, ["Ada", 36.0])
    path = _xlsb(tmp_path, cells)
    assert _texts(path) == ["Binary", "name: Ada; age: 36"]


def test_far_cells_in_binary_sheets(tmp_path: Path) -> None:
    # A long record, so that pieces end within it.
    far = _binary(0x93, bytes(3 << 20)) + _binary_row(1_048_575, [*[None] * 30, 1.0])
    with pytest.raises(UnreadableFile, match="over 1,048,576 rows and 31 columns"):
        _profile(_xlsb(tmp_path, _binary_row(0, ["near"]) + far))


def test_what_a_workbook_says_of_itself(tmp_path: Path) -> None:
    def fill(book: Any) -> None:
        book.set_properties({"title": "Budget", "author": "Ada", "created": datetime(2024, 3, 1, 9, 30)})
        book.add_worksheet("S").write(0, 0, "words")

    path = _workbook(tmp_path / "blob", fill)
    profile = registry.profile(path, "a.xlsx")
    assert (profile.kind, profile.title, profile.author) == (FileKind.SHEETS, "Budget", "Ada")
    assert profile.created == profile.modified == "2024-03-01T09:30:00Z"
    assert [block.text for block in registry.read(path, profile, 0, 1)] == ["S", "column 1: words"]


def test_many_rows_are_read_once_for_all_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _xlsx(tmp_path, S=[["n", "word"], *([number, "word"] for number in range(2000))])
    profile = _profile(path)
    monkeypatch.setattr(sheet_guard, "check", lambda *_: pytest.fail("opened again"))
    pages = [b.page for first in range(0, 2000, 500) for b in sheets.read(path, profile, first, first + 500) if b.table]
    assert pages == list(range(1, 2001))
