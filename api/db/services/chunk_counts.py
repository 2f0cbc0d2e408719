"""The rows' side of editing single chunks: a document's and its dataset's counts, which generation an added chunk
belongs to, and what must no longer be taken for the unchanged result of a parse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from api.db.database import Rows
from api.db.services import dataset_counts, task_sql
from api.db.services.chunk_notes import ChunkNote, ChunkNotes, NotedDocument
from api.db.services.task_sql import DocumentKey
from common.errors import Conflict, NotFound
from common.task_state import PREPARE_TASK_NO, DocumentRun, TaskType
from rag.utils.doc_index import ChunkRecord

# (task_no, claim_no) of chunks that people added, and the `task_no` of those they deleted: no task has these numbers.
ADDED_CLAIM = (-3, 0)
DELETED_TASK_NO = -4


@dataclass(frozen=True)
class Place:
    """Where a chunk is added: a document's generation that is searched, and how many notes it has already."""

    generation: int
    number: int
    now_ms: int


class ChunkCounts:
    def __init__(self, rows: Rows, notes: ChunkNotes) -> None:
        self._rows = rows
        self._notes = notes

    def open(self, doc_id: str) -> Place:
        """A document without chunks begins a generation for the first that is added to it."""
        return self._rows.write(self._open, doc_id)

    def added(self, document: NotedDocument, chunk: ChunkRecord, note: ChunkNote, sequence: int) -> None:
        """The index has it. Counted unless the same text was there already."""
        self._rows.write(self._added, document, chunk, note, sequence)

    def editing(self, document: NotedDocument, chunks: Sequence[ChunkRecord], note: ChunkNote | None = None) -> None:
        """Before the index is changed: the ranges of these chunks are no source for reuse any more. `note`, if any, is
        what the only one of them has from now on. Raises NotFound for a chunk that is deleted."""
        self._rows.write(self._editing, document, chunks, note)

    def edited(self, document: NotedDocument, tokens: int, sequence: int) -> None:
        """The index has it: searches from now on see it."""
        self._rows.write(self._count, document, 0, tokens, sequence)

    def deleting(self, document: NotedDocument, chunks: Sequence[ChunkRecord]) -> int:
        """Before the index is changed. Each chunk is counted once, whoever else deletes it. Returns the number of the
        lost claim that the chunks go to."""
        return self._rows.write(self._deleting, document, chunks)

    def drop_all(self, doc_id: str) -> None:
        """The whole generation is never answered any more."""
        self._rows.write(self._drop_all, doc_id)

    def _open(self, doc_id: str) -> Place:
        key, run, generation, active = self._locked(doc_id)
        _require_rest(run)
        if not active:
            active = generation + 1
            self._rows.execute(
                "UPDATE document SET generation = ?, active_generation = ?, profile = NULL, run_chunks = 0,"
                " run_tokens = 0 WHERE id = ?",
                (active, active, doc_id),
            )
        noted = NotedDocument(key.tenant_id, doc_id, active)
        self._notes.forget_older(noted)
        return Place(active, self._notes.count(noted), self._rows.clock())

    def _added(self, document: NotedDocument, chunk: ChunkRecord, note: ChunkNote, sequence: int) -> None:
        _, _, _, active = self._locked(document.id)
        if active != document.generation:
            raise Conflict("the document was parsed anew meanwhile: add the chunk again")
        is_new = not self._notes.is_there(document.tenant_id, chunk.id)
        self._notes.put(document, chunk.id, note)
        self._count(document, int(is_new), chunk.token_count if is_new else 0, sequence)

    def _editing(self, document: NotedDocument, chunks: Sequence[ChunkRecord], note: ChunkNote | None) -> None:
        _, run, _, active = self._locked(document.id)
        _require_rest(run)
        gone = self._notes.deleted(document.tenant_id, [chunk.id for chunk in chunks])
        if active != document.generation or gone:
            raise NotFound(f"Can't find this chunk {next(iter(gone), chunks[0].id)}")
        if note is not None:
            self._notes.put(document, chunks[0].id, note)
        self._forget_results(chunks)

    def _deleting(self, document: NotedDocument, chunks: Sequence[ChunkRecord]) -> int:
        key, run, _, active = self._locked(document.id)
        _require_rest(run)
        won = self._notes.mark_deleted(document, [chunk.id for chunk in chunks])
        if active == document.generation:
            tokens = sum(chunk.token_count for chunk in chunks if chunk.id in won)
            self._count(document, -len(won), -tokens, 0)
        self._forget_results(chunks)
        ((last,),) = self._rows.rows(
            "SELECT COALESCE(MAX(claim_no), 0) FROM stale_chunks WHERE doc_id = ? AND generation = ? AND task_no = ?",
            (document.id, document.generation, DELETED_TASK_NO),
        )
        self._rows.execute(
            "INSERT INTO stale_chunks (doc_id, generation, task_no, claim_no, tenant_id, kb_id, at_ms, sweep_ms)"
            f" VALUES (?, ?, ?, ?, ?, ?, {self._rows.now_ms}, 0)",
            (document.id, document.generation, DELETED_TASK_NO, last + 1, key.tenant_id, key.kb_id),
        )
        return int(last) + 1

    def _drop_all(self, doc_id: str) -> None:
        key, run, _, active = self._locked(doc_id)
        _require_rest(run)
        if not active:
            return
        drop_generation(self._rows, key, active)

    def _count(self, document: NotedDocument, chunks: int, tokens: int, sequence: int) -> None:
        counted = self._rows.execute(
            f"UPDATE document SET chunk_count = chunk_count + ?, token_count = token_count + ?,"
            f" visible_seq = CASE WHEN visible_seq < ? THEN ? ELSE visible_seq END, update_ms = {self._rows.now_ms}"
            f" WHERE id = ? AND deleted_ms = 0 AND active_generation = ?",
            (chunks, tokens, sequence, sequence, document.id, document.generation),
        ).rowcount
        if counted and (chunks or tokens):
            ((dataset_id,),) = self._rows.rows("SELECT kb_id FROM document WHERE id = ?", (document.id,))
            dataset_counts.add(self._rows, dataset_id, chunks=chunks, tokens=tokens)

    def _forget_results(self, chunks: Sequence[ChunkRecord]) -> None:
        for chunk in {(c.document_id, c.generation, c.task_no, c.claim_no): c for c in chunks}.values():
            self._rows.execute(
                "DELETE FROM range_result WHERE doc_id = ? AND generation = ? AND task_no = ? AND claim_no = ?",
                (chunk.document_id, chunk.generation, chunk.task_no, chunk.claim_no),
            )
            of_task, place = (
                ("task_type = ?", str(TaskType.PREPARE))
                if chunk.task_no == PREPARE_TASK_NO
                else ("from_page = ?", chunk.task_no)
            )
            # Its own document must not take it for unchanged either.
            self._rows.execute(
                f"UPDATE task SET digest = '' WHERE doc_id = ? AND generation = ? AND {of_task}",
                (chunk.document_id, chunk.generation, place),
            )

    def _locked(self, doc_id: str) -> tuple[DocumentKey, int, int, int]:
        """(key, run, generation, active generation) of a document that is there."""
        task_sql.lock_documents(self._rows, [doc_id])
        found = self._rows.rows(
            "SELECT tenant_id, kb_id, id, generation, priority, run, active_generation FROM document"
            " WHERE id = ? AND deleted_ms = 0",
            (doc_id,),
        )
        if not found:
            raise NotFound(f"You don't own the document {doc_id}.")
        *key, run, active = found[0]
        return DocumentKey(*key), run, key[3], active


def drop_generation(rows: Rows, key: DocumentKey, active: int) -> None:
    """Within a write that has locked the document: its searched generation is never answered any more."""
    ((chunks, tokens),) = rows.rows("SELECT chunk_count, token_count FROM document WHERE id = ?", (key.doc_id,))
    task_sql.mark_stale(rows, DocumentKey(key.tenant_id, key.kb_id, key.doc_id, active, key.priority))
    rows.execute(
        f"UPDATE document SET active_generation = 0, chunk_count = 0, token_count = 0, update_ms = {rows.now_ms}"
        " WHERE id = ?",
        (key.doc_id,),
    )
    dataset_counts.add(rows, key.kb_id, chunks=-chunks, tokens=-tokens)


def _require_rest(run: int) -> None:
    if run == DocumentRun.RUNNING:
        raise Conflict("The document is being parsed, which replaces its chunks: stop it, or wait until it is done.")
