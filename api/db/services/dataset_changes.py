"""A dataset changed by its owner. One transaction; what is refused changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from peewee import IntegrityError

from api.db.database import Rows
from api.db.models import Document, Knowledgebase
from api.db.services.naming import name_key
from api.db.services.parser_defaults import merged, parser_config
from common.errors import Conflict, NotFound
from common.task_state import DocumentRun

PLAIN_FIELDS = ("avatar", "description", "permission", "pagerank", "language")


@dataclass(frozen=True)
class DatasetChange:
    """`fields` are columns that are set as they are; of the others, None leaves a thing as it is. `parser_config` is
    laid over the one that is there, or over the defaults of a new chunk method."""

    fields: Mapping[str, Any]
    name: str | None = None
    embedding_model: str | None = None
    chunk_method: str | None = None
    parser_config: Mapping[str, Any] | None = None


class DatasetChanges:
    def __init__(self, rows: Rows, embedding_model: str) -> None:
        """`embedding_model` is the one that this server embeds with."""
        self._rows = rows
        self._embedding_model = embedding_model

    def update(self, dataset_id: str, change: DatasetChange) -> None:
        """Raises Conflict for a name that is taken and for another model where there are chunks, NotFound for a model
        that this server does not have."""
        try:
            self._rows.write(self._update, dataset_id, change)
        except IntegrityError as exc:  # taken by somebody else since it was looked for
            raise Conflict(f"Dataset name '{change.name}' already exists") from exc

    def _update(self, dataset_id: str, change: DatasetChange) -> None:
        # The row is written first: others that change it wait here, and what is read below stays true.
        self._rows.execute("UPDATE knowledgebase SET id = id WHERE id = ?", (dataset_id,))
        row = Knowledgebase.get_or_none((Knowledgebase.id == dataset_id) & (Knowledgebase.deleted_ms == 0))
        if row is None:
            raise NotFound(f"You don't own the dataset {dataset_id}.")
        fields = dict(change.fields)
        if change.name is not None and change.name != row.name:
            self._require_free(row, change.name)
            fields |= {"name": change.name, "name_key": name_key(change.name)}
        if change.embedding_model is not None and change.embedding_model != row.embedding_model:
            fields["embedding_model"] = self._model(row, change.embedding_model)
        fields |= _parsing(row, change)
        Knowledgebase.update(**fields, update_ms=self._rows.clock()).where(Knowledgebase.id == dataset_id).execute()

    def _require_free(self, row: Knowledgebase, name: str) -> None:
        same = (Knowledgebase.tenant_id == row.tenant_id) & (Knowledgebase.name_key == name_key(name))
        if Knowledgebase.select().where(same & (Knowledgebase.id != row.id)).exists():
            raise Conflict(f"Dataset name '{name}' already exists")

    def _model(self, row: Knowledgebase, wanted: str) -> str:
        if wanted != self._embedding_model:
            raise NotFound(f"Model {wanted} not found: this server embeds with {self._embedding_model}")
        if row.chunk_count:
            raise Conflict(
                f"When chunk_num ({row.chunk_count}) > 0, embedding_model must remain {row.embedding_model}:"
                " vectors of two models can't be compared"
            )
        # What they have written so far is not counted yet.
        running = (Document.kb_id == row.id) & (Document.run == DocumentRun.RUNNING) & (Document.deleted_ms == 0)
        if Document.select().where(running).exists():
            raise Conflict(
                f"While documents are being parsed, embedding_model must remain {row.embedding_model}:"
                " stop them, or wait until they are done"
            )
        return wanted


def _parsing(row: Knowledgebase, change: DatasetChange) -> dict[str, Any]:
    is_new = change.chunk_method is not None and change.chunk_method != row.chunk_method
    if not is_new and change.parser_config is None:
        return {}
    method = change.chunk_method or row.chunk_method
    base = parser_config(method, None) if is_new else row.parser_config
    return {"chunk_method": method, "parser_config": merged(base, change.parser_config or {})}
