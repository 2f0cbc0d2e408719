"""What is known of documents when their status is told: each row, its open tasks, and its place in the queue.

Called within a read: any number of documents costs a fixed number of queries a tenant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from api.db.database import Rows
from api.db.models import Document, Task
from api.db.services.status_facts import Loss, OpenTask, StatusFacts
from api.db.services.task_service import EXECUTOR_LOST, executor_name
from api.db.services.task_speed import Speed, now_and_lead, recently_ended, speed_of, tasks_at_work
from api.db.services.task_sql import marks
from api.db.services.waiting_line import Line, left_s, line_of, waiting_tasks
from common.task_state import DocumentRun, TaskState, TaskType
from rag.parser.blocks import Unit

_PATIENCE_MS = 3000
# In the order of OpenTask's fields.
_OPEN_COLUMNS = (
    "t.doc_id, t.id, t.task_type, t.from_page, t.to_page, t.state, t.progress, t.progress_msg, t.attempt, t.run_after,"
    " t.waiting_since, t.owner, t.begin_at, t.lease_until, t.claim_no, t.error_code, t.error_message"
)


@dataclass(frozen=True)
class _Queue:
    """What all documents of a page share: who is at work, how fast, and the line of those that wait."""

    now_ms: int
    speed: Speed | None
    line: Line
    is_executor_there: bool


def facts_of(rows: Rows, found: Sequence[Document], max_attempts: int) -> Mapping[str, StatusFacts]:
    """By the documents' ids; they may be of several tenants."""
    by_tenant: dict[str, list[Document]] = defaultdict(list)
    for row in found:
        by_tenant[row.tenant_id].append(row)
    bad = _bad_pages([row for row in found if row.failed_pages])
    facts: dict[str, StatusFacts] = {}
    for documents in by_tenant.values():
        running = [row for row in documents if row.run == DocumentRun.RUNNING]
        tasks, queue = _open_tasks(rows, running), _queue(rows, running)
        for row in documents:
            known = _facts(row, tasks.get(row.id, ()), queue, max_attempts)
            facts[row.id] = replace(known, bad_pages=bad.get(row.id, ()))
    return facts


def _queue(rows: Rows, running: Sequence[Document]) -> _Queue:
    now_ms, is_led = now_and_lead(rows)
    if not running:
        return _Queue(now_ms, None, line_of((), None, ()), is_executor_there=True)
    tenant_id = running[0].tenant_id
    at_work = tasks_at_work(rows, now_ms)
    speed = speed_of(recently_ended(rows, now_ms), at_work, tenant_id)
    line = line_of(waiting_tasks(rows, tenant_id), speed, {row.id for row in running})
    return _Queue(now_ms, speed, line, is_executor_there=bool(at_work) or is_led)


def _bad_pages(documents: Sequence[Document]) -> dict[str, list[tuple[int, int, str]]]:
    """(first, last, reason) of the pages of each document's newest parse that could not be read."""
    bad: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    if not documents:
        return bad
    generations = {row.id: row.generation for row in documents}
    which = Task.doc_id.in_(list(generations)) & Task.failed_pages.is_null(False)
    for task in Task.select(Task.doc_id, Task.generation, Task.failed_pages).where(which).order_by(Task.from_page):
        if task.generation == generations[task.doc_id]:
            bad[task.doc_id] += [(page["first"], page["last"], page["reason"]) for page in task.failed_pages]
    return bad


def _open_tasks(rows: Rows, documents: Sequence[Document]) -> dict[str, list[OpenTask]]:
    """Running tasks, finish tasks, and waiting ones with an error to tell; not the long tail that just waits."""
    tasks: dict[str, list[OpenTask]] = defaultdict(list)
    if not documents:
        return tasks
    ids = [row.id for row in documents]
    # `+state` is no reason for SQLite to walk the whole queue instead of the named documents.
    found = rows.rows(
        f"SELECT {_OPEN_COLUMNS} FROM document d JOIN task t ON t.doc_id = d.id AND t.generation = d.generation"
        f" WHERE d.id IN ({marks(ids)}) AND (+t.state = {int(TaskState.RUNNING)}"
        f" OR +t.state = {int(TaskState.PENDING)} AND (t.error_code != '' OR t.task_type = ?))",
        (*ids, str(TaskType.FINISH)),
    )
    losses = _losses(rows, [task_id for _, task_id, *_, code, _ in found if code == EXECUTOR_LOST])
    for doc_id, *values in found:
        tasks[doc_id].append(_open_task(values, losses))
    return tasks


def _open_task(values: Sequence[Any], losses: Mapping[str, Loss]) -> OpenTask:
    task = OpenTask(*values)
    return replace(
        task,
        state=TaskState(task.state),
        executor=executor_name(task.executor),
        loss=losses.get(task.id) if task.error_code == EXECUTOR_LOST else None,
    )


def _losses(rows: Rows, task_ids: Sequence[str]) -> dict[str, Loss]:
    """The newest loss of an executor that each of the tasks suffered."""
    if not task_ids:
        return {}
    found = rows.rows(
        f"SELECT task_id, owner, at_ms FROM task_event WHERE task_id IN ({marks(task_ids)})"
        " AND kind = 'lose' AND error_code = ? ORDER BY id",
        (*task_ids, EXECUTOR_LOST),
    )
    return {task_id: Loss(executor_name(owner), at_ms) for task_id, owner, at_ms in found}


def _facts(row: Document, tasks: Sequence[OpenTask], queue: _Queue, max_attempts: int) -> StatusFacts:
    profile = row.profile or {}
    now_ms = queue.now_ms
    place = queue.line.place_of(row.id)
    at_work = [t for t in tasks if t.state == TaskState.RUNNING and t.task_type != TaskType.FINISH]
    return StatusFacts(
        run=DocumentRun(row.run),
        is_paused=bool(row.paused),
        is_searchable_run=row.active_generation == row.generation,
        unit=Unit(profile.get("unit", Unit.WHOLE)),
        units=row.run_units,
        reused_tasks=row.reused_tasks,
        done_tasks=row.done_tasks,
        failed_tasks=row.failed_tasks,
        total_tasks=row.total_tasks,
        run_chunks=row.run_chunks,
        chunk_count=row.chunk_count,
        former_chunks=row.chunk_count if row.active_generation not in (0, row.generation) else 0,
        duration_s=max(0, (row.end_ms or now_ms) - row.begin_ms) / 1000 if row.begin_ms else 0.0,
        error_code=row.error_code,
        error_message=row.error_message,
        now_ms=now_ms,
        max_attempts=max_attempts,
        tasks=tasks,
        queued_before=place.ahead if place else None,
        queued_s=place.ahead_s if place else None,
        # Before the file has been looked at, nobody knows how many ranges it has.
        left_s=left_s(row.open_tasks, at_work, place, queue.speed, now_ms) if profile or at_work else None,
        # A document that was just started waits a moment for executors that are just starting too.
        is_executor_there=queue.is_executor_there or now_ms - row.begin_ms < _PATIENCE_MS,
    )
