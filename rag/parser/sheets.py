"""Workbooks (.xlsx, .xlsm, .xlsb, .xls, .ods): the unit is the row, counted over all sheets one after the other.

Values are read, never formulas run. A row becomes a table block; the name of its sheet stands as a heading before the
first row of each sheet and of each group of rows, so that a row's blocks are the same in whatever range it is read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook, PasswordError, SheetTypeEnum
from python_calamine import SheetVisibleEnum as Visible

from common.errors import EmptyFile, EncryptedFile, UnreadableFile
from rag.flow.split import ROW_GROUP
from rag.parser import sheet_guard
from rag.parser.blocks import PLAIN, Block, BlockKind, FileKind, Profile, ReadOptions, Sheet, Unit
from rag.parser.file_key import FileKey, file_key
from rag.parser.row_blocks import RowBlocks
from rag.parser.sheet_properties import properties
from rag.parser.sheet_rows import Layout, filled_rows, find_layout, texts
from rag.parser.text import clean

_MAX_SHEETS = 2000
_LAYOUT_ROWS = 8
# Sheets stay open for their next range, together up to so many cells.
_MAX_HELD_CELLS = 8 << 20


def profile(path: Path, name: str, options: ReadOptions = PLAIN) -> Profile:
    """Counts the rows of every sheet. Raises EmptyFile, EncryptedFile, or UnreadableFile."""
    book = _held.get(path, name)
    sheets = []
    for sheet_name in book.names:
        opened = book.sheet(sheet_name)
        if rows := opened.count():
            sheets.append(Sheet(name=sheet_name, rows=rows, columns=opened.layout.columns))
    if not sheets:
        raise EmptyFile(f"{name} has no rows in it")
    known = properties(path, name)
    return Profile(
        kind=FileKind.SHEETS,
        unit=Unit.ROW,
        units=sum(sheet.rows for sheet in sheets),
        title=known.get("title", ""),
        author=known.get("author", ""),
        created=known.get("created", ""),
        modified=known.get("modified", ""),
        sheets=tuple(sheets),
    )


def read(path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
    """The rows of the range, first row 0. Raises UnreadableFile for a sheet that can't be read."""
    book = _held.get(path, path.name)
    start = 0
    for sheet in profile.sheets:
        end = start + sheet.rows
        if start < to_unit and from_unit < end:
            yield from _read_sheet(book.sheet(sheet.name), sheet, start, max(start, from_unit), min(end, to_unit))
        start = end


def _read_sheet(opened: _OpenSheet, sheet: Sheet, start: int, first: int, end: int) -> Iterator[Block]:
    made = RowBlocks(sheet.columns)
    title = " ".join(clean(sheet.name).split())
    for unit, row in zip(range(first, end), opened.rows(first - start), strict=False):
        number = unit + 1
        if title and (unit == start or unit % ROW_GROUP == 0):
            yield Block(kind=BlockKind.HEADING, text=title, page=number, level=1)
        cells = texts(row)
        if unit - start < opened.layout.titles:
            yield Block(kind=BlockKind.PARAGRAPH, text=" ".join(" ".join(cells).split()), page=number)
        else:
            yield from made.blocks(cells, number)


class _OpenSheet:
    """The grid of a sheet, and the rows of it from where the last range ended."""

    def __init__(self, grid: CalamineSheet) -> None:
        self._grid = grid
        self.cells = grid.height * grid.width
        self.layout: Layout = find_layout(list(islice(filled_rows(grid), _LAYOUT_ROWS)))
        self._start_over()

    def count(self) -> int:
        return sum(1 for _ in filled_rows(self._grid)) - self.layout.has_header

    def rows(self, first: int) -> Iterator[list[object]]:
        if first < self._position:
            self._start_over()
        while self._position < first and self._next() is not None:
            pass
        while (row := self._next()) is not None:
            yield row

    def _next(self) -> list[object] | None:
        row = next(self._rows, None)
        self._position += 1
        return row

    def _start_over(self) -> None:
        self._rows = self._data_rows()
        self._position = 0

    def _data_rows(self) -> Iterator[list[object]]:
        for index, row in enumerate(filled_rows(self._grid)):
            if index != self.layout.titles or not self.layout.has_header:
                yield row


class _Book:
    """An open workbook, and the sheets of it that were read last."""

    def __init__(self, path: Path, name: str) -> None:
        sheet_guard.check(path, name)
        self._name = name
        try:
            # By its content: a name may promise another format.
            with path.open("rb") as file:
                self._book = CalamineWorkbook.from_filelike(file)
        except PasswordError as exc:
            raise EncryptedFile(f"{name} is protected by a password; save it without one") from exc
        except CalamineError as exc:
            raise UnreadableFile(f"{name} can't be opened as a workbook; it may be damaged") from exc
        self._sheets: OrderedDict[str, _OpenSheet] = OrderedDict()

    @property
    def names(self) -> list[str]:
        """The sheets a reader can get to see; charts and what programs hide for good are none."""
        found = [
            sheet.name
            for sheet in self._book.sheets_metadata
            if sheet.typ == SheetTypeEnum.WorkSheet and sheet.visible != Visible.VeryHidden
        ]
        if len(found) > _MAX_SHEETS:
            raise UnreadableFile(f"{self._name} has {len(found):,} sheets, and {_MAX_SHEETS:,} are allowed")
        return list(dict.fromkeys(found))

    def sheet(self, name: str) -> _OpenSheet:
        if name in self._sheets:
            self._sheets.move_to_end(name)
            return self._sheets[name]
        held = sum(sheet.cells for sheet in self._sheets.values())
        while held > _MAX_HELD_CELLS:
            held -= self._sheets.popitem(last=False)[1].cells
        try:
            opened = _OpenSheet(self._book.get_sheet_by_name(name))
        except CalamineError as exc:
            raise UnreadableFile(f"the sheet {name} of {self._name} can't be read; it may be damaged") from exc
        self._sheets[name] = opened
        return opened

    def close(self) -> None:
        self._sheets.clear()
        self._book.close()


class _Held:
    """The workbook that was read last."""

    def __init__(self) -> None:
        self._key: FileKey | None = None
        self._book: _Book | None = None

    def get(self, path: Path, name: str) -> _Book:
        key = file_key(path)
        if self._book is not None and self._key == key:
            return self._book
        if self._book is not None:
            self._book.close()
            self._book = None
        self._book, self._key = _Book(path, name), key
        return self._book


_held = _Held()
