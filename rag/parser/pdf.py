"""PDF by pdfium: the profile of a document, and the blocks of a range of its pages.

Reads only the pages asked for. The last document stays open for its next range, with the pages that the
profile looked at. pdfium is not thread-safe: one process reads one document at a time."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from common.errors import EncryptedFile, NoPages, UnreadableFile
from rag.parser.blocks import PLAIN, Block, FileKind, Heading, Profile, ReadOptions, Unit
from rag.parser.layout import Line, Page, order
from rag.parser.paragraphs import SENTENCE_ENDS, HeadingFinder, normalised, to_blocks
from rag.parser.pdf_lines import read_page
from rag.parser.text import clean

_SAMPLE_PAGES = 12
_MAX_OUTLINE = 1000
_MAX_OUTLINE_READ = 20_000
_MAX_TITLE = 200
# Header and footer lines stand in the outer tenths of a page.
_MARGIN = 0.1
_MAX_EDGE_LINES = 2
# Against the body's: larger type is a title, and smaller is a header even with no gap below it.
_MAX_EDGE_SIZE = 1.05
_SMALL_SIZE = 0.9
_DIGITS = re.compile(r"\d+")


class _Use(NamedTuple):
    """Where a line that may be a header or footer stands, and the numbers in it."""

    page: int
    numbers: tuple[int, ...]
    is_parted: bool
    is_small: bool


class _Open:
    """One open document, and the pages already read of it for the profile."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.key = _file_key(path)
        self.document = _load(path, name)
        self._sampled: dict[int, Page] = {}

    def page(self, index: int) -> Page:
        return self._sampled.get(index) or read_page(self.document, self.path, index)

    def sample(self) -> list[Page]:
        for index in _spread(len(self.document), _SAMPLE_PAGES):
            # A bad page is reported by the range that it is in, not by the whole document.
            with suppress(UnreadableFile):
                self._sampled[index] = self.page(index)
        return list(self._sampled.values())

    def close(self) -> None:
        self.document.close()


class _Held:
    """The document that was read last."""

    def __init__(self) -> None:
        self._open: _Open | None = None

    def get(self, path: Path, name: str) -> _Open:
        if self._open is not None and self._open.key == _file_key(path):
            return self._open
        if self._open is not None:
            self._open.close()
            self._open = None
        self._open = _Open(path, name)
        return self._open


_held = _Held()


def profile(path: Path, name: str, options: ReadOptions = PLAIN) -> Profile:
    """Raises EncryptedFile, NoPages, or UnreadableFile for a file that pdfium can't open."""
    opened = _held.get(path, name)
    pages = len(opened.document)
    if pages == 0:
        raise NoPages(f"{name} has no pages")
    metadata = opened.document.get_metadata_dict(skip_empty=True)
    sample = opened.sample()
    body_size = _body_size(sample)
    return Profile(
        kind=FileKind.PDF,
        unit=Unit.PAGE,
        units=pages,
        title=clean(metadata.get("Title", "")).strip()[:_MAX_TITLE],
        author=clean(metadata.get("Author", "")).strip()[:_MAX_TITLE],
        body_size=body_size,
        outline=_outline(opened.document),
        repeated_lines=_repeated_lines(sample, body_size),
    )


def read(path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
    """The blocks of these pages, first page 0. A page without text gives none.

    Raises UnreadableFile for a page that can't be read."""
    opened = _held.get(path, path.name)
    titles = _titles_by_page(profile.outline)
    for index in range(from_unit, min(to_unit, len(opened.document))):
        page = _without_repeated(opened.page(index), profile)
        headings = HeadingFinder(profile.body_size, titles.get(index + 1, {}), has_outline=bool(titles))
        yield from to_blocks(page.number, order(page), headings)


def _file_key(path: Path) -> tuple[Path, int, int]:
    stat = path.stat()
    return path, stat.st_mtime_ns, stat.st_size


def _load(path: Path, name: str) -> pdfium.PdfDocument:
    # Not by PdfDocument(path): it takes a file without pages for one that fails, with the error of the last
    # file that did.
    raw = pdfium_c.FPDF_LoadDocument(os.fsencode(path) + b"\0", None)
    if raw:
        return pdfium.PdfDocument(raw)
    if pdfium_c.FPDF_GetLastError() in (pdfium_c.FPDF_ERR_PASSWORD, pdfium_c.FPDF_ERR_SECURITY):
        raise EncryptedFile(f"{name} is encrypted and needs a password")
    raise UnreadableFile(f"{name} is damaged and can't be opened as a PDF")


def _spread(count: int, most: int) -> list[int]:
    """At most `most` of 0..count-1, evenly, with the first and the last."""
    if count <= most:
        return list(range(count))
    return [position * (count - 1) // (most - 1) for position in range(most)]


def _body_size(sample: Sequence[Page]) -> float:
    """The size that most letters are set in."""
    letters: dict[float, int] = defaultdict(int)
    for page in sample:
        for line in page.lines:
            letters[round(line.size * 2) / 2] += len(line.text)
    return max(letters, key=lambda size: (letters[size], -size), default=0.0)


def _outline(document: pdfium.PdfDocument) -> tuple[Heading, ...]:
    """The outline's entries in order. One that is too long loses its deepest levels."""
    found: list[Heading] = []
    try:
        for bookmark in document.get_toc(max_depth=8):
            destination = bookmark.get_dest()
            title = " ".join(clean(bookmark.get_title()).split())[:_MAX_TITLE]
            index = destination.get_index() if destination else None
            if title and index is not None:
                found.append(Heading(title=title, level=bookmark.level + 1, page=index + 1))
            if len(found) >= _MAX_OUTLINE_READ:
                break
    except pdfium.PdfiumError:
        return ()  # headings are then told by their size
    while len(found) > _MAX_OUTLINE and (deepest := max(entry.level for entry in found)) > 1:
        found = [entry for entry in found if entry.level < deepest]
    return tuple(found[:_MAX_OUTLINE])


@lru_cache(maxsize=4)
def _titles_by_page(outline: tuple[Heading, ...]) -> dict[int, dict[str, int]]:
    titles: dict[int, dict[str, int]] = defaultdict(dict)
    for entry in outline:
        titles[entry.page].setdefault(normalised(entry.title), entry.level)
    return dict(titles)


def _repeated_lines(sample: Sequence[Page], body_size: float) -> tuple[str, ...]:
    """Headers and footers: a line that half of the sampled pages have, the same but for its page number."""
    uses: dict[str, list[_Use]] = defaultdict(list)
    for page in sample:
        parted = set(_edge_lines(page))
        for line in (*_in_margin(page, top=True), *_in_margin(page, top=False)):
            if line.size <= _MAX_EDGE_SIZE * body_size:
                numbers = tuple(int(digits[:9]) for digits in _DIGITS.findall(line.text))
                small = line.size <= _SMALL_SIZE * body_size
                uses[_pattern(line.text)].append(_Use(page.number, numbers, line in parted, small))
    return tuple(sorted(pattern for pattern, found in uses.items() if _is_header(found, len(sample))))


def _is_header(uses: Sequence[_Use], pages: int) -> bool:
    """Whether half of the pages have it with a gap to the text, or nearly all have it in small type."""
    parted = [use for use in uses if use.is_parted]
    if len(parted) >= max(3, pages / 2) and _is_running(parted):
        return True
    small = [use for use in uses if use.is_small]
    return len(small) >= max(3, 0.8 * pages) and _is_running(small)


def _is_running(uses: Sequence[_Use]) -> bool:
    """Whether numbers in the lines are all the same, or one of them counts the pages."""
    if len({use.numbers for use in uses}) == 1:
        return True
    columns = zip(*(tuple(number - use.page for number in use.numbers) for use in uses), strict=True)
    return any(len(set(offsets)) == 1 for offsets in columns)


def _pattern(text: str) -> str:
    return _DIGITS.sub("#", text)


def _edge_lines(page: Page) -> Iterator[Line]:
    """The lines in the top and bottom margin that a gap parts from the rest of the page."""
    lines = sorted(page.lines, key=lambda line: line.base)
    top = bottom = 0
    for count, (line, below) in enumerate(pairwise(lines), start=1):
        gap = below.top - line.bottom > line.size
        if gap and line.bottom < page.height * _MARGIN:
            top = count
        if gap and not bottom and below.top > page.height * (1 - _MARGIN):
            bottom = len(lines) - count
    for group in (lines[:top], lines[len(lines) - bottom :]):
        # More lines, or a sentence, are a short paragraph and no header.
        if len(group) <= _MAX_EDGE_LINES and not any(line.text.endswith(SENTENCE_ENDS) for line in group):
            yield from group


def _in_margin(page: Page, *, top: bool) -> list[Line]:
    """The outermost lines in the top or the bottom margin, whatever follows them."""
    lines = sorted(page.lines, key=lambda line: line.base, reverse=not top)[:_MAX_EDGE_LINES]
    if top:
        return [line for line in lines if line.bottom < page.height * _MARGIN]
    return [line for line in lines if line.top > page.height * (1 - _MARGIN)]


def _without_repeated(page: Page, profile: Profile) -> Page:
    """Never all of a page: what looks repeated is then its text."""
    repeated = profile.repeated_lines
    if not repeated:
        return page
    dropped = {
        line
        for line in (*_in_margin(page, top=True), *_in_margin(page, top=False))
        if line.size <= _MAX_EDGE_SIZE * profile.body_size and _pattern(line.text) in repeated
    }
    if not dropped or len(dropped) == len(page.lines):
        return page
    return Page(page.number, page.width, page.height, tuple(line for line in page.lines if line not in dropped))
