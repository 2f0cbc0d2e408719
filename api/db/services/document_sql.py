"""The hot statements on a document's row: the counters and states that follow its tasks. Every one is conditional on
the generation, so that a task of an older parse changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from api.db.database import Rows
from api.db.services import dataset_counts
from api.db.services.task_requests import NewRange
from api.db.services.task_sql import DocumentKey, mark_stale, marks
from api.db.services.webhook_outcomes import Outcome, record
from common.task_state import DOCUMENT_TRANSITIONS, DocumentRun, from_states_sql, set_state_sql

WHOLE_DOCUMENT = NewRange(0, 0, "")
# `open_tasks` once the finish task is there: nobody brings it to 0 a second time.
RANGES_CLOSED = -1


@dataclass
class Counted:
    """What the ranges of one document that ended in one batch add up to."""

    ended: int = 0
    done: int = 0
    chunks: int = 0
    tokens: int = 0
    index_seq: int = 0
    failed_pages: int = 0
    reused: int = 0
    units: int = 0


def key_of(rows: Rows, doc_id: str) -> DocumentKey:
    found = rows.rows("SELECT tenant_id, kb_id, id, generation, priority FROM document WHERE id = ?", (doc_id,))
    return DocumentKey(*found[0])


def is_paused(rows: Rows, doc_id: str) -> bool:
    return bool(rows.rows("SELECT 1 FROM document WHERE id = ? AND paused = 1", (doc_id,)))


def set_profile(rows: Rows, doc_id: str, generation: int, profile: str) -> None:
    """Keep the profile with the document and, for the next parse of the same bytes, with the file."""
    rows.execute("UPDATE document SET profile = ? WHERE id = ? AND generation = ?", (profile, doc_id, generation))
    ignore = "INSERT OR IGNORE" if rows.is_sqlite else "INSERT IGNORE"
    rows.execute(
        f"{ignore} INTO file_profile (tenant_id, file_digest, suffix, parser_version, profile, create_ms)"
        f" SELECT d.tenant_id, d.file_digest, d.suffix, t.parser_version, d.profile, {rows.now_ms} FROM document d"
        f" JOIN task t ON t.doc_id = d.id AND t.generation = d.generation WHERE d.id = ? LIMIT 1",
        (doc_id,),
    )


def add_tasks(rows: Rows, doc_id: str, generation: int, count: int) -> None:
    """The ranges are known: they take the place of the prepare task in what is shown as the total."""
    rows.execute(
        "UPDATE document SET open_tasks = open_tasks + ?, total_tasks = ? WHERE id = ? AND generation = ?",
        (count, count, doc_id, generation),
    )


def count_ended(rows: Rows, doc_id: str, generation: int, counted: Counted) -> None:
    rows.execute(
        f"UPDATE document SET open_tasks = open_tasks - ?, done_tasks = done_tasks + ?, run_chunks = run_chunks + ?,"
        f" run_tokens = run_tokens + ?, failed_pages = failed_pages + ?, reused_tasks = reused_tasks + ?,"
        f" run_units = run_units + ?,"
        f" index_seq = CASE WHEN index_seq < ? THEN ? ELSE index_seq END,"
        f" update_ms = {rows.now_ms} WHERE id = ? AND generation = ?",
        (
            counted.ended,
            counted.done,
            counted.chunks,
            counted.tokens,
            counted.failed_pages,
            counted.reused,
            counted.units,
            counted.index_seq,
            counted.index_seq,
            doc_id,
            generation,
        ),
    )


def count_failed(rows: Rows, doc_id: str, generation: int, code: str, message: str) -> None:
    """One range failed; the first failure is the one the document shows."""
    rows.execute(
        f"UPDATE document SET open_tasks = open_tasks - 1, failed_tasks = failed_tasks + 1,"
        f" error_message = CASE WHEN error_code = '' THEN ? ELSE error_message END,"
        f" error_code = CASE WHEN error_code = '' THEN ? ELSE error_code END,"
        f" update_ms = {rows.now_ms} WHERE id = ? AND generation = ?",
        (message, code, doc_id, generation),
    )


def all_ranges_ended(rows: Rows, doc_ids: Sequence[str]) -> list[DocumentKey]:
    if not doc_ids:
        return []
    found = rows.rows(
        f"SELECT tenant_id, kb_id, id, generation, priority FROM document WHERE id IN ({marks(doc_ids)})"
        f" AND open_tasks = 0 AND run = {int(DocumentRun.RUNNING)}",
        doc_ids,
    )
    return [DocumentKey(*row) for row in found]


def close_ranges(rows: Rows, doc_id: str, generation: int) -> None:
    """The document's row is locked: who saw `open_tasks` at 0 is the one that inserts the finish task."""
    rows.execute(
        f"UPDATE document SET open_tasks = {RANGES_CLOSED} WHERE id = ? AND generation = ? AND open_tasks = 0"
        f" AND run = {int(DocumentRun.RUNNING)}",
        (doc_id, generation),
    )


def flip(rows: Rows, doc_id: str, generation: int, visible_seq: int, keep_ms: int) -> None:
    """Every range is findable: the newest generation becomes the one that is searched, and the document is DONE.

    Where a range failed it is FAIL: a first parse stays searchable as far as it came, a re-parse never flips."""
    found = rows.rows(
        "SELECT tenant_id, kb_id, priority, failed_tasks, active_generation, error_code, error_message"
        f" FROM document WHERE id = ? AND generation = ? AND run = {int(DocumentRun.RUNNING)}",
        (doc_id, generation),
    )
    if not found:
        return
    tenant_id, kb_id, priority, failed, active, code, message = found[0]
    if failed:
        fail(rows, doc_id, generation, code, message, keep_ms)
        return
    transition = DOCUMENT_TRANSITIONS["flip"]
    _count_in_dataset(rows, doc_id)
    rows.execute(
        f"UPDATE document SET {set_state_sql(transition, 'run')}, active_generation = generation, visible_seq = ?,"
        f" chunk_count = run_chunks, token_count = run_tokens, error_code = '', error_message = '',"
        f" end_ms = {rows.now_ms}, update_ms = {rows.now_ms}"
        f" WHERE id = ? AND generation = ? AND {from_states_sql(transition, 'run')}",
        (visible_seq, doc_id, generation),
    )
    record(rows, doc_id, Outcome.DONE)
    if active not in (0, generation):
        mark_stale(rows, DocumentKey(tenant_id, kb_id, doc_id, active, priority))


def fail(rows: Rows, doc_id: str, generation: int, code: str, message: str, keep_ms: int) -> None:
    """The run ends without a flip; what it wrote counts only where it is the generation that is searched. Elsewhere it
    is kept for a while: a replay or another parse may still use it."""
    transition = DOCUMENT_TRANSITIONS["fail"]
    searched = rows.rows(
        f"SELECT active_generation = generation, tenant_id, kb_id, priority FROM document"
        f" WHERE id = ? AND generation = ? AND {from_states_sql(transition, 'run')}",
        (doc_id, generation),
    )
    if not searched:
        return
    counts = ""
    if searched[0][0]:
        _count_in_dataset(rows, doc_id)
        counts = ", chunk_count = run_chunks, token_count = run_tokens"
    else:
        mark_stale(rows, DocumentKey(searched[0][1], searched[0][2], doc_id, generation, searched[0][3]), keep_ms)
    rows.execute(
        f"UPDATE document SET {set_state_sql(transition, 'run')}, error_code = ?, error_message = ?,"
        f" end_ms = {rows.now_ms}, update_ms = {rows.now_ms}{counts}"
        f" WHERE id = ? AND generation = ? AND {from_states_sql(transition, 'run')}",
        (code, message, doc_id, generation),
    )
    record(rows, doc_id, Outcome.FAILED)


def _count_in_dataset(rows: Rows, doc_id: str) -> None:
    """Bring the dataset's counts from the document's old ones to those of the run that ends now."""
    ((kb_id, chunks, tokens),) = rows.rows(
        "SELECT kb_id, run_chunks - chunk_count, run_tokens - token_count FROM document WHERE id = ?",
        (doc_id,),
    )
    dataset_counts.add(rows, kb_id, chunks=chunks, tokens=tokens)
