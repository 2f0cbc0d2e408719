"""A document's file as the rows know it before anybody opens it: what decides its ranges, and, where its profile was
made before, these ranges themselves. Read inside the caller's transaction."""

from __future__ import annotations

import json
from dataclasses import dataclass

import msgspec

from api.db.database import Rows
from api.db.services.task_plan import ModelTraits, PlannedFile, plan_ranges
from api.db.services.task_requests import NewRange
from api.db.services.task_sql import DocumentKey
from common.errors import DocumentError
from common.settings import TaskSettings
from rag.parser.blocks import PARSER_VERSION, Profile


@dataclass(frozen=True)
class KnownFile:
    """`profile` is as it is stored, None where this parser has not made one of the file."""

    key: DocumentKey
    profile: str | None
    planned: PlannedFile

    def ranges(self, settings: TaskSettings) -> tuple[NewRange, ...]:
        """None where the profile is not known, or where the file can't be split as it is asked for: the prepare task
        meets the same error, and reports it as a task's."""
        if self.profile is None:
            return ()
        try:
            return plan_ranges(self.planned, msgspec.json.decode(self.profile, type=Profile), settings)
        except DocumentError:
            return ()


def known_file(rows: Rows, doc_id: str, model: ModelTraits) -> KnownFile:
    found = rows.rows(
        "SELECT d.tenant_id, d.kb_id, d.id, d.generation, d.priority, p.profile, d.file_digest, d.name, d.chunk_method,"
        " d.parser_config, k.embedding_model FROM document d JOIN knowledgebase k ON k.id = d.kb_id"
        " LEFT JOIN file_profile p ON p.tenant_id = d.tenant_id AND p.file_digest = d.file_digest"
        " AND p.suffix = d.suffix AND p.parser_version = ? WHERE d.id = ?",
        (PARSER_VERSION, doc_id),
    )
    *key, profile, file_digest, name, chunk_method, parser_config, embedding_model = found[0]
    planned = PlannedFile(file_digest, name, chunk_method, json.loads(parser_config), embedding_model, model)
    return KnownFile(DocumentKey(*key), profile, planned)
