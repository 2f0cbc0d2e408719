"""The timeline of a document's newest parse, read from the rows of its tasks and their events.

Everything is found by the document's or the tasks' ids. The strip and the sums take one short row a task; tasks with
their attempts are read a page at a time."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.db.database import Rows
from api.db.models import Document
from api.db.services.task_service import executor_name
from api.db.services.task_sql import marks
from api.db.services.timeline_views import (
    EventLine,
    ShownState,
    Span,
    Timeline,
    TimelineTask,
    UnreadPages,
    attempts_of,
    merged,
    shown_state,
)
from common.errors import NotFound
from common.settings import TaskSettings
from common.task_state import DocumentRun, TaskState, TaskType
from rag.parser.blocks import Unit

_MOST_UNREAD = 500
_MOST_STAGES = 20_000
_ORDER = f"CASE task_type WHEN '{TaskType.PREPARE}' THEN 0 WHEN '{TaskType.RANGE}' THEN 1 ELSE 2 END, from_page, id"
_COLUMNS = (
    "id, task_type, from_page, to_page, state, reused, failed_pages, progress_msg, progress, attempt, losses, owner,"
    " create_ms, begin_at, end_at, run_after, chunk_count, error_code, error_message, claim_no"
)
_CONDITIONS = {
    ShownState.WAITING: f"state = {int(TaskState.PENDING)}",
    ShownState.RUNNING: f"state = {int(TaskState.RUNNING)}",
    ShownState.PAUSED: f"state = {int(TaskState.PAUSED)}",
    ShownState.CANCELLED: f"state = {int(TaskState.CANCEL)}",
    ShownState.DONE: f"state = {int(TaskState.DONE)} AND failed_pages IS NULL AND reused = 0",
    ShownState.REUSED: f"state = {int(TaskState.DONE)} AND failed_pages IS NULL AND reused = 1",
    ShownState.PARTIAL: f"state = {int(TaskState.DONE)} AND failed_pages IS NOT NULL",
    ShownState.FAILED: f"state = {int(TaskState.FAIL)}",
}


@dataclass(frozen=True)
class TaskFilter:
    """`at` asks for the tasks that read this unit, counted from 0."""

    offset: int = 0
    limit: int = 50
    state: ShownState | None = None
    at: int | None = None


class TimelineService:
    def __init__(self, rows: Rows, settings: TaskSettings) -> None:
        self._rows = rows
        self._max_attempts = settings.max_attempts

    def get(self, tenant_id: str, document_id: str, wanted: TaskFilter) -> Timeline:
        """Raises NotFound for one that is not there, or another's."""
        return self._rows.read(self._get, tenant_id, document_id, wanted)

    def _get(self, tenant_id: str, document_id: str, wanted: TaskFilter) -> Timeline:
        row = Document.get_or_none(
            (Document.id == document_id) & (Document.tenant_id == tenant_id) & (Document.deleted_ms == 0)
        )
        if row is None:
            raise NotFound(f"document {document_id} not found")
        profile = row.profile or {}
        spans, counts = self._strip(row, int(profile.get("units", 0)))
        matching, tasks = self._tasks(row, wanted)
        return Timeline(
            document_id=row.id,
            generation=row.generation,
            is_searched=row.active_generation == row.generation,
            unit=Unit(profile.get("unit", Unit.WHOLE)),
            units=int(profile.get("units", 0)),
            now_ms=self._rows.clock(),
            max_attempts=self._max_attempts,
            spans=spans,
            counts=counts,
            matching=matching,
            tasks=tasks,
            unread=self._unread(row) if row.failed_pages else (),
            stages=self._stages(row),
            is_unchanged=row.run == DocumentRun.DONE and bool(row.total_tasks) and row.begin_ms == row.end_ms,
        )

    def _strip(self, row: Document, units: int) -> tuple[list[Span], Counter[ShownState]]:
        """Of the ranges. A file of one range is read by the task that looked at it, which then stands for all."""
        found = self._rows.rows(
            "SELECT task_type, from_page, to_page, state, reused, failed_pages IS NOT NULL FROM task"
            f" WHERE doc_id = ? AND generation = ? AND task_type != '{TaskType.FINISH}' ORDER BY from_page",
            (row.id, row.generation),
        )
        ranges = [one for one in found if one[0] == TaskType.RANGE]
        spans = [
            Span(first, end if kind == TaskType.RANGE else max(1, units), _state(state, reused, partial))
            for kind, first, end, state, reused, partial in ranges or found
        ]
        return merged(spans), Counter(span.state for span in spans)

    def _tasks(self, row: Document, wanted: TaskFilter) -> tuple[int, list[TimelineTask]]:
        conditions: list[str] = ["doc_id = ?", "generation = ?"]
        params: list[object] = [row.id, row.generation]
        if wanted.state is not None:
            conditions.append(_CONDITIONS[wanted.state].replace("state =", "+state ="))
        if wanted.at is not None:
            conditions.append(f"(task_type = '{TaskType.PREPARE}' OR (from_page <= ? AND to_page > ?))")
            params += [wanted.at, wanted.at]
        where = " AND ".join(conditions)
        ((matching,),) = self._rows.rows(f"SELECT COUNT(*) FROM task WHERE {where}", params)
        found = self._rows.rows(
            f"SELECT {_COLUMNS} FROM task WHERE {where} ORDER BY {_ORDER} LIMIT ? OFFSET ?",
            (*params, wanted.limit, wanted.offset),
        )
        lines = self._lines([task[0] for task in found])
        return int(matching), [_task(values, lines.get(values[0], ())) for values in found]

    def _lines(self, task_ids: Sequence[str]) -> Mapping[str, Sequence[EventLine]]:
        lines: dict[str, list[EventLine]] = defaultdict(list)
        if not task_ids:
            return lines
        found = self._rows.rows(
            "SELECT task_id, at_ms, kind, claim_no, owner, error_code, message, detail FROM task_event"
            f" WHERE task_id IN ({marks(task_ids)}) ORDER BY id",
            task_ids,
        )
        for task_id, at_ms, kind, claim_no, owner, code, message, detail in found:
            stages = json.loads(detail) if detail else {}
            lines[task_id].append(
                EventLine(task_id, at_ms, kind, claim_no, executor_name(owner), code, message, stages)
            )
        return lines

    def _unread(self, row: Document) -> list[UnreadPages]:
        found = self._rows.rows(
            "SELECT failed_pages FROM task WHERE doc_id = ? AND generation = ? AND failed_pages IS NOT NULL"
            f" ORDER BY from_page LIMIT {_MOST_UNREAD}",
            (row.id, row.generation),
        )
        return [page for (pages,) in found for page in _unread_pages(pages)][:_MOST_UNREAD]

    def _stages(self, row: Document) -> dict[str, float]:
        """Seconds by stage, of the attempts that came to an end."""
        found = self._rows.rows(
            "SELECT detail FROM task_event WHERE doc_id = ? AND generation = ? AND detail IS NOT NULL"
            f" ORDER BY id DESC LIMIT {_MOST_STAGES}",
            (row.id, row.generation),
        )
        total: Counter[str] = Counter()
        for (detail,) in found:
            total.update(json.loads(detail))
        return {stage: round(seconds, 3) for stage, seconds in total.items()}


def _state(state: int, reused: int, is_partial: int) -> ShownState:
    return shown_state(state, reused=bool(reused), is_partial=bool(is_partial))


def _task(values: Sequence[Any], lines: Sequence[EventLine]) -> TimelineTask:
    id_, kind, first, end, state, reused, failed, stage, progress, *rest = values
    attempt, losses, owner, created, begun, ended, due, chunks, code, message, claim_no = rest
    return TimelineTask(
        id=id_,
        task_type=TaskType(kind),
        first=first,
        end=end,
        state=_state(state, reused, failed is not None),
        stage=stage,
        progress=progress,
        attempt=attempt,
        losses=losses,
        executor=executor_name(owner),
        created_ms=created,
        started_ms=begun,
        ended_ms=ended,
        due_ms=due if state == TaskState.PENDING else 0,
        chunk_count=chunks,
        error_code=code,
        error_message=message,
        unread=tuple(_unread_pages(failed)) if failed else (),
        attempts=attempts_of(lines, claim_no, is_running=state == TaskState.RUNNING),
    )


def _unread_pages(failed_pages: str) -> list[UnreadPages]:
    return [UnreadPages(page["first"], page["last"], page["code"], page["reason"]) for page in json.loads(failed_pages)]
