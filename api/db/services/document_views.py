"""A document as it is shown: its row, with progress and a sentence that follow from what is known of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.db.database import Rows
from api.db.models import Document
from api.db.services.dataset_service import nicknames
from api.db.services.document_facts import facts_of
from api.db.services.status_facts import StatusFacts
from api.db.services.status_text import progress_of, status_text
from common.task_state import DocumentRun
from rag.parser.blocks import FileKind, Unit


@dataclass(frozen=True)
class DocumentView:
    """`kind`, `unit` and `units` are what the newest parse found the file to be; "" and 0 before that."""

    id: str
    tenant_id: str
    dataset_id: str
    created_by: str
    nickname: str
    name: str
    file_digest: str
    size_bytes: int
    suffix: str
    type: str
    chunk_method: str
    parser_config: Mapping[str, Any]
    meta_fields: Mapping[str, Any]
    is_enabled: bool
    run: DocumentRun
    active_generation: int
    progress: float
    progress_msg: str
    begin_ms: int
    duration_s: float
    chunk_count: int
    token_count: int
    create_ms: int
    update_ms: int
    kind: str
    unit: Unit
    units: int

    @property
    def page_count(self) -> int:
        """Pages that can be drawn: of PDFs and pictures, once somebody has looked at the file."""
        return self.units if self.kind in (FileKind.PDF, FileKind.IMAGE) else 0


def views(rows: Rows, found: Sequence[Document], max_attempts: int) -> list[DocumentView]:
    names = nicknames(rows, {row.created_by for row in found})
    facts = facts_of(rows, found, max_attempts)
    return [_view(row, names.get(row.created_by, ""), facts[row.id]) for row in found]


def _view(row: Document, nickname: str, facts: StatusFacts) -> DocumentView:
    growing = facts.run is DocumentRun.RUNNING and facts.is_searchable_run
    return DocumentView(
        id=row.id,
        tenant_id=row.tenant_id,
        dataset_id=row.kb_id,
        created_by=row.created_by,
        nickname=nickname,
        name=row.name,
        file_digest=row.file_digest,
        size_bytes=row.size_bytes,
        suffix=row.suffix,
        type=row.type,
        chunk_method=row.chunk_method,
        parser_config=row.parser_config,
        meta_fields=row.meta_fields,
        is_enabled=row.status == 1,
        run=facts.run,
        active_generation=row.active_generation,
        progress=progress_of(facts),
        progress_msg=status_text(facts),
        begin_ms=row.begin_ms,
        duration_s=facts.duration_s,
        chunk_count=row.run_chunks if growing else row.chunk_count,
        token_count=row.run_tokens if growing else row.token_count,
        create_ms=row.create_ms,
        update_ms=row.update_ms,
        kind=str((row.profile or {}).get("kind", "")),
        unit=facts.unit,
        units=int((row.profile or {}).get("units", 0)),
    )
