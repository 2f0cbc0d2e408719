"""How far apart the cells of a sheet stand, told from the bytes of its part while they go by, before the sheet is laid
out as a grid. What is allowed is a matter of memory: MAX_CELLS of a grid take about 2 GB."""

from __future__ import annotations

import re
from typing import Protocol
from xml.parsers import expat

from common.errors import UnreadableFile

MAX_CELLS = 20 << 20
_MAX_TAG_BYTES = 1 << 20

# A cell with something in it: a closed tag is only a format.
_XLSX_CELL = re.compile(rb"""\sr=["']([A-Za-z]{1,3})([0-9]{1,7})["'][^<>/]*>""")
_ODS_TAG = re.compile(rb"<(/?)table:(table|table-row|table-cell|covered-table-cell)(?=[\s/>])([^>]*)>")
_ODS_REPEATED = re.compile(rb"""number-(?:rows|columns)-repeated=["']([0-9]{1,9})""")


def watch_of(part: str, name: str) -> Watch:
    """What looks at the part called `part`, in small letters, of the workbook `name`."""
    if part == "content.xml":
        return _OdsArea(name)
    if "sheet" not in part:
        return NoWatch()
    return _XlsxArea(name) if part.endswith(".xml") else _XlsbArea(name)


class Watch(Protocol):
    """Sees the bytes of a part go by, and raises where they are too much."""

    def feed(self, data: bytes) -> None: ...

    def end(self) -> None: ...


class NoWatch:
    def feed(self, data: bytes) -> None:
        pass

    def end(self) -> None:
        pass


class _Area:
    """The rectangle that the cells of a sheet stand in."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._top = self._left = 1 << 30
        self._bottom = self._right = -1

    def add(self, top: int, left: int, bottom: int, right: int) -> None:
        self._top, self._left = min(self._top, top), min(self._left, left)
        self._bottom, self._right = max(self._bottom, bottom), max(self._right, right)
        rows, columns = self._bottom - self._top + 1, self._right - self._left + 1
        if rows * columns > MAX_CELLS:
            raise UnreadableFile(
                f"{self._name} has a sheet whose cells spread over {rows:,} rows and {columns:,} columns, "
                f"and {MAX_CELLS:,} cells are allowed; is there a stray cell far from the others?"
            )


class _XlsxArea(NoWatch):
    def __init__(self, name: str) -> None:
        self._area = _Area(name)
        self._tags = _Tags(name)

    def feed(self, data: bytes) -> None:
        found = _XLSX_CELL.findall(self._tags.whole(data))
        if found:
            columns = [_column(letters) for letters in {letters for letters, _ in found}]
            rows = [int(digits) for digits in {digits for _, digits in found}]
            self._area.add(min(rows), min(columns), max(rows), max(columns))


class _OdsArea:
    """Rows and cells are not numbered here, but may be repeated."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tags = _Tags(name)
        self._form = expat.ParserCreate()
        self._start()

    def _start(self) -> None:
        self._area = _Area(self._name)
        self._row = self._column = 0
        self._repeat_row = 1
        self._span: tuple[int, int] | None = None

    def feed(self, data: bytes) -> None:
        # What is not well-formed can send the library around in circles.
        self._form.Parse(data, False)
        for closing, tag, rest in _ODS_TAG.findall(self._tags.whole(data)):
            if tag == b"table":
                self._start()
            elif tag == b"table-row":
                self._end_row() if closing else self._start_row(rest)
            elif not closing:
                self._cell(rest)

    def end(self) -> None:
        self._form.Parse(b"", True)

    def _start_row(self, rest: bytes) -> None:
        self._repeat_row, self._column, self._span = _repeated(rest), 0, None
        if rest.endswith(b"/"):
            self._end_row()

    def _cell(self, rest: bytes) -> None:
        first, self._column = self._column, self._column + _repeated(rest)
        if b"value-type=" in rest or not rest.endswith(b"/"):
            self._span = (self._span[0] if self._span else first, self._column - 1)

    def _end_row(self) -> None:
        first, self._row = self._row, self._row + self._repeat_row
        if self._span:
            self._area.add(first, self._span[0], self._row - 1, self._span[1])


class _XlsbArea(NoWatch):
    """Binary records: a kind and a length of seven bits a byte, then a row's number or a cell's column."""

    _ROW = 0
    _BLANK = 1
    _LAST_CELL = 11

    def __init__(self, name: str) -> None:
        self._area = _Area(name)
        self._rest = b""
        self._skip = 0
        self._row = 0

    def feed(self, data: bytes) -> None:
        if self._skip >= len(data):
            self._skip -= len(data)
            return
        data = self._rest + data[self._skip :]
        self._skip = at = 0
        # Enough for the head of a record and the number in it; the end of the part has no cells.
        while at + 16 <= len(data):
            kind, at = _number(data, at)
            length, at = _number(data, at)
            if kind == self._ROW:
                self._row = int.from_bytes(data[at : at + 4], "little")
            elif self._BLANK < kind <= self._LAST_CELL:
                column = int.from_bytes(data[at : at + 4], "little")
                self._area.add(self._row, column, self._row, column)
            at += length
        self._rest, self._skip = data[at:], max(0, at - len(data))


class _Tags:
    """Puts tags together again that the end of a piece cut in two."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._rest = b""

    def whole(self, data: bytes) -> bytes:
        data = self._rest + data
        cut = data.rfind(b"<")
        if cut < 0 or data.find(b">", cut) >= 0:
            self._rest = b""
            return data
        self._rest = data[cut:]
        if len(self._rest) > _MAX_TAG_BYTES:
            raise UnreadableFile(f"{self._name} is damaged: it has a tag without an end")
        return data[:cut]


def _repeated(rest: bytes) -> int:
    found = _ODS_REPEATED.search(rest)
    return int(found[1]) if found else 1


def _column(letters: bytes) -> int:
    column = 0
    for code in letters.upper():
        column = column * 26 + code - 64
    return column


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 28, 7):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            break
    return value, at
