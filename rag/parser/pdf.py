"""PDF: the profile of a document, and the blocks of a range of its pages.

Reads only the pages asked for. A page is judged by itself and the profile alone, so its blocks are the same whatever
range it is read in."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from itertools import islice
from pathlib import Path

import pypdfium2 as pdfium

from common.errors import NoPages
from rag.parser.blocks import PLAIN, Block, FileKind, Heading, Profile, ReadOptions, Unit
from rag.parser.code_lines import with_code
from rag.parser.layout import Page, order
from rag.parser.paragraphs import HeadingFinder, normalised, to_blocks
from rag.parser.pdf_footnotes import note_block, part_footnotes
from rag.parser.pdf_open import open_file
from rag.parser.pdf_running import find_running, without_repeated
from rag.parser.text import clean

_MAX_OUTLINE = 1000
_MAX_OUTLINE_READ = 20_000
_MAX_OUTLINE_DEPTH = 8
_MAX_TITLE = 200
_MOSTLY = 0.9
_DATE = re.compile(
    r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:(?P<utc>Z)|(?P<sign>[+-])(?P<h>\d\d)'?(?P<m>\d\d)?)?"
)


def profile(path: Path, name: str, options: ReadOptions = PLAIN) -> Profile:
    """Raises EncryptedFile, NoPages, or UnreadableFile for a file that pdfium can't open."""
    opened = open_file(path, name, options)
    pages = len(opened.document)
    if pages == 0:
        raise NoPages(f"{name} has no pages")
    sample = opened.sample()
    body_size = _body_size(sample)
    running = find_running(sample, body_size)
    return Profile(
        kind=FileKind.PDF,
        unit=Unit.PAGE,
        units=pages,
        title=clean(opened.metadata("Title")).strip()[:_MAX_TITLE],
        author=clean(opened.metadata("Author")).strip()[:_MAX_TITLE],
        body_size=body_size,
        is_mono=_is_mono(sample),
        outline=_outline(opened.document),
        repeated_lines=running.everywhere,
        repeated_after=running.after,
        number_offset=running.offset,
        scanned=sum(not page.is_whole for page in sample) / len(sample) if sample and options.ocr else 0.0,
        created=_iso(opened.metadata("CreationDate")),
        modified=_iso(opened.metadata("ModDate")),
    )


def read(path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
    """The blocks of these pages, first page 0. A page without text or picture gives none.

    Raises UnreadableFile for a page that can't be read."""
    opened = open_file(path, path.name, options)
    titles = _titles_by_page(profile.outline)
    for index in range(from_unit, min(to_unit, len(opened.document))):
        page = without_repeated(opened.page(index, ocr=options.ocr), profile)
        headings = HeadingFinder(profile.body_size, titles.get(index + 1, {}), has_outline=bool(titles))
        lines, notes = part_footnotes(page, order(page), profile.body_size)
        if not profile.is_mono:
            lines = list(with_code(page.number, lines, headings))
        yield from to_blocks(page.number, lines, headings)
        for note in notes:
            yield note_block(page.number, note)


def _body_size(sample: Sequence[Page]) -> float:
    """The size that most letters are set in."""
    by_size: dict[float, int] = defaultdict(int)
    for page in sample:
        for line in page.lines:
            by_size[line.size] += len(line.text)
    letters: dict[float, int] = defaultdict(int)
    for size, count in by_size.items():
        letters[round(size * 2) / 2] += count
    return max(letters, key=lambda size: (letters[size], -size), default=0.0)


def _is_mono(sample: Sequence[Page]) -> bool:
    """Whether hardly a letter is set in type whose letters differ in width, as in a text file that was printed."""
    mono = sum([len(line.text) for page in sample for line in page.lines if line.mono])
    return mono > 0 and mono >= _MOSTLY * sum([len(line.text) for page in sample for line in page.lines])


def _outline(document: pdfium.PdfDocument) -> tuple[Heading, ...]:
    """The outline's entries in order. One that is too long loses its deepest levels."""
    found: list[Heading] = []
    try:
        for bookmark in islice(document.get_toc(max_depth=_MAX_OUTLINE_DEPTH), _MAX_OUTLINE_READ):
            destination = bookmark.get_dest()
            title = " ".join(clean(bookmark.get_title()).split())[:_MAX_TITLE]
            index = destination.get_index() if destination else None
            if title and index is not None:
                found.append(Heading(title=title, level=bookmark.level + 1, page=index + 1))
    except pdfium.PdfiumError:
        return ()  # headings are then told by their type
    while len(found) > _MAX_OUTLINE and (deepest := max(entry.level for entry in found)) > 1:
        found = [entry for entry in found if entry.level < deepest]
    return tuple(found[:_MAX_OUTLINE])


@lru_cache(maxsize=4)
def _titles_by_page(outline: tuple[Heading, ...]) -> dict[int, dict[str, int]]:
    titles: dict[int, dict[str, int]] = defaultdict(dict)
    for entry in outline:
        titles[entry.page].setdefault(normalised(entry.title), entry.level)
    return dict(titles)


def _iso(date: str) -> str:
    """A date of the file as ISO 8601; empty if it is none."""
    parts = _DATE.match(date.strip())
    if parts is None:
        return ""
    year, month, day, hour, minute, second = (int(part) if part else 0 for part in parts.groups()[:6])
    try:
        when = datetime(year, month or 1, day or 1, hour, minute, second)
        if parts["utc"]:
            when = when.replace(tzinfo=UTC)
        elif parts["sign"]:
            ahead = timedelta(hours=int(parts["h"]), minutes=int(parts["m"] or 0))
            when = when.replace(tzinfo=timezone(-ahead if parts["sign"] == "-" else ahead))
    except ValueError:
        return ""
    return when.isoformat()
