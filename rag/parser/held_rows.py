"""The reader of the last file of rows, kept where the last range ended: ranges that come in a row read the
file once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

from common.errors import DocumentError
from rag.parser.blocks import Profile
from rag.parser.file_key import FileKey, file_key

Row = TypeVar("Row")


class HeldRows(Generic[Row]):
    """`open_rows` gives all rows of a file from its first."""

    def __init__(self, open_rows: Callable[[Path, Profile], Iterator[Row]]) -> None:
        self._open_rows = open_rows
        self._key: FileKey | None = None
        self._rows: Iterator[Row] = iter(())
        self._position = 0

    def seek(self, path: Path, profile: Profile, row: int) -> None:
        """The next row taken is `row`, counted from 0."""
        key = file_key(path)
        if key != self._key or row < self._position:
            self._key, self._rows, self._position = key, self._open_rows(path, profile), 0
        while self._position < row and self.take() is not None:
            pass

    def take(self) -> Row | None:
        """The next row, or None after the last. Raises what the reader does, and then starts over."""
        try:
            row = next(self._rows, None)
        except DocumentError:
            self._key = None
            raise
        self._position += 1
        return row
