"""The hot statements of a task's life in plain SQL: insert, claim, renew, finish, give back. A batch costs a few
statements whatever its size. Which of them belong together in a transaction is decided by task_service.py.

`+state` is `state`, but no reason for SQLite to walk the index of states instead of the named ids."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from api.db.database import Rows
from api.db.services.read_ranges import ReadRange
from api.db.services.task_requests import ClaimedTask, Held, NewRange, Reusable, Written
from common.ids import new_task_ids
from common.task_state import (
    TASK_TRANSITIONS,
    TaskState,
    TaskType,
    chunk_task_no,
    from_states_sql,
    set_state_sql,
)
from rag.parser.blocks import PARSER_VERSION

# `task_no` of a line in stale_chunks that speaks of a whole generation.
WHOLE_GENERATION = -1
_TASK_COLUMNS = (
    "id", "tenant_id", "kb_id", "doc_id", "generation", "task_type", "from_page", "to_page", "priority",
    "parser_version", "state", "attempt", "losses", "retry_count", "claim_no", "claim_token", "owner", "lease_until",
    "run_after", "waiting_since", "published_at", "begin_at", "end_at", "process_duration", "progress",
    "progress_msg", "digest", "chunk_count", "token_count", "error_code", "error_message", "create_ms", "reused",
)  # fmt: skip
_RESULT_COLUMNS = (
    "tenant_id", "digest", "kb_id", "doc_id", "generation", "task_no", "claim_no", "chunk_count", "token_count",
    "create_ms",
)  # fmt: skip
_EVENT_COLUMNS = (
    "task_id", "doc_id", "generation", "at_ms", "kind", "claim_no", "owner", "error_code", "message", "detail",
)  # fmt: skip


@dataclass(frozen=True)
class DocumentKey:
    """The document that new tasks belong to."""

    tenant_id: str
    kb_id: str
    doc_id: str
    generation: int
    priority: int


class TaskRow(msgspec.Struct, frozen=True):
    """What a transition out of RUNNING needs to know of a task."""

    id: str
    tenant_id: str
    kb_id: str
    doc_id: str
    generation: int
    task_type: str
    from_page: int
    to_page: int
    state: int
    attempt: int
    losses: int
    claim_no: int
    claim_token: str
    owner: str
    waiting_since: int
    digest: str

    def event(
        self, kind: str, error_code: str = "", message: str = "", detail: Mapping[str, float] | None = None
    ) -> Event:
        return Event(
            self.id,
            self.doc_id,
            self.generation,
            self.claim_no,
            self.owner,
            kind,
            error_code,
            message,
            detail,
        )

    def is_held_by(self, held: Held) -> bool:
        return self.state == TaskState.RUNNING and self.claim_token == held.token


class Event(msgspec.Struct, frozen=True):
    """A line for a task's timeline."""

    task_id: str
    doc_id: str
    generation: int
    claim_no: int
    owner: str
    kind: str
    error_code: str = ""
    message: str = ""
    detail: Mapping[str, float] | None = None


_ROW_COLUMNS = ", ".join(TaskRow.__struct_fields__)
_CLAIMED_COLUMNS = """
           t.id, t.claim_token, t.claim_no, t.task_type, t.tenant_id, t.kb_id, t.doc_id, t.generation, t.from_page,
           t.to_page, t.attempt, t.losses, t.waiting_since, t.begin_at, t.digest, d.file_digest, d.name, d.chunk_method,
           d.parser_config, d.profile, k.embedding_model, d.index_seq,
           r.kb_id, r.doc_id, r.generation, r.task_no, r.claim_no, r.chunk_count, r.token_count"""
_CLAIMED_FROM = f"""
    FROM task t JOIN document d ON d.id = t.doc_id JOIN knowledgebase k ON k.id = t.kb_id
    LEFT JOIN range_result r ON r.tenant_id = t.tenant_id AND r.digest = t.digest
    WHERE t.id IN ({{marks}}) AND t.claim_token = ? AND +t.state = {int(TaskState.RUNNING)}"""


def marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


def insert_tasks(
    rows: Rows, document: DocumentKey, task_type: TaskType, ranges: Sequence[NewRange], now_ms: int
) -> list[str]:
    """New PENDING, unpublished tasks of a document. Returns their ids."""
    ids = new_task_ids(len(ranges))
    values = [
        (
            id_, document.tenant_id, document.kb_id, document.doc_id, document.generation, str(task_type),
            r.from_page, r.to_page, document.priority, PARSER_VERSION, int(TaskState.PENDING), 0, 0, 0, 0, "", "", 0,
            now_ms, 0, 0, 0, 0, 0.0, 0.0, "", r.digest, 0, 0, "", "", now_ms, 0,
        )
        for id_, r in zip(ids, ranges, strict=True)
    ]  # fmt: skip
    rows.insert_many("task", _TASK_COLUMNS, values)
    return ids


def insert_read(rows: Rows, document: DocumentKey, read: Sequence[ReadRange], claim_no: int, now_ms: int) -> list[str]:
    """Tasks of a document that are done: what they name was read for another one. Returns their ids."""
    ids = new_task_ids(len(read))
    values = [
        (
            id_, document.tenant_id, document.kb_id, document.doc_id, document.generation, str(r.task_type),
            r.from_page, r.to_page, document.priority, PARSER_VERSION, int(TaskState.DONE), 0, 0, 0, claim_no, "", "",
            0, now_ms, 0, 0, now_ms, now_ms, 0.0, 1.0, "", r.digest, r.chunks, r.tokens, "", "", now_ms, 1,
        )
        for id_, r in zip(ids, read, strict=True)
    ]  # fmt: skip
    rows.insert_many("task", _TASK_COLUMNS, values)
    results = [
        (
            document.tenant_id, r.digest, document.kb_id, document.doc_id, document.generation,
            chunk_task_no(r.task_type, r.from_page), claim_no, r.chunks, r.tokens, now_ms,
        )
        for r in read
    ]  # fmt: skip
    rows.insert_many("range_result", _RESULT_COLUMNS, results, replace=True)
    return ids


def claim(
    rows: Rows, task_ids: Sequence[str], owner: str, token: str, lease_ms: int
) -> tuple[list[ClaimedTask], set[str]]:
    """Conditional: who loses the race for a task does not get it. Read back by token in the same transaction.

    Also tells which of them were claimed by an earlier try whose reply was lost."""
    if not task_ids:
        return [], set()
    transition = TASK_TRANSITIONS["claim"]
    now = rows.now_ms
    won = rows.execute(
        f"UPDATE task SET {set_state_sql(transition)}, claim_token = ?, owner = ?, claim_no = claim_no + 1,"
        f" lease_until = {now} + ?, begin_at = {now}, progress = 0, progress_msg = ''"
        f" WHERE id IN ({marks(task_ids)}) AND +{from_states_sql(transition)}"
        f" AND run_after <= {now} AND parser_version = ?",
        (token, owner, lease_ms, *task_ids, PARSER_VERSION),
    ).rowcount
    found = rows.table(_CLAIMED_COLUMNS, _CLAIMED_FROM.format(marks=marks(task_ids)), (*task_ids, token))
    claimed = [_claimed(row) for row in found]
    return claimed, _told(rows, claimed) if won < len(claimed) else set()


def _told(rows: Rows, claimed: Sequence[ClaimedTask]) -> set[str]:
    """Those whose claim is in their timeline already."""
    ids = [t.id for t in claimed]
    found = rows.rows(
        f"SELECT task_id, claim_no FROM task_event WHERE task_id IN ({marks(ids)}) AND kind = 'claim'", ids
    )
    lines = set(found)
    return {t.id for t in claimed if (t.id, t.claim_no) in lines}


_CLAIMED_FIELDS = len(ClaimedTask.__struct_fields__) - 1


def _claimed(row: Sequence[Any]) -> ClaimedTask:
    own = list(row[:_CLAIMED_FIELDS])
    own[3] = TaskType(own[3])
    own.append(Reusable(*row[_CLAIMED_FIELDS:]) if row[_CLAIMED_FIELDS] is not None else None)
    return ClaimedTask(*own)


def renew(rows: Rows, held: Sequence[Held], lease_ms: int) -> set[str]:
    """One UPDATE for all claims of an executor, by the tokens it holds in memory. Returns the ids still held."""
    if not held:
        return set()
    ids, tokens = [h.task_id for h in held], sorted({h.token for h in held})
    rows.execute(
        f"UPDATE task SET lease_until = {rows.now_ms} + ?"
        f" WHERE id IN ({marks(ids)}) AND claim_token IN ({marks(tokens)}) AND +state = {int(TaskState.RUNNING)}",
        (lease_ms, *ids, *tokens),
    )
    found = rows.rows(
        f"SELECT id, claim_token FROM task WHERE id IN ({marks(ids)}) AND +state = {int(TaskState.RUNNING)}",
        ids,
    )
    pairs = set(found)
    return {h.task_id for h in held if (h.task_id, h.token) in pairs}


def lock_documents(rows: Rows, doc_ids: Iterable[str]) -> None:
    """In ascending order, before any task: so two batches never wait for each other in a circle."""
    ordered = sorted(set(doc_ids))
    if ordered and not rows.is_sqlite:
        rows.rows(f"SELECT id FROM document WHERE id IN ({marks(ordered)}) ORDER BY id FOR UPDATE", ordered)


def lock_free_documents(rows: Rows, doc_ids: Collection[str]) -> set[str]:
    """Those that nobody else holds: for work that can wait for the next round."""
    if rows.is_sqlite:
        return set(doc_ids)
    ordered = sorted(doc_ids)
    found = rows.rows(
        f"SELECT id FROM document WHERE id IN ({marks(ordered)}) ORDER BY id FOR UPDATE SKIP LOCKED", ordered
    )
    return {str(row[0]) for row in found}


def lock_tasks(rows: Rows, task_ids: Collection[str]) -> dict[str, TaskRow]:
    ordered = sorted(task_ids)
    in_order = "" if rows.is_sqlite else " ORDER BY id FOR UPDATE"
    found = rows.table(_ROW_COLUMNS, f"FROM task WHERE id IN ({marks(ordered)}){in_order}", ordered)
    return {str(row[0]): TaskRow(*row) for row in found}


def finish(rows: Rows, finished: Sequence[tuple[TaskRow, Written]]) -> None:
    """RUNNING to DONE, for tasks whose claim was just checked under lock; one statement per distinct result."""
    transition = TASK_TRANSITIONS["finish"]
    groups: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for task, written in finished:
        failed = json.dumps([asdict(bad) for bad in written.failed]) if written.failed else None
        result = (written.chunk_count, written.token_count, failed, int(written.reused))
        groups[*result, task.claim_token].append(task.id)
    for (*values, token), ids in groups.items():
        rows.execute(
            f"UPDATE task SET {set_state_sql(transition)}, progress = 1, progress_msg = '', end_at = {rows.now_ms},"
            f" process_duration = ({rows.now_ms} - begin_at) / 1000.0, chunk_count = ?, token_count = ?,"
            f" error_code = '', error_message = '', waiting_since = 0, failed_pages = ?, reused = ?"
            f" WHERE id IN ({marks(ids)}) AND claim_token = ? AND +{from_states_sql(transition)}",
            (*values, *ids, token),
        )
    _record_results(rows, finished)


def _record_results(rows: Rows, finished: Sequence[tuple[TaskRow, Written]]) -> None:
    """Remember where the chunks of these digests are; not of ranges that might be read better the next time."""
    recorded = [(task, written) for task, written in finished if task.digest and written.is_reusable]
    if recorded:
        now_ms = rows.clock()
        values = [
            (
                task.tenant_id, task.digest, task.kb_id, task.doc_id, task.generation,
                chunk_task_no(task.task_type, task.from_page), task.claim_no, written.chunk_count,
                written.token_count, now_ms,
            )
            for task, written in recorded
        ]  # fmt: skip
        rows.insert_many("range_result", _RESULT_COLUMNS, values, replace=True)


def set_progress(rows: Rows, held: Held, progress: float, message: str) -> None:
    rows.execute(
        f"UPDATE task SET progress = ?, progress_msg = ?"
        f" WHERE id = ? AND claim_token = ? AND state = {int(TaskState.RUNNING)}",
        (progress, message[:255], held.task_id, held.token),
    )


def add_events(rows: Rows, events: Sequence[Event]) -> None:
    if not events:
        return
    now_ms = rows.clock()
    values = [
        (
            e.task_id, e.doc_id, e.generation, now_ms, e.kind, e.claim_no, e.owner, e.error_code, e.message,
            json.dumps(e.detail) if e.detail else None,
        )
        for e in events
    ]  # fmt: skip
    rows.insert_many("task_event", _EVENT_COLUMNS, values)


def mark_stale(rows: Rows, scope: TaskRow | DocumentKey, keep_ms: int = 0) -> None:
    """Record that a lost claim's chunks, or a document's whole generation, are never answered, and swept after
    `keep_ms`."""
    if isinstance(scope, TaskRow):
        if scope.task_type == TaskType.FINISH:
            return  # writes no chunks
        task_no, claim_no = chunk_task_no(scope.task_type, scope.from_page), scope.claim_no
    else:
        task_no, claim_no = WHOLE_GENERATION, 0
    ignore = "INSERT OR IGNORE" if rows.is_sqlite else "INSERT IGNORE"
    rows.execute(
        f"{ignore} INTO stale_chunks (doc_id, generation, task_no, claim_no, tenant_id, kb_id, at_ms, sweep_ms)"
        f" VALUES (?, ?, ?, ?, ?, ?, {rows.now_ms}, {rows.now_ms} + ?)",
        (scope.doc_id, scope.generation, task_no, claim_no, scope.tenant_id, scope.kb_id, keep_ms),
    )
