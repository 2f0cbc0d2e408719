"""What is said of a document that is on its way: at work, waiting for its turn, after an error, after the loss of an
executor, paused. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from api.db.services.spoken import about_text, clock_text, count_text
from api.db.services.status_facts import QUEUE_HORIZON, OpenTask, StatusFacts
from common.task_state import TaskState, TaskType
from rag.flow.split import range_text
from rag.parser.blocks import Unit

_FINDABLE = "making its chunks findable"
_NOBODY = "no executor is running: start one with `pagemill up` or `pagemill executor`"
_EXECUTORS_NAMED = 3


def running_text(facts: StatusFacts) -> str:
    running = [t for t in facts.tasks if t.state == TaskState.RUNNING]
    if facts.is_paused:
        return _paused(facts, running)
    if not facts.is_executor_there:
        return f"{_NOBODY}; {tasks_done(facts)}"
    if any(t.loss for t in facts.tasks):
        return f"{_lost(facts)}; {_tasks_left(facts)}"
    held = [t for t in running if t.lease_until_ms >= facts.now_ms]
    troubled = [t for t in facts.tasks if t.state == TaskState.PENDING and t.error_code]
    if held:
        return _at_work(facts, _first(held)) + _beside(facts, troubled)
    if running:
        return _unheard(facts, _first(running))
    if troubled:
        return _after_error(facts, _soonest(troubled))
    finishing = [t for t in facts.tasks if t.task_type == TaskType.FINISH]
    return _findable_soon(facts, finishing[0]) if finishing else _queued(facts)


def tasks_done(facts: StatusFacts) -> str:
    text = f"{facts.done_tasks} of {count_text(facts.total_tasks, 'task')} done"
    return f"{text}, {facts.failed_tasks} failed ({facts.error_message})" if facts.failed_tasks else text


def _paused(facts: StatusFacts, running: Sequence[OpenTask]) -> str:
    if running:
        return f"paused: what is at work ends, the rest waits until it is resumed; {_at_work(facts, _first(running))}"
    return f"paused by the user until it is resumed; {tasks_done(facts)}"


def _at_work(facts: StatusFacts, task: OpenTask) -> str:
    if task.task_type == TaskType.FINISH:
        return _FINDABLE
    stage = task.stage or "starting"
    if task.attempt:
        stage += f", attempt {task.attempt + 1} of {facts.max_attempts}"
    if task.task_type == TaskType.PREPARE:
        return f"reading the file: {stage}{_left(facts)}"
    return f"reading {_what(facts, task)}: {stage}; {_tasks_left(facts)}"


def _beside(facts: StatusFacts, troubled: Sequence[OpenTask]) -> str:
    """What waits with an error while others are at work."""
    if not troubled:
        return ""
    task = _soonest(troubled)
    return f"; {_what(facts, task)}: {_after_error(facts, task)}"


def _lost(facts: StatusFacts) -> str:
    """The newest loss, and what became of the tasks that it hit."""
    newest = max((t.loss for t in facts.tasks if t.loss), key=lambda loss: loss.at_ms)
    hit = [t for t in facts.tasks if t.loss and t.loss.executor == newest.executor]
    again = [t for t in hit if t.state == TaskState.RUNNING]
    waiting = [t for t in hit if t.state != TaskState.RUNNING]
    text = f"executor {newest.executor} was lost at {clock_text(newest.at_ms, facts.now_ms)}; "
    if not again:
        verb = "wait" if len(waiting) > 1 or _is_many(facts, waiting[0]) else "waits"
        return f"{text}{_all(facts, waiting)} {verb} to be started again"
    text += f"{_all(facts, again)} started again on {_executors(again)}"
    return f"{text}, {len(waiting)} more not yet" if waiting else text


def _unheard(facts: StatusFacts, task: OpenTask) -> str:
    """Its lease is over, and nobody has taken it back yet."""
    start = "start" if _is_many(facts, task) else "starts"
    return (
        f"executor {task.executor} is not heard of, its lease ended at {clock_text(task.lease_until_ms, facts.now_ms)};"
        f" {_what(facts, task)} {start} again on another; {_tasks_left(facts)}"
    )


def _after_error(facts: StatusFacts, task: OpenTask) -> str:
    if task.waiting_since_ms:
        since = clock_text(task.waiting_since_ms, facts.now_ms)
        return f"waiting since {since}: {task.error_message}; {_when(facts, task, 'the next try')}"
    what = f"attempt {task.attempt + 1} of {facts.max_attempts}" if task.attempt else "a new start"
    return f"{_when(facts, task, what)}: {task.error_message}"


def _findable_soon(facts: StatusFacts, task: OpenTask) -> str:
    if not task.claim_no:
        return _FINDABLE
    return f"{_FINDABLE}: the index has not taken in the last of them yet; {_when(facts, task, 'the next look')}"


def _when(facts: StatusFacts, task: OpenTask, what: str) -> str:
    wait_s = -(-(task.run_after_ms - facts.now_ms) // 1000)
    return f"{what} in {wait_s} s" if wait_s > 0 else f"{what} is queued"


def _queued(facts: StatusFacts) -> str:
    before, done = facts.queued_before, tasks_done(facts)
    if before is None:
        return f"waiting; {done}"
    parts = [f"waiting: {_ahead(before)}"]
    if before and facts.queued_s is not None:
        parts[0] += f", {'more than' if before >= QUEUE_HORIZON else 'about'} {about_text(facts.queued_s)}"
    if facts.done_tasks or facts.failed_tasks:
        parts.append(done)
    return "; ".join(parts)


def _ahead(before: int) -> str:
    if not before:
        return "it is the next in the queue"
    if before == 1:
        return "1 task of another document is ahead"
    number = f"{QUEUE_HORIZON} tasks or more" if before >= QUEUE_HORIZON else f"{before} tasks"
    return f"{number} of other documents are ahead"


def _tasks_left(facts: StatusFacts) -> str:
    return f"{tasks_done(facts)}{_left(facts)}"


def _left(facts: StatusFacts) -> str:
    """What ends within the second is not worth a word."""
    return f", about {about_text(facts.left_s)} left" if facts.left_s is not None and facts.left_s >= 1 else ""


def _what(facts: StatusFacts, task: OpenTask) -> str:
    if task.task_type == TaskType.FINISH:
        return "the last step"
    return range_text(_unit(facts, task), task.from_page, task.to_page)


def _all(facts: StatusFacts, tasks: Sequence[OpenTask]) -> str:
    more = len(tasks) - 1
    return _what(facts, _first(tasks)) + (f" and {count_text(more, 'more range')}" if more else "")


def _is_many(facts: StatusFacts, task: OpenTask) -> bool:
    return _unit(facts, task) is not Unit.WHOLE and task.to_page - task.from_page > 1


def _unit(facts: StatusFacts, task: OpenTask) -> Unit:
    return facts.unit if task.task_type == TaskType.RANGE else Unit.WHOLE


def _executors(tasks: Sequence[OpenTask]) -> str:
    names = sorted({t.executor for t in tasks})
    return ", ".join(names) if len(names) <= _EXECUTORS_NAMED else f"{len(names)} others"


def _first(tasks: Sequence[OpenTask]) -> OpenTask:
    return min(tasks, key=lambda t: (t.from_page, t.id))


def _soonest(tasks: Sequence[OpenTask]) -> OpenTask:
    return min(tasks, key=lambda t: (t.run_after_ms, t.id))
