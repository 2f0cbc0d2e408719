"""What users noted about their documents: which documents meet conditions, what all of it amounts to, and changes to
many at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from api.db.database import Rows
from api.db.models import Document
from api.db.services import task_sql
from api.db.services.metadata_conditions import Conditions
from api.db.services.metadata_edits import DropValue, SetValue, changed

_NOTHING: dict[str, object] = {}
_SLICE = 200


class MetadataService:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def documents_meeting(self, tenant_id: str, dataset_ids: Sequence[str], conditions: Conditions) -> tuple[str, ...]:
        """Ids of the datasets' documents whose metadata meets the conditions."""
        query = Document.select(Document.id, Document.meta_fields).where(_of(tenant_id, dataset_ids))
        if not conditions.met_by(_NOTHING):
            query = query.where(Document.meta_fields != _NOTHING)
        return tuple(row.id for row in self._rows.read(list, query) if conditions.met_by(row.meta_fields))

    def noted(self, tenant_id: str, dataset_ids: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Id and metadata of the datasets' documents that have any."""
        query = Document.select(Document.id, Document.meta_fields).where(
            _of(tenant_id, dataset_ids) & (Document.meta_fields != _NOTHING)
        )
        return ((row.id, row.meta_fields) for row in self._rows.read(list, query))

    def of(self, tenant_id: str, document_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """The metadata of these documents."""
        query = Document.select(Document.id, Document.meta_fields).where(
            (Document.tenant_id == tenant_id) & Document.id.in_(list(document_ids)) & (Document.deleted_ms == 0)
        )
        return {row.id: row.meta_fields for row in self._rows.read(list, query)}

    def change(self, document_ids: Sequence[str], updates: Sequence[SetValue], deletes: Sequence[DropValue]) -> int:
        """Apply the same changes to each of these documents. Returns how many are different afterwards."""
        return sum(
            self._rows.write(self._change, document_ids[start : start + _SLICE], updates, deletes)
            for start in range(0, len(document_ids), _SLICE)
        )

    def _change(self, document_ids: Sequence[str], updates: Sequence[SetValue], deletes: Sequence[DropValue]) -> int:
        task_sql.lock_documents(self._rows, document_ids)
        found = Document.select(Document.id, Document.meta_fields).where(
            Document.id.in_(list(document_ids)) & (Document.deleted_ms == 0)
        )
        now_ms, count = self._rows.clock(), 0
        for row in list(found):
            after = changed(row.meta_fields, updates, deletes)
            if after is not None:
                Document.update(meta_fields=after, update_ms=now_ms).where(Document.id == row.id).execute()
                count += 1
        return count


def _of(tenant_id: str, dataset_ids: Sequence[str]) -> Any:
    return (Document.tenant_id == tenant_id) & Document.kb_id.in_(list(dataset_ids)) & (Document.deleted_ms == 0)
