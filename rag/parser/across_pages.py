"""The blocks of a range of pages, with every paragraph that runs over a page's edge in one piece, on the page where it
starts.

A range gives what starts on its pages: it leaves out the end of what the page before started, and reads on until its
own last paragraph ends. So the blocks do not depend on how a document is split. Pages that are not wanted are never
read, and a page beside the range that can't be read ends the paragraph at its edge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from common.errors import UnreadableFile
from rag.parser import registry
from rag.parser.blocks import PLAIN, Block, FileKind, Profile, ReadOptions
from rag.parser.page_edges import MAX_PAGES_ON, join, may_be_tail, may_go_on, runs_on
from rag.parser.page_text import PageText, page_text

# From this share of pictures on, pages are cut at their edges: to recognise one more takes seconds.
MANY_SCANNED = 0.2

# Hears which unit beside the range is read next, and None when it has been read.
OnNeighbour = Callable[[int | None], None]


def _ignore(_: int | None) -> None:
    """Nobody asked."""


def goes_over_pages(profile: Profile) -> bool:
    return profile.kind is FileKind.PDF and profile.scanned < MANY_SCANNED


def neighbourhood(profile: Profile, pages: Sequence[tuple[int, int]], from_unit: int, to_unit: int) -> tuple[int, int]:
    """The range with the units beside it that may be read for it, half-open: the one before, and behind it as many as
    a paragraph may run on; none beyond the wanted `pages`."""
    if not goes_over_pages(profile):
        return from_unit, to_unit
    first, end = max(0, from_unit - 1), min(profile.units, to_unit + MAX_PAGES_ON)
    if pages:
        wanted = {unit for low, high in pages for unit in range(max(low - 1, first), min(high, end))}
        first = first if first in wanted else from_unit
        end = next((unit for unit in range(to_unit, end) if unit not in wanted), end)
    return first, end


def read(
    path: Path,
    profile: Profile,
    from_unit: int,
    to_unit: int,
    options: ReadOptions = PLAIN,
    on_neighbour: OnNeighbour = _ignore,
) -> Iterator[Block]:
    """The blocks that start in these units. Raises what `registry.read` does; UnreadableFile not for units beside."""
    blocks = registry.read(path, profile, from_unit, to_unit, options)
    if not goes_over_pages(profile):
        yield from blocks
        return
    first, end = neighbourhood(profile, options.pages, from_unit, to_unit)
    growth = _Growth()

    def neighbour(unit: int) -> PageText | None:
        on_neighbour(unit)
        try:
            page = page_text(list(registry.read(path, profile, unit, unit + 1, options)))
        except UnreadableFile:
            page = None  # its own range tells
        on_neighbour(None)
        return page

    for page in _pages(blocks):
        if _unit(page) == from_unit > first and may_be_tail(page):
            growth.page = neighbour(from_unit - 1)
        yield from growth.add(page)
    for unit in range(to_unit, end):
        if not growth.may_grow_into(unit) or not growth.grow(neighbour(unit)):
            break
    yield from growth.waiting


def _pages(blocks: Iterable[Block]) -> Iterator[PageText]:
    for _, page in groupby(blocks, key=lambda block: block.page):
        yield page_text(list(page))


def _unit(page: PageText) -> int:
    return page.blocks[0].page - 1


class _Growth:
    """Blocks that wait for the end of the one among them that may still grow."""

    def __init__(self) -> None:
        self.waiting: list[Block] = []
        # The page that was seen last; which of those that wait its text ends with. -1: that started before the range.
        self.page: PageText | None = None
        self._open = -1

    def add(self, page: PageText) -> list[Block]:
        """Take the next page. Gives the blocks that wait no longer."""
        before, self.page = self.page, page
        if before is None or not _runs_on(before, page):
            done, self.waiting = self.waiting, list(page.blocks)
            self._open = page.places[-1] if page.places else -1
            return done
        self._join(before, page)
        tail = page.places[0]
        rest = [*page.blocks[:tail], *page.blocks[tail + 1 :]]
        if len(page.places) == 1:  # all of its text belongs to what was started before
            self.waiting += rest
            return []
        done, self.waiting = self.waiting, rest
        self._open = page.places[-1] - 1
        return done

    def may_grow_into(self, unit: int) -> bool:
        page = self.page
        return page is not None and self._open >= 0 and _unit(page) == unit - 1 and may_go_on(page)

    def grow(self, page: PageText | None) -> bool:
        """Take from a page behind the range the end of what the range started. False: there it ends."""
        before = self.page
        if page is None or before is None or not _runs_on(before, page):
            return False
        self._join(before, page)
        self.page = page
        return len(page.places) == 1

    def _join(self, before: PageText, page: PageText) -> None:
        if self._open >= 0:
            self.waiting[self._open] = join(before, page, self.waiting[self._open])


def _runs_on(before: PageText, page: PageText) -> bool:
    if not before.blocks or not page.blocks or _unit(before) + 1 != _unit(page):
        return False
    return runs_on(before, page)
