"""The table of contents of a document: which headings stand in a chunk, and all of them in order with their depth.

Where a document has an outline of its own, that is its table of contents; else it is made of its headings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from rag.flow.chunk import Chunk
from rag.flow.packing import Atom
from rag.flow.parts import Part
from rag.parser.blocks import BlockKind, Heading
from rag.parser.paragraphs import normalised

_MAX_TITLE = 200
_HEADING = BlockKind.HEADING

Where = TypeVar("Where")


class Entry(NamedTuple, Generic[Where]):
    """A line of a table of contents: how deep, and in which chunk it starts."""

    level: int
    title: str
    page: int
    chunk: Where


def table_of_contents(chunks: Iterable[tuple[Where, Sequence[Heading]]]) -> Iterator[Entry[Where]]:
    """The entries of chunks that come in reading order. A title that is repeated on every page is one entry."""
    above: list[tuple[int, str]] = []
    for chunk, contents in chunks:
        for heading in contents:
            if not heading.title:
                continue
            while above and above[-1][0] > heading.level:
                above.pop()
            if above and above[-1] == (heading.level, heading.title):
                continue
            if above and above[-1][0] == heading.level:
                above.pop()
            above.append((heading.level, heading.title))
            yield Entry(len(above), heading.title, heading.page, chunk)


class PartContents:
    """The headings of a part, each told for the first chunk that has it."""

    def __init__(self, part: Part) -> None:
        self._titles = {id(part.blocks[title.at]): title for title in part.titles}
        self._above = [block for block in part.headed_by if block.kind is _HEADING]

    def of_chunk(self, chunk: Chunk, atoms: Sequence[Atom]) -> Chunk:
        """The chunk that is made of these atoms, with the headings among them."""
        found = [_heading(block.text, block.level, block.page) for block in self._above]
        self._above = []
        for block in [piece.block for atom in atoms for piece in atom.pieces if piece.start == 0]:
            if block.kind is _HEADING:
                found.append(_heading(block.text, block.level, block.page))
            elif self._titles and (title := self._titles.pop(id(block), None)):
                found.append(_heading(title.text, title.level, block.page))
        return replace(chunk, contents=tuple(found)) if found else chunk


class OutlineContents:
    """The headings of chunks as the outline of their document has them."""

    def __init__(self, outline: Sequence[Heading]) -> None:
        self._entries: dict[int, list[Heading]] = defaultdict(list)
        for entry in outline:
            self._entries[entry.page].append(entry)

    def of_pages(self, chunks: Sequence[Chunk], pages: Iterable[int]) -> Iterator[Chunk]:
        """The chunks of these pages, each with the entries that start in it. An entry that is no heading on its page
        is where the one before it is, or at the start."""
        places = [place for place, chunk in enumerate(chunks) if not chunk.is_parent]
        found: dict[int, list[Heading]] = defaultdict(list)
        for entry in [entry for page in pages for entry in self._entries.get(page, ())] if places else ():
            title = entry.title
            for number, place in enumerate(places):
                if heading := _named(chunks[place], entry):
                    title, places = heading.title, places[number:]
                    break
            found[places[0]].append(Heading(title=title, level=entry.level, page=entry.page))
        for place, chunk in enumerate(chunks):
            contents = tuple(found.get(place, ()))
            yield replace(chunk, contents=contents) if chunk.contents != contents else chunk


def _named(chunk: Chunk, entry: Heading) -> Heading | None:
    """The heading in the chunk that is this entry of the outline."""
    same = (each for each in chunk.contents if each.page == entry.page and each.level == entry.level)
    return next((each for each in same if normalised(each.title) == normalised(entry.title)), None)


def _heading(text: str, level: int, page: int) -> Heading:
    return Heading(title=" ".join(text.split())[:_MAX_TITLE], level=level, page=page)
