"""What users noted about their documents, as far as it decides which of them are searched."""

from __future__ import annotations

from collections.abc import Sequence

from api.db.database import Rows
from api.db.models import Document
from api.db.services.metadata_conditions import Conditions

_NOTHING: dict[str, object] = {}


class MetadataService:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def documents_meeting(self, tenant_id: str, dataset_ids: Sequence[str], conditions: Conditions) -> tuple[str, ...]:
        """Ids of the datasets' documents whose metadata meets the conditions."""
        query = Document.select(Document.id, Document.meta_fields).where(
            (Document.tenant_id == tenant_id) & Document.kb_id.in_(list(dataset_ids)) & (Document.deleted_ms == 0)
        )
        if not conditions.met_by(_NOTHING):
            query = query.where(Document.meta_fields != _NOTHING)
        return tuple(row.id for row in self._rows.read(list, query) if conditions.met_by(row.meta_fields))
