"""How the newest parse of a document went, as it is shown: the strip of its ranges, its tasks and their attempts.
Data only, and the pure steps from rows to it; the rows are read by timeline_service.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from common.task_state import TaskState, TaskType
from rag.parser.blocks import Unit

# A strip has no more pieces than a wide screen can show apart.
MOST_SPANS = 600
MOST_ATTEMPTS = 20


class ShownState(StrEnum):
    """`partial`: done, but for pages that could not be read."""

    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    DONE = "done"
    REUSED = "reused"
    PARTIAL = "partial"
    FAILED = "failed"


_SHOWN = {
    TaskState.PENDING: ShownState.WAITING,
    TaskState.RUNNING: ShownState.RUNNING,
    TaskState.PAUSED: ShownState.PAUSED,
    TaskState.CANCEL: ShownState.CANCELLED,
    TaskState.FAIL: ShownState.FAILED,
}
# Of ranges that share a piece of the strip, the state that must not be overlooked is shown.
_URGENCY = (
    ShownState.REUSED,
    ShownState.DONE,
    ShownState.CANCELLED,
    ShownState.WAITING,
    ShownState.PAUSED,
    ShownState.RUNNING,
    ShownState.PARTIAL,
    ShownState.FAILED,
)
# What an attempt came to, by the event that ended it.
_OUTCOMES = {
    "done": "done",
    "prepared": "done",
    "retry": "retried",
    "wait": "waited",
    "drain": "handed back",
    "lose": "lost",
    "fail": "failed",
    "cancel": "stopped",
}


@dataclass(frozen=True)
class Span:
    """Neighbouring ranges in the same state: units [first, end), counted from 0, and how many tasks they are."""

    first: int
    end: int
    state: ShownState
    tasks: int = 1


@dataclass(frozen=True)
class EventLine:
    task_id: str
    at_ms: int
    kind: str
    claim_no: int
    executor: str
    error_code: str
    message: str
    stages: Mapping[str, float]


@dataclass(frozen=True)
class Attempt:
    """A claim of a task, from its start to what became of it; while it lasts, `ended_ms` is 0 and it is "running"."""

    number: int
    executor: str
    started_ms: int
    ended_ms: int
    outcome: str
    error_code: str
    message: str
    stages: Mapping[str, float]


@dataclass(frozen=True)
class UnreadPages:
    """Units [first, end), counted from 0, that could not be read, and why."""

    first: int
    end: int
    code: str
    reason: str


@dataclass(frozen=True)
class TimelineTask:
    id: str
    task_type: TaskType
    first: int
    end: int
    state: ShownState
    stage: str
    progress: float
    attempt: int
    losses: int
    executor: str
    created_ms: int
    started_ms: int
    ended_ms: int
    due_ms: int
    chunk_count: int
    error_code: str
    error_message: str
    unread: tuple[UnreadPages, ...]
    attempts: tuple[Attempt, ...] = ()


@dataclass(frozen=True)
class Timeline:
    """`units` is how many the file has, `counts` are of the ranges, `matching` is how many tasks the filter left, and
    `stages` the seconds of all tasks by stage. `is_unchanged`: the last parse found nothing to do."""

    document_id: str
    generation: int
    is_searched: bool
    unit: Unit
    units: int
    now_ms: int
    max_attempts: int
    spans: Sequence[Span]
    counts: Mapping[ShownState, int]
    matching: int
    tasks: Sequence[TimelineTask]
    unread: Sequence[UnreadPages]
    stages: Mapping[str, float] = field(default_factory=dict)
    is_unchanged: bool = False


def shown_state(state: int, *, reused: bool, is_partial: bool) -> ShownState:
    if state != TaskState.DONE:
        return _SHOWN[TaskState(state)]
    if is_partial:
        return ShownState.PARTIAL
    return ShownState.REUSED if reused else ShownState.DONE


def merged(spans: Sequence[Span], most: int = MOST_SPANS) -> list[Span]:
    """Neighbours in the same state as one; where they are still too many, as many as are shown, each in the most urgent
    state of those that it stands for."""
    joined: list[Span] = []
    for span in spans:
        last = joined[-1] if joined else None
        if last is not None and last.state is span.state and last.end == span.first:
            joined[-1] = replace(last, end=span.end, tasks=last.tasks + span.tasks)
        else:
            joined.append(span)
    if len(joined) <= most:
        return joined
    size = -(-len(joined) // most)
    return [_together(joined[start : start + size]) for start in range(0, len(joined), size)]


def _together(spans: Sequence[Span]) -> Span:
    worst = max(spans, key=lambda span: _URGENCY.index(span.state)).state
    return Span(spans[0].first, spans[-1].end, worst, sum(span.tasks for span in spans))


def attempts_of(lines: Sequence[EventLine], current_claim: int, *, is_running: bool) -> tuple[Attempt, ...]:
    """Of one task, from its lines in order: the newest ones. A claim that ended without a word, since there was nothing
    to do yet, is left out."""
    begun: dict[int, EventLine] = {}
    found: dict[int, Attempt] = {}
    for line in lines:
        if line.kind == "claim":
            begun[line.claim_no] = line
        elif line.kind in _OUTCOMES and line.claim_no in begun:
            found[line.claim_no] = _attempt(begun[line.claim_no], line)
    if is_running and current_claim in begun:
        found[current_claim] = _attempt(begun[current_claim], None)
    return tuple(found[number] for number in sorted(found))[-MOST_ATTEMPTS:]


def _attempt(start: EventLine, end: EventLine | None) -> Attempt:
    if end is None:
        return Attempt(start.claim_no, start.executor, start.at_ms, 0, "running", "", "", {})
    outcome = _OUTCOMES[end.kind]
    return Attempt(
        start.claim_no, start.executor, start.at_ms, end.at_ms, outcome, end.error_code, end.message, end.stages
    )
