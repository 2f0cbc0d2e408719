"""The reader of the last file of rows, kept where the last range ended, and marks of where rows start in the last
files: ranges in a row read a file once, and one that comes late or in turns with another file's is found at once."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TextIO, TypeVar

from common.errors import DocumentError
from rag.parser.file_key import FileKey, file_key

Row = TypeVar("Row")
Read_co = TypeVar("Read_co", covariant=True)

MARK_EVERY = 1_000
# Files whose marks are kept: more than an executor reads in turns.
MAX_FILES = 16


class Start(NamedTuple):
    """Where a row starts: a place that the file can be set to, and how many lines are before it."""

    place: int = 0
    line: int = 0


def place_in(file: TextIO) -> int | None:
    """Where the next line starts, to set the file to; None if its encoding does not let it be told."""
    try:
        return file.tell()
    except OSError:
        return None


class RowSource(Protocol[Read_co]):
    """A file that is being read. It is closed before another is opened."""

    def __iter__(self) -> Iterator[Read_co]: ...

    def here(self) -> Start | None:
        """Where the row after the last one given starts; None if the file can't tell."""

    def close(self) -> None: ...


class _Key(NamedTuple):
    file: FileKey
    encoding: str


class HeldRows(Generic[Row]):
    """`open_at` reads the rows of a file in an encoding, from a start on."""

    def __init__(self, open_at: Callable[[Path, str, Start], RowSource[Row]]) -> None:
        self._open_at = open_at
        self._marks: dict[_Key, list[Start]] = {}
        self._key: _Key | None = None
        self._source: RowSource[Row] | None = None
        self._rows: Iterator[Row] = iter(())
        self._position = 0
        atexit.register(self._drop)

    def rows(self, path: Path, encoding: str, first: int) -> Iterator[Row]:
        """The rows from `first` on, counted from 0. Raises what the source does, and then starts over."""
        key = _Key(file_key(path), encoding)
        marks = self._marks_of(key)
        self._go_near(path, key, marks, first)
        return islice(self._onwards(marks), max(0, first - self._position), None)

    def _marks_of(self, key: _Key) -> list[Start]:
        marks = self._marks.pop(key, None) or [Start()]
        self._marks[key] = marks
        while len(self._marks) > MAX_FILES:
            del self._marks[next(iter(self._marks))]
        return marks

    def _go_near(self, path: Path, key: _Key, marks: list[Start], row: int) -> None:
        """To the row or before it, as near as is known: on from here, or to a mark."""
        mark = min(row // MARK_EVERY, len(marks) - 1)
        if key == self._key and mark * MARK_EVERY <= self._position <= row:
            return
        self._drop()
        self._source = self._open_at(path, key.encoding, marks[mark])
        self._rows, self._key, self._position = iter(self._source), key, mark * MARK_EVERY

    def _onwards(self, marks: list[Start]) -> Iterator[Row]:
        try:
            for row in self._rows:
                self._position += 1
                if self._position == len(marks) * MARK_EVERY and self._source and (here := self._source.here()):
                    marks.append(here)
                yield row
        except DocumentError:
            self._drop()
            raise
        self._drop()

    def _drop(self) -> None:
        if self._source is not None:
            self._source.close()
        self._source = self._key = None
