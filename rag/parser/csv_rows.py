"""CSV and TSV: the unit is the row, and each row becomes one block of "column: value; column: value".

Rows are streamed. A row may span lines, so a range is reached by reading from the start; the reader is kept,
and ranges that come in a row read the file once."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from common.errors import EmptyFile, UnreadableFile
from rag.parser.blocks import PLAIN, Block, BlockKind, FileKind, Profile, ReadOptions, Unit
from rag.parser.text import clean, detect_encoding

_MAX_CELL_CHARS = 4 << 20
_SNIFF_CHARS = 65_536
_SNIFF_ROWS = 50
_DELIMITERS = ",;\t|"
_MAX_COLUMNS = 1000
_MAX_NAME = 100

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
    if second is not None and _is_header(first, second):
        columns, units = tuple(cell.strip()[:_MAX_NAME] for cell in first[:_MAX_COLUMNS]), others
    else:
        columns, units = (), others + 1
    return Profile(kind=FileKind.CSV, unit=Unit.ROW, units=units, encoding=encoding, columns=columns)


def read(path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
    """The rows of the range, first row 0. Raises UnreadableFile where a cell has no end in sight."""
    _held.seek(path, profile, from_unit)
    for number in range(from_unit + 1, to_unit + 1):
        cells = _held.take()
        if cells is None:
            return
        if line := _as_text(cells, profile.columns):
            yield Block(kind=BlockKind.TABLE, text=line, page=number)


class _Held:
    """The reader of the last file, where the last range ended."""

    def __init__(self) -> None:
        self._key: tuple[Path, int, int] | None = None
        self._rows: Iterator[Cells] = iter(())
        self._position = 0

    def seek(self, path: Path, profile: Profile, row: int) -> None:
        stat = path.stat()
        key = (path, stat.st_mtime_ns, stat.st_size)
        if key != self._key or row < self._position:
            self._key, self._rows, self._position = key, _rows(path, profile.encoding), 0
            if profile.columns:
                next(self._rows, None)
        while self._position < row and self.take() is not None:
            pass

    def take(self) -> Cells | None:
        try:
            cells = next(self._rows, None)
        except UnreadableFile:
            self._key = None
            raise
        self._position += 1
        return cells


_held = _Held()


def _rows(path: Path, encoding: str) -> Iterator[Cells]:
    """Every row that has a cell, in order."""
    csv.field_size_limit(_MAX_CELL_CHARS)
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        delimiter = _delimiter(file.read(_SNIFF_CHARS))
        file.seek(0)
        reader = csv.reader((clean(line) for line in file), delimiter=delimiter)
        try:
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    yield cells
        except csv.Error as exc:
            raise UnreadableFile(
                f"line {reader.line_num} can't be read as CSV ({exc}); is a quotation mark left open?"
            ) from exc


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


def _is_header(first: Cells, second: Cells) -> bool:
    """Names are words, each once; a first row with a number among its cells is data."""
    names = [cell.strip() for cell in first if cell.strip()]
    return (
        bool(names)
        and len(set(names)) == len(names)
        and not any(_is_number(name) for name in names)
        and len(first) <= max(len(second), 1) + 1
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", ".").rstrip("%"))
    except ValueError:
        return False
    return True


def _as_text(cells: Cells, columns: tuple[str, ...]) -> str:
    pairs = []
    for position, cell in enumerate(cells):
        value = " ".join(cell.split())
        if value:
            named = position < len(columns) and columns[position]
            pairs.append(f"{columns[position] if named else f'column {position + 1}'}: {value}")
    return "; ".join(pairs)
