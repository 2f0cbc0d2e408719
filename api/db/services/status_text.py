"""One sentence that says where a document is, made from its row and its open tasks. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from common.task_state import DocumentRun, TaskState, TaskType
from rag.flow.split import range_text
from rag.parser.blocks import Unit

# Beyond this many, the number of tasks in front is not counted any further.
QUEUE_HORIZON = 1000


_BAD_PAGES_NAMED = 3


@dataclass(frozen=True)
class OpenTask:
    """A task of the running generation that has not ended. `stage` is what its executor last said."""

    id: str
    task_type: str
    from_page: int
    to_page: int
    state: TaskState
    progress: float
    stage: str
    attempt: int
    run_after_ms: int
    waiting_since_ms: int
    error_code: str
    error_message: str


@dataclass(frozen=True)
class StatusFacts:
    """What the sentence is made from. `tasks` are the running ones and those that wait with an error; `queued_before`
    is the number of tasks in front of the first one, where none runs."""

    run: DocumentRun
    is_paused: bool
    is_searchable_run: bool
    unit: Unit
    units: int
    done_tasks: int
    total_tasks: int
    run_chunks: int
    chunk_count: int
    duration_s: float
    error_message: str
    now_ms: int
    max_attempts: int
    tasks: Sequence[OpenTask] = ()
    queued_before: int | None = None
    reused_tasks: int = 0
    bad_pages: Sequence[tuple[int, int, str]] = ()


def status_text(facts: StatusFacts) -> str:
    match facts.run:
        case DocumentRun.UNSTART:
            return ""
        case DocumentRun.CANCEL:
            return "stopped by the user"
        case DocumentRun.DONE:
            return _done(facts)
        case DocumentRun.FAIL:
            return _failed(facts)
        case DocumentRun.RUNNING:
            return _running(facts)


def _done(facts: StatusFacts) -> str:
    if not facts.chunk_count and not facts.bad_pages:
        return f"done: no text was found in {_size(facts)}; scanned pages need OCR, which is not available"
    text = f"done: {_count(facts.chunk_count, 'chunk')} from {_size(facts)} in {facts.duration_s:.1f} s"
    if facts.reused_tasks:
        text += f"; {facts.reused_tasks} of {_count(facts.total_tasks, 'task')} reused"
    if not facts.bad_pages:
        return text
    named = "; ".join(
        f"{range_text(facts.unit, first, last)} could not be read: {reason}"
        for first, last, reason in facts.bad_pages[:_BAD_PAGES_NAMED]
    )
    more = len(facts.bad_pages) - _BAD_PAGES_NAMED
    return f"{text}; but {named}" + (f"; and {more} more" if more > 0 else "")


def progress_of(facts: StatusFacts) -> float:
    """0 before and after a stop, 1 when done, -1 when failed; below 1 as long as something is left to do."""
    match facts.run:
        case DocumentRun.DONE:
            return 1.0
        case DocumentRun.FAIL:
            return -1.0
        case DocumentRun.RUNNING if facts.total_tasks:
            part = sum(
                t.progress for t in facts.tasks if t.state == TaskState.RUNNING and t.task_type != TaskType.FINISH
            )
            return round(min((facts.done_tasks + part) / facts.total_tasks, 0.99), 4)
        case _:
            return 0.0


def _failed(facts: StatusFacts) -> str:
    if facts.is_searchable_run and facts.chunk_count:
        found = _count(facts.chunk_count, "chunk")
        return f"failed: {facts.error_message}; {found} of the rest can be found"
    return f"failed: {facts.error_message}"


def _running(facts: StatusFacts) -> str:
    running = [t for t in facts.tasks if t.state == TaskState.RUNNING]
    if running:
        return _at_work(facts, min(running, key=lambda t: (t.from_page, t.id)))
    if facts.is_paused:
        return f"paused; {_tasks_done(facts)}"
    if any(t.task_type == TaskType.FINISH for t in facts.tasks):
        return "making its chunks findable"
    troubled = [t for t in facts.tasks if t.error_code]
    if troubled:
        return _waiting_after_error(facts, min(troubled, key=lambda t: (t.run_after_ms, t.id)))
    return _queued(facts)


def _at_work(facts: StatusFacts, task: OpenTask) -> str:
    if task.task_type == TaskType.FINISH:
        return "making its chunks findable"
    if task.task_type == TaskType.PREPARE:
        return f"reading the file: {task.stage or 'starting'}"
    what = range_text(facts.unit, task.from_page, task.to_page)
    return f"reading {what}: {task.stage or 'starting'}; {_tasks_done(facts)}"


def _waiting_after_error(facts: StatusFacts, task: OpenTask) -> str:
    wait_s = max(0, -(-(task.run_after_ms - facts.now_ms) // 1000))
    when = f"starts in {wait_s} s" if wait_s else "is queued"
    if task.waiting_since_ms:
        again = f"the next try {when}"
        return f"waiting for a part of the system to come back, {again}: {task.error_message}"
    if task.attempt:
        return f"attempt {task.attempt + 1} of {facts.max_attempts} {when}: {task.error_message}"
    return f"queued again: {task.error_message}"


def _queued(facts: StatusFacts) -> str:
    before = facts.queued_before
    if before is None:
        return f"waiting; {_tasks_done(facts)}"
    if before >= QUEUE_HORIZON:
        return f"waiting: {QUEUE_HORIZON} tasks or more are queued before it"
    if before:
        return f"waiting: {_count(before, 'task')} {'is' if before == 1 else 'are'} queued before it"
    return "waiting: it is the next in the queue"


def _tasks_done(facts: StatusFacts) -> str:
    return f"{facts.done_tasks} of {_count(facts.total_tasks, 'task')} done"


def _size(facts: StatusFacts) -> str:
    return "the file" if facts.unit is Unit.WHOLE else _count(facts.units, facts.unit.value)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
