"""The chunks of a document as somebody reads them: in order, numbered, by the page they stand on, around one of them,
or with a text in them.

Where chunks stand is remembered for the documents that were read last, until anything about them changes; their texts
are always read anew."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from api.db.database import Rows
from api.db.services.chunk_counts import ADDED_CLAIM
from api.db.services.chunk_service import ChunkService, scope_of
from api.db.services.document_views import DocumentView
from api.db.services.stale_service import StaleService
from common.errors import NotFound
from common.task_state import DocumentRun
from rag.utils.doc_index import ChunkPlace, ChunkRecord, DocIndex
from rag.utils.terms import analyse

_REMEMBERED = 16
# Longer ones are read anew for every question: what is remembered stays small.
_MOST_REMEMBERED = 50_000
_Key = tuple[str, int, int]


@dataclass(frozen=True)
class ReadingFilter:
    """`near` asks for the page that holds this chunk, `on_page` for the chunks with a place on that page of the
    document, `text` for those that hold it as it is written or all of its words."""

    page: int = 1
    page_size: int = 30
    near: str = ""
    on_page: int = 0
    text: str = ""
    available: bool | None = None

    @property
    def needs_texts(self) -> bool:
        return bool(self.text.strip()) or self.available is not None


@dataclass(frozen=True)
class ReadChunk:
    """`number` counts the document's chunks from 1, whatever the filter."""

    number: int
    chunk: ChunkRecord

    @property
    def is_added(self) -> bool:
        """Whether a person wrote it."""
        return (self.chunk.task_no, self.chunk.claim_no) == ADDED_CLAIM


@dataclass(frozen=True)
class ReadPage:
    page: int
    total: int
    chunks: Sequence[ReadChunk]


class ChunkReading:
    def __init__(self, rows: Rows, index: DocIndex) -> None:
        self._rows = rows
        self._index = index
        self._chunks = ChunkService(rows, index)
        self._lock = threading.Lock()
        self._remembered: OrderedDict[_Key, Sequence[ChunkPlace]] = OrderedDict()

    def page(self, document: DocumentView, wanted: ReadingFilter) -> ReadPage:
        """Raises NotFound where `near` is none of the document's chunks."""
        places = self._places(document)
        kept = [place for place in places if not wanted.on_page or stands_on(place, wanted.on_page)]
        if wanted.needs_texts:
            fitting = {chunk.id for chunk in self._chunks.every(document) if _fits(chunk, wanted)}
            kept = [place for place in kept if place.id in fitting]
        number = _page_of(kept, wanted) if wanted.near else wanted.page
        start = (number - 1) * wanted.page_size
        cut = kept[start : start + wanted.page_size]
        numbers = {place.id: at for at, place in enumerate(places, 1)} if cut else {}
        found = self._index.get(document.tenant_id, [place.id for place in cut])
        return ReadPage(number, len(kept), [ReadChunk(numbers[chunk.id], chunk) for chunk in found])

    def _places(self, document: DocumentView) -> Sequence[ChunkPlace]:
        """All that a reader may see."""
        if not document.active_generation:
            return ()
        key = (document.id, document.active_generation, document.update_ms)
        with self._lock:
            if key in self._remembered:
                self._remembered.move_to_end(key)
                return self._remembered[key]
        lost = StaleService(self._rows).lost_claims([document.id]).get(document.id, set())
        places = [
            place
            for place in self._index.places(scope_of(document))
            if (document.active_generation, place.task_no, place.claim_no) not in lost
        ]
        if document.run is not DocumentRun.RUNNING and len(places) <= _MOST_REMEMBERED:
            self._remember(key, places)
        return places

    def _remember(self, key: _Key, places: Sequence[ChunkPlace]) -> None:
        with self._lock:
            self._remembered[key] = places
            while len(self._remembered) > _REMEMBERED:
                self._remembered.popitem(last=False)


def stands_on(place: ChunkPlace, page: int) -> bool:
    if not place.positions:
        return place.page == page
    return any(position[0] == page for position in place.positions)


def _page_of(places: Sequence[ChunkPlace], wanted: ReadingFilter) -> int:
    for at, place in enumerate(places):
        if place.id == wanted.near:
            return at // wanted.page_size + 1
    raise NotFound(f"Can't find this chunk {wanted.near}")


def _fits(chunk: ChunkRecord, wanted: ReadingFilter) -> bool:
    if wanted.available not in (None, chunk.available):
        return False
    text = wanted.text.strip().casefold()
    if not text or text in chunk.text.casefold() or any(text in heading.casefold() for heading in chunk.headings):
        return True
    terms = set(analyse(text))
    return bool(terms) and terms.issubset(chunk.terms.split())
