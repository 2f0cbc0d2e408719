"""CSV and TSV: the unit is the row, and each row becomes one block of "column: value; column: value" with its
cells as a table.

Rows are streamed. A row may span lines, so a range is reached by reading from the start, or from a row whose start
was noted when the file was read before."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from common.errors import EmptyFile, UnreadableFile
from rag.parser.blocks import PLAIN, Block, FileKind, Profile, ReadOptions, Unit
from rag.parser.held_rows import HeldRows, Start, place_in
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
    rows = _held.rows(path, encoding, 0)
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
    rows = _held.rows(path, profile.encoding, from_unit + bool(profile.columns))
    for number, cells in enumerate(islice(rows, to_unit - from_unit), from_unit + 1):
        yield from made.blocks(cells, number)


class _Source:
    """The rows of a file that have a cell, the header among them."""

    def __init__(self, path: Path, encoding: str, start: Start) -> None:
        self._file = path.open(encoding=encoding, errors="replace", newline="")
        self._delimiter = _delimiter(self._file.read(_SNIFF_CHARS))
        self._file.seek(start.place)
        self._line = start.line
        self._left = MAX_ROW_CHARS

    def __iter__(self) -> Iterator[Cells]:
        csv.field_size_limit(_MAX_CELL_CHARS)
        try:
            for cells in csv.reader(self._lines(), delimiter=self._delimiter):
                self._left = MAX_ROW_CHARS
                if any(map(str.strip, cells)):
                    yield cells
        except csv.Error as exc:
            raise UnreadableFile(
                f"line {self._line} can't be read as CSV ({exc}); is a quotation mark left open?"
            ) from exc

    def here(self) -> Start | None:
        place = place_in(self._file)
        return None if place is None else Start(place, self._line)

    def close(self) -> None:
        self._file.close()

    def _lines(self) -> Iterator[str]:
        """The lines of the file, as long as a row of them stays within MAX_ROW_CHARS."""
        readline = self._file.readline
        while line := readline(self._left + 1):
            self._line += 1
            self._left -= len(line)
            if self._left < 0:
                raise UnreadableFile(f"line {self._line} makes a row of more than {MAX_ROW_CHARS:,} characters")
            yield clean(line)


_held = HeldRows(_Source)


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
