"""A document as it is shown: its row, with progress and a sentence that follow from its open tasks.

Called within a read: all documents of a page cost a fixed number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from api.db.database import Rows
from api.db.models import Document, Task
from api.db.services.dataset_service import nicknames
from api.db.services.status_text import QUEUE_HORIZON, OpenTask, StatusFacts, progress_of, status_text
from common.task_state import DocumentRun, Priority, TaskState, TaskType
from rag.parser.blocks import Unit


@dataclass(frozen=True)
class DocumentView:
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


def views(rows: Rows, found: Sequence[Document], max_attempts: int) -> list[DocumentView]:
    names = nicknames({row.created_by for row in found})
    running = [row for row in found if row.run == DocumentRun.RUNNING]
    tasks = _open_tasks(running)
    queued = _queued_before([row for row in running if not tasks.get(row.id)])
    bad = _bad_pages([row for row in found if row.failed_pages])
    now_ms = rows.clock()
    return [
        _view(
            row,
            names.get(row.created_by, ""),
            replace(
                _facts(row, tasks.get(row.id, ()), queued.get(row.id), now_ms, max_attempts),
                bad_pages=bad.get(row.id, ()),
            ),
        )
        for row in found
    ]


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


def _open_tasks(documents: Sequence[Document]) -> dict[str, list[OpenTask]]:
    """Running tasks, finish tasks, and waiting ones with an error to tell; not the long tail that just waits."""
    tasks: dict[str, list[OpenTask]] = defaultdict(list)
    if not documents:
        return tasks
    generations = {row.id: row.generation for row in documents}
    telling = (Task.state == TaskState.RUNNING) | (
        (Task.state == TaskState.PENDING) & ((Task.error_code != "") | (Task.task_type == TaskType.FINISH))
    )
    for task in Task.select().where(Task.doc_id.in_(list(generations)) & telling):
        if task.generation == generations[task.doc_id]:
            tasks[task.doc_id].append(_open_task(task))
    return tasks


def _open_task(task: Task) -> OpenTask:
    return OpenTask(
        id=task.id,
        task_type=task.task_type,
        from_page=task.from_page,
        to_page=task.to_page,
        state=TaskState(task.state),
        progress=task.progress,
        stage=task.progress_msg,
        attempt=task.attempt,
        run_after_ms=task.run_after,
        waiting_since_ms=task.waiting_since,
        error_code=task.error_code,
        error_message=task.error_message,
    )


def _queued_before(documents: Sequence[Document]) -> dict[str, int]:
    """How many tasks of the same tenant are taken before a document's first one. Tenants are served in turns, so
    those of others do not stand in front."""
    if not documents:
        return {}
    order = _waiting_order(documents[0].tenant_id)
    places = {doc_id: place for place, doc_id in reversed(list(enumerate(order)))}
    if len(order) < QUEUE_HORIZON:
        return places
    return {row.id: places.get(row.id, QUEUE_HORIZON) for row in documents}


def _waiting_order(tenant_id: str) -> list[str]:
    """Documents of the tenant's waiting tasks in the order in which they are taken, as far as it is looked at: what is
    published already, then lane by lane as the relay goes through its index."""
    waiting = Task.select(Task.doc_id).where((Task.state == TaskState.PENDING) & (Task.tenant_id == tenant_id))
    published = waiting.where(Task.published_at > 0).order_by(Task.published_at)
    lanes = [
        waiting.where((Task.published_at == 0) & (Task.priority == int(priority))).order_by(Task.run_after, Task.id)
        for priority in sorted(Priority, reverse=True)
    ]
    order: list[str] = []
    for query in (published, *lanes):
        if len(order) < QUEUE_HORIZON:
            order += [task.doc_id for task in query.limit(QUEUE_HORIZON - len(order))]
    return order


def _facts(
    row: Document, tasks: Sequence[OpenTask], queued_before: int | None, now_ms: int, max_attempts: int
) -> StatusFacts:
    profile = row.profile or {}
    return StatusFacts(
        run=DocumentRun(row.run),
        is_paused=bool(row.paused),
        is_searchable_run=row.active_generation == row.generation,
        unit=Unit(profile.get("unit", Unit.WHOLE)),
        units=row.run_units,
        reused_tasks=row.reused_tasks,
        done_tasks=row.done_tasks,
        total_tasks=row.total_tasks,
        run_chunks=row.run_chunks,
        chunk_count=row.chunk_count,
        duration_s=max(0, (row.end_ms or now_ms) - row.begin_ms) / 1000 if row.begin_ms else 0.0,
        error_message=row.error_message,
        now_ms=now_ms,
        max_attempts=max_attempts,
        tasks=tasks,
        queued_before=queued_before,
    )


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
    )
