"""Single chunks changed by people: added, edited, switched on and off, deleted. The index holds the chunk, the rows its
notes and counts. Documents that are being parsed are left alone: their chunks are about to be replaced.

A chunk that is deleted is handed over to a claim that is lost: in that moment nobody is answered it any more, and the
sweeper removes it. Who edits a chunk that somebody else deletes meanwhile loses, whichever write came last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from msgspec.structs import replace

from api.db.database import Rows
from api.db.services.chunk_counts import ADDED_CLAIM, DELETED_TASK_NO, ChunkCounts
from api.db.services.chunk_notes import NO_NOTE, ChunkNote, ChunkNotes, NotedDocument
from api.db.services.chunk_service import ChunkService
from api.db.services.document_views import DocumentView
from common.errors import InvalidInput, NotFound
from rag.flow.file_name import name_weight, weighted, words_of_name
from rag.flow.searched import searched_text
from rag.flow.token_counter import CountTokens
from rag.utils.doc_index import ChunkRecord, DocIndex, Scope, Vectors
from rag.utils.embedder import Embedder
from rag.utils.terms import analyse

_AT_ONCE = 1000
Position = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class NewChunk:
    content: str
    note: ChunkNote = NO_NOTE
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChunkChange:
    """None leaves a thing as it is."""

    content: str | None = None
    keywords: tuple[str, ...] | None = None
    questions: tuple[str, ...] | None = None
    tag_weights: dict[str, float] | None = None
    tags: tuple[str, ...] | None = None
    available: bool | None = None
    positions: tuple[Position, ...] | None = None

    @property
    def is_searched(self) -> bool:
        """Whether words and vector are to be made anew."""
        return not (self.content is None and self.keywords is None and self.questions is None)

    def of_note(self, note: ChunkNote) -> ChunkNote:
        return ChunkNote(
            note.keywords if self.keywords is None else self.keywords,
            note.questions if self.questions is None else self.questions,
            note.tag_weights if self.tag_weights is None else self.tag_weights,
        )

    def of_record(self, chunk: ChunkRecord) -> ChunkRecord:
        return replace(
            chunk,
            text=chunk.text if self.content is None else self.content,
            tags=chunk.tags if self.tags is None else self.tags,
            available=chunk.available if self.available is None else self.available,
            positions=chunk.positions if self.positions is None else self.positions,
        )


class ChunkEdits:
    def __init__(self, rows: Rows, index: DocIndex, embedder: Embedder, count_tokens: CountTokens) -> None:
        self._rows = rows
        self._index = index
        self._embedder = embedder
        self._count_tokens = count_tokens
        self._chunks = ChunkService(rows, index)
        self._notes = ChunkNotes(rows)
        self._counts = ChunkCounts(rows, self._notes)

    def add(self, document: DocumentView, embedding_model: str, new: NewChunk) -> ChunkRecord:
        """The same text again replaces the first. Raises Conflict while the document is being parsed."""
        self._require_model(embedding_model)
        place = self._counts.open(document.id)
        chunk = ChunkRecord(
            id=blake2b(f"{new.content}{document.id}".encode(), digest_size=8).hexdigest(),
            tenant_id=document.tenant_id,
            dataset_id=document.dataset_id,
            document_id=document.id,
            generation=place.generation,
            task_no=ADDED_CLAIM[0],
            claim_no=ADDED_CLAIM[1],
            ordinal=-place.number,  # the newest first
            page=0,
            text=new.content,
            terms=_terms(new.content, (), new.note),
            token_count=self._count_tokens([new.content])[0],
            created_ms=place.now_ms,
            tags=new.tags,
        )
        sequence = self._write([chunk], self._vectors(document, chunk, new.note))
        self._counts.added(_noted(document, chunk), chunk, new.note, sequence)
        return chunk

    def update(self, document: DocumentView, embedding_model: str, chunk_id: str, change: ChunkChange) -> None:
        """Raises NotFound, also where somebody else deletes the chunk meanwhile."""
        (old,) = self._found(document, [chunk_id])
        before = self._notes.of(document.tenant_id, [chunk_id]).get(chunk_id, NO_NOTE)
        note, chunk = change.of_note(before), change.of_record(old)
        if (note, chunk) == (before, old):
            return
        if change.is_searched:
            self._require_model(embedding_model)
            tokens = self._count_tokens([chunk.text])[0]
            chunk = replace(chunk, terms=_terms(chunk.text, chunk.headings, note), token_count=tokens)
            vectors = self._vectors(document, chunk, note)
        else:
            vectors = self._read_vectors([old])
        noted = _noted(document, old)
        self._counts.editing(noted, [old], note)
        sequence = self._write([chunk], vectors)
        self._counts.edited(noted, chunk.token_count - old.token_count, sequence)
        self._require_kept(noted, [chunk])

    def switch(self, document: DocumentView, chunk_ids: Sequence[str], available: bool) -> None:
        """Let these chunks be found, or not. Raises NotFound for an id that is none of the document's chunks."""
        chunks = [chunk for chunk in self._found(document, chunk_ids) if chunk.available != available]
        for part in _slices(chunks):
            noted = _noted(document, part[0])
            self._counts.editing(noted, part)
            switched = [replace(chunk, available=available) for chunk in part]
            self._counts.edited(noted, 0, self._write(switched, self._read_vectors(part)))
            self._require_kept(noted, switched)

    def delete(self, document: DocumentView, chunk_ids: Sequence[str]) -> int:
        """Those of the chunks that are there. Returns how many."""
        known = self._chunks.known(document, chunk_ids)
        for part in _slices(known):
            self._hand_over(_noted(document, part[0]), part)
        return len(known)

    def delete_all(self, document: DocumentView) -> None:
        self._counts.drop_all(document.id)

    def _require_kept(self, document: NotedDocument, chunks: Sequence[ChunkRecord]) -> None:
        gone = self._rows.read(self._notes.deleted, document.tenant_id, [chunk.id for chunk in chunks])
        lost = [chunk for chunk in chunks if chunk.id in gone]
        if lost:
            self._hand_over(document, lost)
            raise NotFound(f"Can't find this chunk {lost[0].id}: it was deleted meanwhile")

    def _hand_over(self, document: NotedDocument, chunks: Sequence[ChunkRecord]) -> None:
        vectors = self._read_vectors(chunks)
        claim_no = self._counts.deleting(document, chunks)
        ghosts = [replace(chunk, task_no=DELETED_TASK_NO, claim_no=claim_no) for chunk in chunks]
        self._counts.edited(document, 0, self._write(ghosts, vectors))

    def _found(self, document: DocumentView, chunk_ids: Sequence[str]) -> list[ChunkRecord]:
        found = self._chunks.known(document, chunk_ids)
        there = {chunk.id for chunk in found}
        for chunk_id in chunk_ids:
            if chunk_id not in there:
                raise NotFound(f"Can't find this chunk {chunk_id}")
        return found

    def _write(self, chunks: Sequence[ChunkRecord], vectors: Vectors) -> int:
        sequence = self._index.upsert(chunks, vectors)
        self._index.make_durable(sequence)
        return sequence

    def _read_vectors(self, chunks: Sequence[ChunkRecord]) -> Vectors:
        """As they stand in the index. One that has just gone gets zeros, and is about to be refused."""
        vectors: dict[str, Vectors] = {}
        for scope in dict.fromkeys(map(_claim_scope, chunks)):
            records, rows = self._index.read_all(scope)
            vectors |= {record.id: row for record, row in zip(records, rows, strict=True)}
        if not vectors:
            raise NotFound(f"Can't find this chunk {chunks[0].id}")
        nowhere = np.zeros_like(next(iter(vectors.values())))
        return np.stack([vectors.get(chunk.id, nowhere) for chunk in chunks])

    def _vectors(self, document: DocumentView, chunk: ChunkRecord, note: ChunkNote) -> Vectors:
        """Of its questions where it has any, as those who ask for them will put them; of its text otherwise."""
        asked = "\n".join(note.questions) or searched_text(chunk.text, chunk.headings)
        weight = name_weight(document.parser_config)
        if not weight:
            return self._embedder.embed([asked])
        found = self._embedder.embed([words_of_name(document.name), asked])
        return weighted(found[1:], found[0], weight)

    def _require_model(self, embedding_model: str) -> None:
        if embedding_model != self._embedder.name:
            raise InvalidInput(
                f"The dataset is embedded with {embedding_model}, and this server embeds with {self._embedder.name}."
            )


def _terms(text: str, headings: Sequence[str], note: ChunkNote) -> str:
    return " ".join(analyse("\n".join([*note.keywords, *note.questions, searched_text(text, headings)])))


def _noted(document: DocumentView, chunk: ChunkRecord) -> NotedDocument:
    return NotedDocument(document.tenant_id, document.id, chunk.generation)


def _claim_scope(chunk: ChunkRecord) -> Scope:
    claim = (chunk.task_no, chunk.claim_no)
    return Scope(chunk.tenant_id, chunk.dataset_id, chunk.document_id, chunk.generation, claim)


def _slices(chunks: Sequence[ChunkRecord]) -> list[Sequence[ChunkRecord]]:
    return [chunks[start : start + _AT_ONCE] for start in range(0, len(chunks), _AT_ONCE)]
