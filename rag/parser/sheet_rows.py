"""The rows of one sheet: which have something in them, which of the first are titles and the header, and how
values read as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

from python_calamine import CalamineSheet

from rag.parser.row_blocks import column_names, is_header
from rag.parser.text import clean

_MAX_TITLES = 5
# Whole numbers up to here are exact in the files, which keep every number as a float.
_MAX_WHOLE = 10**15

Row = list[object]


class Layout(NamedTuple):
    """How a sheet begins: some rows of titles, then the header if it has one."""

    titles: int = 0
    columns: tuple[str, ...] = ()

    @property
    def has_header(self) -> bool:
        return bool(self.columns)


def filled_rows(grid: CalamineSheet) -> Iterator[Row]:
    """The rows with something in them."""
    for row in grid.iter_rows():
        if not all(_is_blank(value) for value in row):
            yield list(row)


def find_layout(rows: Sequence[Row]) -> Layout:
    """From the first rows that are filled: lone cells above a table are its titles."""
    filled = [sum(not _is_blank(value) for value in row) for row in rows]
    titles = next((index for index, count in enumerate(filled) if count > 1), 0)
    if titles > _MAX_TITLES:
        titles = 0
    if len(rows) < titles + 2:
        return Layout(titles)
    first, second = rows[titles], rows[titles + 1]
    if not all(isinstance(value, str) for value in first) or not is_header(texts(first), texts(second)):
        return Layout(titles)
    return Layout(titles, column_names(texts(first)))


def texts(row: Row) -> list[str]:
    """The cells as text, up to the last that has one."""
    cells = [value_text(value) for value in row]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def value_text(value: object) -> str:
    match value:
        case str():
            return clean(value).strip() if value else ""
        case bool():
            return "TRUE" if value else "FALSE"
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < _MAX_WHOLE else f"{value:.15g}"
        case datetime():
            return value.isoformat(sep=" ", timespec="seconds") if value.time() != time() else value.date().isoformat()
        case time():
            return value.isoformat(timespec="seconds")
        case date():
            return value.isoformat()
        case timedelta():
            return _duration_text(value)
        case _:
            return str(value)


def _duration_text(value: timedelta) -> str:
    """Hours, minutes and seconds; the hours go on beyond a day."""
    seconds = round(value.total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _is_blank(value: object) -> bool:
    return isinstance(value, str) and (not value or not clean(value).strip())
