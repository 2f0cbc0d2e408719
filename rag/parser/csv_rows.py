"""CSV and TSV: the unit is the row, and each row becomes one block of "column: value; column: value" with its
cells as a table.

Rows are streamed. A row may span lines, so a range is reached by reading from the start; the reader is kept,
and ranges that come in a row read the file once."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from common.errors import EmptyFile, UnreadableFile
from rag.parser.blocks import PLAIN, Block, FileKind, Profile, ReadOptions, Unit
from rag.parser.held_rows import HeldRows
from rag.parser.row_blocks import RowBlocks, column_names, is_header
from rag.parser.text import clean, detect_encoding

_MAX_CELL_CHARS = 4 << 20
MAX_ROW_CHARS = 16 << 20
_SNIFF_CHARS = 65_536
_SNIFF_ROWS = 50
_DELIMITERS = ",;\t|"

Cells = list[str]


def profile(path: Path, name: str, options: ReadOptions = PLAIN) -> Profile:
    """Counts the rows below the header. Raises EmptyFile where there is no row, else as `read` does."""
    encoding = detect_encoding(path)
    rows = _rows(path, encoding)
    first = next(rows, None)
    if first is None:
        raise EmptyFile(f"{name} has no rows in it")
    second = next(rows, None)
    others = sum(1 for _ in rows) + (second is not None)
    if second is not None and is_header(first, second):
        columns, units = column_names(first), others
    else:
        columns, units = (), others + 1
    return Profile(kind=FileKind.CSV, unit=Unit.ROW, units=units, encoding=encoding, columns=columns)


def read(path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
    """The rows of the range, first row 0. Raises UnreadableFile where a cell or a row has no end in sight."""
    made = RowBlocks(profile.columns)
    _held.seek(path, profile, from_unit)
    for number in range(from_unit + 1, to_unit + 1):
        cells = _held.take()
        if cells is None:
            return
        yield from made.blocks(cells, number)


def _data_rows(path: Path, profile: Profile) -> Iterator[Cells]:
    rows = _rows(path, profile.encoding)
    if profile.columns:
        next(rows, None)
    return rows


_held = HeldRows(_data_rows)


def _rows(path: Path, encoding: str) -> Iterator[Cells]:
    """Every row that has a cell, in order."""
    csv.field_size_limit(_MAX_CELL_CHARS)
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        delimiter = _delimiter(file.read(_SNIFF_CHARS))
        file.seek(0)
        lines = _Lines(file)
        reader = csv.reader(lines, delimiter=delimiter)
        try:
            for cells in reader:
                lines.row_ends()
                if any(cell.strip() for cell in cells):
                    yield cells
        except csv.Error as exc:
            raise UnreadableFile(
                f"line {reader.line_num} can't be read as CSV ({exc}); is a quotation mark left open?"
            ) from exc


class _Lines:
    """The lines of a file, as long as a row of them stays within MAX_ROW_CHARS."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._line = 0
        self._left = MAX_ROW_CHARS

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        self._line += 1
        line = self._file.readline(self._left + 1)
        if not line:
            raise StopIteration
        self._left -= len(line)
        if self._left < 0:
            raise UnreadableFile(f"line {self._line} makes a row of more than {MAX_ROW_CHARS:,} characters")
        return clean(line)

    def row_ends(self) -> None:
        self._left = MAX_ROW_CHARS


def _delimiter(sample: str) -> str:
    """The one that cuts the first rows into the same number of cells most often; more cells win a tie."""
    lines = sample.splitlines()[:_SNIFF_ROWS]
    if len(lines) > 1 and len(sample) == _SNIFF_CHARS:
        lines.pop()

    def merit(delimiter: str) -> tuple[int, int]:
        widths = [len(cells) for cells in csv.reader(lines, delimiter=delimiter) if cells]
        common = max(set(widths), key=widths.count, default=1)
        return (widths.count(common), common) if common > 1 else (0, 0)

    return max(_DELIMITERS, key=merit)
