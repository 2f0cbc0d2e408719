"""A document changed by its owner: name, chunk method, parser_config, metadata, whether it is searched. One
transaction; what is refused changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from peewee import IntegrityError

from api.db.database import Rows
from api.db.models import Document
from api.db.services import task_sql
from api.db.services.chunk_counts import drop_generation
from api.db.services.naming import name_key
from api.db.services.parser_defaults import merged, parser_config
from api.db.services.task_sql import DocumentKey, marks
from common.errors import Conflict, NotFound
from common.task_state import DOCUMENT_TRANSITIONS, DocumentRun, from_states_sql, set_state_sql

_SLICE = 500
_TAKEN = "Duplicated document name in the same dataset."


@dataclass(frozen=True)
class DocumentChange:
    """None leaves a thing as it is. `parser_config` is laid over the one that is there."""

    name: str | None = None
    chunk_method: str | None = None
    parser_config: Mapping[str, Any] | None = None
    meta_fields: Mapping[str, Any] | None = None
    enabled: bool | None = None


class DocumentChanges:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def update(self, doc_id: str, change: DocumentChange) -> None:
        """Raises Conflict for a name that is taken, and for another chunk method while the document is parsed."""
        try:
            self._rows.write(self._update, doc_id, change)
        except IntegrityError as exc:  # taken by somebody else since it was looked for
            raise Conflict(_TAKEN) from exc

    def enable(self, doc_ids: Sequence[str], enabled: bool) -> None:
        """Whether these documents are searched."""
        for start in range(0, len(doc_ids), _SLICE):
            part = sorted(doc_ids[start : start + _SLICE])
            self._rows.write(
                self._rows.execute,
                f"UPDATE document SET status = ?, update_ms = {self._rows.now_ms} WHERE id IN ({marks(part)})",
                (int(enabled), *part),
            )

    def use_dataset_config(self, doc_ids: Sequence[str]) -> None:
        """Give these documents the parser_config that their dataset has now, but for those that are being parsed."""
        for start in range(0, len(doc_ids), _SLICE):
            part = sorted(doc_ids[start : start + _SLICE])
            self._rows.write(
                self._rows.execute,
                "UPDATE document SET parser_config = (SELECT k.parser_config FROM knowledgebase k"
                f" WHERE k.id = document.kb_id) WHERE id IN ({marks(part)}) AND run != {int(DocumentRun.RUNNING)}",
                part,
            )

    def _update(self, doc_id: str, change: DocumentChange) -> None:
        task_sql.lock_documents(self._rows, [doc_id])
        row = Document.get_or_none((Document.id == doc_id) & (Document.deleted_ms == 0))
        if row is None:
            raise NotFound(f"You don't own the document {doc_id}.")
        fields: dict[str, Any] = {}
        if change.name is not None and change.name != row.name:
            self._require_free(row, change.name)
            fields |= {"name": change.name, "name_key": name_key(change.name)}
        if change.meta_fields is not None:
            fields["meta_fields"] = dict(change.meta_fields)
        if change.enabled is not None:
            fields["status"] = int(change.enabled)
        fields |= self._parsing(row, change)
        if fields:
            Document.update(**fields, update_ms=self._rows.clock()).where(Document.id == doc_id).execute()

    def _require_free(self, row: Document, name: str) -> None:
        same = (Document.kb_id == row.kb_id) & (Document.name_key == name_key(name)) & (Document.id != row.id)
        if Document.select().where(same).exists():
            raise Conflict(_TAKEN)

    def _parsing(self, row: Document, change: DocumentChange) -> dict[str, Any]:
        """Another method begins with its own defaults, and without chunks."""
        fields: dict[str, Any] = {}
        config = dict(row.parser_config)
        if change.chunk_method is not None and change.chunk_method != row.chunk_method:
            self._unparse(row)
            config = parser_config(change.chunk_method, None)
            fields = {"chunk_method": change.chunk_method, "parser_config": config}
        if change.parser_config is not None:
            if "raptor" not in change.parser_config:
                config.pop("raptor", None)
            fields["parser_config"] = merged(config, change.parser_config)
        return fields

    def _unparse(self, row: Document) -> None:
        if row.run == DocumentRun.RUNNING:
            raise Conflict("Can't change `chunk_method` of a document that is currently being processed: stop it first")
        if row.active_generation:
            key = DocumentKey(row.tenant_id, row.kb_id, row.id, row.generation, row.priority)
            drop_generation(self._rows, key, row.active_generation)
        transition = DOCUMENT_TRANSITIONS["reset"]
        self._rows.execute(
            f"UPDATE document SET {set_state_sql(transition, 'run')}, profile = NULL, total_tasks = 0, done_tasks = 0,"
            " failed_tasks = 0, failed_pages = 0, reused_tasks = 0, run_units = 0, run_chunks = 0, run_tokens = 0,"
            f" error_code = '', error_message = '', begin_ms = 0, end_ms = 0"
            f" WHERE id = ? AND {from_states_sql(transition, 'run')}",
            (row.id,),
        )
