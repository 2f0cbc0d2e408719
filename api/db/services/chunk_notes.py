"""What users note on single chunks: keywords, questions, weights of tags; and which chunks they deleted, so that each
is counted once. What of it is searched stands in the index, with the chunk.

Notes are a generation's: a new parse makes new chunks, and begins without any."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from api.db.database import Rows
from api.db.services.task_sql import marks

_COLUMNS = ("tenant_id", "chunk_id", "doc_id", "generation", "keywords", "questions", "tag_weights", "deleted")
_SLICE = 500


@dataclass(frozen=True)
class ChunkNote:
    keywords: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    tag_weights: Mapping[str, float] = field(default_factory=dict)


NO_NOTE = ChunkNote()


@dataclass(frozen=True)
class NotedDocument:
    """Whose chunks the notes are about."""

    tenant_id: str
    id: str
    generation: int


class ChunkNotes:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def of(self, tenant_id: str, chunk_ids: Sequence[str]) -> dict[str, ChunkNote]:
        """The notes on these chunks; those without one are left out."""
        found: dict[str, ChunkNote] = {}
        for part in _slices(chunk_ids):
            rows = self._rows.read(
                self._rows.rows,
                "SELECT chunk_id, keywords, questions, tag_weights FROM chunk_note WHERE tenant_id = ?"
                f" AND chunk_id IN ({marks(part)})",
                (tenant_id, *part),
            )
            for chunk_id, keywords, questions, weights in rows:
                found[chunk_id] = ChunkNote(
                    tuple(json.loads(keywords)), tuple(json.loads(questions)), json.loads(weights)
                )
        return found

    def put(self, document: NotedDocument, chunk_id: str, note: ChunkNote) -> None:
        """Within a write that has locked the document. A deleted chunk with this id is there again."""
        self._insert(document, [(chunk_id, note)], deleted=0)

    def is_there(self, tenant_id: str, chunk_id: str) -> bool:
        """Whether somebody wrote a note on it and has not deleted it since."""
        return bool(self._having(tenant_id, [chunk_id], deleted=0))

    def deleted(self, tenant_id: str, chunk_ids: Sequence[str]) -> set[str]:
        return {found for part in _slices(chunk_ids) for found in self._having(tenant_id, part, deleted=1)}

    def mark_deleted(self, document: NotedDocument, chunk_ids: Sequence[str]) -> set[str]:
        """Within a write that has locked the document. Those that nobody had deleted before."""
        gone = self.deleted(document.tenant_id, chunk_ids)
        won = [chunk_id for chunk_id in dict.fromkeys(chunk_ids) if chunk_id not in gone]
        self._insert(document, [(chunk_id, NO_NOTE) for chunk_id in won], deleted=1)
        return set(won)

    def count(self, document: NotedDocument) -> int:
        ((count,),) = self._rows.rows(
            "SELECT COUNT(*) FROM chunk_note WHERE doc_id = ? AND generation = ?", (document.id, document.generation)
        )
        return int(count)

    def forget_older(self, document: NotedDocument) -> None:
        """Within a write: of generations before this one, whose chunks nobody sees any more."""
        self._rows.execute(
            "DELETE FROM chunk_note WHERE doc_id = ? AND generation < ?", (document.id, document.generation)
        )

    def forget(self, doc_ids: Sequence[str]) -> None:
        """The documents are deleted."""
        for part in _slices(doc_ids):
            self._rows.write(self._rows.execute, f"DELETE FROM chunk_note WHERE doc_id IN ({marks(part)})", part)

    def forget_dataset(self, dataset_id: str) -> None:
        """The dataset is deleted with all its documents."""
        of_dataset = "SELECT id FROM document WHERE kb_id = ?"
        self._rows.write(self._rows.execute, f"DELETE FROM chunk_note WHERE doc_id IN ({of_dataset})", (dataset_id,))

    def _having(self, tenant_id: str, chunk_ids: Sequence[str], *, deleted: int) -> list[str]:
        found = self._rows.rows(
            f"SELECT chunk_id FROM chunk_note WHERE tenant_id = ? AND deleted = ? AND chunk_id IN ({marks(chunk_ids)})",
            (tenant_id, deleted, *chunk_ids),
        )
        return [str(row[0]) for row in found]

    def _insert(self, document: NotedDocument, notes: Sequence[tuple[str, ChunkNote]], *, deleted: int) -> None:
        values = [
            (
                document.tenant_id,
                chunk_id,
                document.id,
                document.generation,
                json.dumps(note.keywords, ensure_ascii=False),
                json.dumps(note.questions, ensure_ascii=False),
                json.dumps(dict(note.tag_weights), ensure_ascii=False),
                deleted,
            )
            for chunk_id, note in notes
        ]
        self._rows.insert_many("chunk_note", _COLUMNS, values, replace=True)


def _slices(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[start : start + _SLICE] for start in range(0, len(ids), _SLICE)]
