"""The headings above a place in a document."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rag.parser.blocks import Heading

_MAX_TITLE = 200


class HeadingPath:
    """The headings from the highest to the nearest, as they are met on the way."""

    def __init__(self, above: Sequence[tuple[int, str]] = ()) -> None:
        self._stack = list(above)
        self._titles: tuple[str, ...] | None = None

    @property
    def titles(self) -> tuple[str, ...]:
        if self._titles is None:
            self._titles = tuple([title for _, title in self._stack])
        return self._titles

    def enter(self, level: int, title: str) -> None:
        while self._stack and self._stack[-1][0] >= level:
            self._stack.pop()
        self._stack.append((level, title[:_MAX_TITLE]))
        self._titles = None

    def copy(self) -> HeadingPath:
        return HeadingPath(self._stack)


class OutlinePaths:
    """The headings of an outline above each page. Pages mostly come one after the other, and outlines may be long."""

    def __init__(self, outline: Sequence[Heading]) -> None:
        self._outline = outline
        self._is_in_order = all(before.page <= after.page for before, after in pairwise(outline))
        self._path, self._entered, self._page = HeadingPath(), 0, 0

    def above(self, page: int) -> HeadingPath:
        """The headings from the pages before this one."""
        if not self._is_in_order or page < self._page:
            self._path, self._entered = HeadingPath(), 0
        while self._entered < len(self._outline):
            entry = self._outline[self._entered]
            if entry.page < page:
                self._path.enter(entry.level, entry.title)
            elif self._is_in_order:
                break
            self._entered += 1
        self._page = page
        return self._path.copy()
