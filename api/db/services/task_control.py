"""Transitions of a document's tasks that people ask for: cancel, pause, resume, replay. Called inside a write
transaction, with the document's row locked."""

from __future__ import annotations

from api.db.database import Rows
from api.db.services import tally_service, task_sql
from api.db.services.tally_service import Tally
from api.db.services.task_sql import DocumentKey
from common.task_state import TASK_TRANSITIONS, TaskState, from_states_sql, set_state_sql


def cancel_open_tasks(rows: Rows, doc_id: str, keep_ms: int) -> list[str]:
    """End every open task of a document. What its newest generation wrote is stale, and swept after `keep_ms`.

    Returns the ids of those that were at work: their executors must hear of it."""
    transition = TASK_TRANSITIONS["cancel"]
    # Locked: claims that are under way have committed then, or get nothing.
    found = rows.rows(
        f"SELECT id, state FROM task WHERE doc_id = ? AND +{from_states_sql(transition)}{rows.for_update}", (doc_id,)
    )
    running = [task_id for task_id, state in found if state == TaskState.RUNNING]
    at_work = task_sql.lock_tasks(rows, running) if running else {}
    rows.execute(
        f"UPDATE task SET {set_state_sql(transition)}, end_at = {rows.now_ms}, lease_until = 0"
        f" WHERE doc_id = ? AND +{from_states_sql(transition)}",
        (doc_id,),
    )
    task_sql.add_events(rows, [task.event("cancel", message="stopped by the user") for task in at_work.values()])
    tally_service.add(rows, Tally(cancelled=len(found)))
    mark_newest_stale(rows, doc_id, keep_ms)
    return list(at_work)


def mark_newest_stale(rows: Rows, doc_id: str, keep_ms: int) -> None:
    """The newest generation is never answered any more."""
    found = rows.rows("SELECT tenant_id, kb_id, id, generation, priority FROM document WHERE id = ?", (doc_id,))
    task_sql.mark_stale(rows, DocumentKey(*found[0]), keep_ms)


def pause_if_paused(rows: Rows, doc_id: str) -> None:
    """Tasks that begin to wait while their document is paused wait with it."""
    transition = TASK_TRANSITIONS["pause"]
    rows.execute(
        f"UPDATE task SET {set_state_sql(transition)} WHERE doc_id = ? AND +{from_states_sql(transition)}"
        " AND EXISTS (SELECT 1 FROM document WHERE id = ? AND paused = 1)",
        (doc_id, doc_id),
    )


def move_tasks(rows: Rows, doc_id: str, name: str) -> int:
    """Pause or resume: every task of the document that may make the transition makes it. Returns how many."""
    transition = TASK_TRANSITIONS[name]
    moved = rows.execute(
        f"UPDATE task SET {set_state_sql(transition)}, published_at = 0"
        f" WHERE doc_id = ? AND +{from_states_sql(transition)}",
        (doc_id,),
    )
    return int(moved.rowcount)
