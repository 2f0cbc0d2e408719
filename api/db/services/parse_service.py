"""Starting and stopping a parse: a new generation with its first task, or the end of one. Each is one transaction;
ringing the relay afterwards is the caller's (`Doorbell`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from api.db.database import Rows
from api.db.services import task_sql
from api.db.services.document_sql import WHOLE_DOCUMENT
from api.db.services.task_plan import PlannedFile, plan_ranges
from api.db.services.task_requests import NewRange
from api.db.services.task_sql import DocumentKey, Event, TaskRow
from common.errors import DocumentError
from common.settings import TaskSettings
from common.task_state import (
    DOCUMENT_TRANSITIONS,
    TASK_TRANSITIONS,
    TaskType,
    from_states_sql,
    set_state_sql,
)
from rag.parser.blocks import PARSER_VERSION, Profile

_ACTIVE_FROM_START = "CASE WHEN active_generation = 0 THEN generation + 1 ELSE active_generation END"


@dataclass(frozen=True)
class Doorbell:
    """How the rest of the system hears of a commit. Losing a ring costs seconds, never work."""

    tasks_waiting: Callable[[], None]
    tasks_cancelled: Callable[[Sequence[str]], None]


class ParseService:
    def __init__(self, rows: Rows, settings: TaskSettings, dimension: int, bell: Doorbell) -> None:
        self._rows = rows
        self._settings = settings
        self._dimension = dimension
        self._bell = bell

    def start(self, doc_ids: Sequence[str]) -> list[str]:
        """Begin a new generation of each document that is not running. Returns the ids of those that were started."""
        started = self._rows.write(self._start_all, doc_ids)
        if started:
            self._bell.tasks_waiting()
        return started

    def stop(self, doc_ids: Sequence[str]) -> list[str]:
        """Cancel the running parse of each document. Returns the ids of those that were running."""
        stopped, tasks = self._rows.write(self._stop_all, doc_ids)
        if tasks:
            self._bell.tasks_cancelled(tasks)
        return stopped

    def _start_all(self, doc_ids: Sequence[str]) -> list[str]:
        task_sql.lock_documents(self._rows, doc_ids)
        return [doc_id for doc_id in doc_ids if self._start(doc_id)]

    def _start(self, doc_id: str) -> bool:
        transition = DOCUMENT_TRANSITIONS["parse"]
        now = self._rows.now_ms
        won = self._rows.execute(
            f"UPDATE document SET {set_state_sql(transition, 'run')}, active_generation = {_ACTIVE_FROM_START},"
            f" generation = generation + 1, paused = 0, open_tasks = 0, total_tasks = 0, done_tasks = 0,"
            f" failed_tasks = 0, reused_tasks = 0, run_chunks = 0, run_tokens = 0, error_code = '',"
            f" error_message = '', begin_ms = {now}, end_ms = 0, update_ms = {now}"
            f" WHERE id = ? AND deleted_ms = 0 AND {from_states_sql(transition, 'run')}",
            (doc_id,),
        ).rowcount
        if not won:
            return False
        self._insert_first_tasks(doc_id)
        return True

    def _insert_first_tasks(self, doc_id: str) -> None:
        """One prepare task; or, for a file whose profile is known, its ranges at once."""
        ((tenant_id, generation, priority, kb_id, profile, planned),) = self._known(doc_id)
        key = DocumentKey(tenant_id, kb_id, doc_id, generation, priority)
        ranges: tuple[NewRange, ...] = ()
        if profile is not None:
            try:
                ranges = plan_ranges(planned, msgspec.json.decode(profile, type=Profile), self._settings)
            except DocumentError:
                ranges = ()  # the prepare task meets the same error and reports it as a task's error
        now_ms = self._rows.clock()
        if ranges:
            task_sql.insert_tasks(self._rows, key, TaskType.RANGE, ranges, now_ms)
        else:
            task_sql.insert_tasks(self._rows, key, TaskType.PREPARE, [WHOLE_DOCUMENT], now_ms)
        count = max(1, len(ranges))
        self._rows.execute(
            "UPDATE document SET profile = ?, open_tasks = ?, total_tasks = ? WHERE id = ?",
            (profile if ranges else None, count, count, doc_id),
        )

    def _known(self, doc_id: str) -> list[tuple[str, int, int, str, str | None, PlannedFile]]:
        found = self._rows.rows(
            "SELECT d.tenant_id, d.generation, d.priority, d.kb_id, p.profile, d.file_digest, d.name, d.chunk_method,"
            " d.parser_config, k.embedding_model FROM document d JOIN knowledgebase k ON k.id = d.kb_id"
            " LEFT JOIN file_profile p ON p.tenant_id = d.tenant_id AND p.file_digest = d.file_digest"
            " AND p.parser_version = ? WHERE d.id = ?",
            (PARSER_VERSION, doc_id),
        )
        return [
            (*row[:5], PlannedFile(row[5], row[6], row[7], json.loads(row[8]), row[9], self._dimension))
            for row in found
        ]

    def _stop_all(self, doc_ids: Sequence[str]) -> tuple[list[str], list[str]]:
        task_sql.lock_documents(self._rows, doc_ids)
        stopped, cancelled = [], []
        for doc_id in doc_ids:
            if self._stop(doc_id):
                stopped.append(doc_id)
                cancelled += self._cancel_tasks(doc_id)
        return stopped, cancelled

    def _stop(self, doc_id: str) -> bool:
        """A first parse that is stopped stops being searched in the same moment; an older generation stays."""
        transition = DOCUMENT_TRANSITIONS["cancel"]
        first_parse = "active_generation = generation"
        won = self._rows.execute(
            f"UPDATE document SET {set_state_sql(transition, 'run')}, paused = 0, open_tasks = 0,"
            f" chunk_count = CASE WHEN {first_parse} THEN 0 ELSE chunk_count END,"
            f" token_count = CASE WHEN {first_parse} THEN 0 ELSE token_count END,"
            f" active_generation = CASE WHEN {first_parse} THEN 0 ELSE active_generation END,"
            f" end_ms = {self._rows.now_ms}, update_ms = {self._rows.now_ms}"
            f" WHERE id = ? AND {from_states_sql(transition, 'run')}",
            (doc_id,),
        ).rowcount
        return bool(won)

    def _cancel_tasks(self, doc_id: str) -> list[str]:
        """End every open task of the document. Returns the ids of those that were running."""
        transition = TASK_TRANSITIONS["cancel"]
        found = self._rows.rows(
            f"SELECT id FROM task WHERE doc_id = ? AND {from_states_sql(transition)} ORDER BY id", (doc_id,)
        )
        tasks = task_sql.lock_tasks(self._rows, [row[0] for row in found]) if found else {}
        self._rows.execute(
            f"UPDATE task SET {set_state_sql(transition)}, end_at = {self._rows.now_ms}, lease_until = 0"
            f" WHERE doc_id = ? AND {from_states_sql(transition)}",
            (doc_id,),
        )
        task_sql.add_events(self._rows, [_cancelled(task) for task in tasks.values()])
        for key in {(t.tenant_id, t.kb_id, t.generation) for t in tasks.values()}:
            task_sql.mark_stale(self._rows, DocumentKey(key[0], key[1], doc_id, key[2], 0))
        return [t.id for t in tasks.values() if t.claim_token]


def _cancelled(task: TaskRow) -> Event:
    return task.event("cancel", message="stopped by the user")
