"""The headings above a place in a document."""

from __future__ import annotations

from collections.abc import Sequence

from rag.parser.blocks import Heading

_MAX_TITLE = 200


class HeadingPath:
    """The outline's headings from the pages before, then those met on the way."""

    def __init__(self, outline: Sequence[Heading] = (), page: int = 1) -> None:
        self._stack: list[tuple[int, str]] = []
        self._titles: tuple[str, ...] | None = None
        for entry in outline:
            if entry.page < page:
                self.enter(entry.level, entry.title)

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
