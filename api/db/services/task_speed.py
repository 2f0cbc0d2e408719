"""How fast tasks end, by the rows alone: how long those of late took, and how many are at work at once.

Read from the newest lines of the timeline and from the running tasks: what it costs does not grow with the backlog."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from api.db.database import Rows
from common.task_state import TaskState, TaskType

_NEWEST_EVENTS = 256
_RECENT_MS = 600_000
# Shorter tasks come and go between two looks: how many run at one moment says little of them.
_STEADY_MS = 1000
# The role that some executor always holds, and how long it may take one to take it over from another.
_RELAY_ROLE = "relay"
_TAKE_OVER_MS = 3000


class Ended(NamedTuple):
    """A task that is done."""

    tenant_id: str
    task_type: str
    begin_ms: int
    end_ms: int


class AtWork(NamedTuple):
    """The running tasks of a tenant: how many, and for how long in all."""

    tasks: int
    elapsed_ms: int


@dataclass(frozen=True)
class Speed:
    """Seconds that a task of each kind takes, and how many are done at the same time."""

    seconds: Mapping[str, float]
    parallel: float

    def share_s(self, task_type: str) -> float | None:
        """By how much one more such task in front makes those behind it wait; None where none was measured."""
        if task_type == TaskType.FINISH:
            return 0.0  # it only waits, and holds no slot
        takes_s = self.seconds.get(task_type)
        if takes_s is None and task_type == TaskType.PREPARE:
            takes_s = self.seconds.get(TaskType.RANGE)  # a look at the file is not longer than reading a part of it
        return None if takes_s is None else takes_s / self.parallel


def speed_of(ended: Sequence[Ended], at_work: Mapping[str, AtWork], tenant_id: str) -> Speed | None:
    """By the tenant's own tasks, which show its share of the executors; else by everybody's, shared with those that are
    at work. None where nothing ended of late."""
    own = [task for task in ended if task.tenant_id == tenant_id]
    if own:
        return _speed(own, at_work.get(tenant_id, AtWork(0, 0)), 1)
    if not ended:
        return None
    everybody = AtWork(sum(a.tasks for a in at_work.values()), sum(a.elapsed_ms for a in at_work.values()))
    return _speed(ended, everybody, len(at_work.keys() | {tenant_id}))


def recently_ended(rows: Rows, now_ms: int) -> list[Ended]:
    found = rows.rows(
        "SELECT t.tenant_id, t.task_type, t.begin_at, t.end_at FROM"
        f" (SELECT task_id, kind, at_ms FROM task_event ORDER BY id DESC LIMIT {_NEWEST_EVENTS}) e"
        " JOIN task t ON t.id = e.task_id"
        " WHERE e.kind IN ('done', 'prepared') AND e.at_ms >= ? AND t.task_type != ?",
        (now_ms - _RECENT_MS, str(TaskType.FINISH)),
    )
    return [Ended(*row) for row in found]


def tasks_at_work(rows: Rows, now_ms: int) -> dict[str, AtWork]:
    """By tenant. A task whose lease is over is nobody's work."""
    found = rows.rows(
        f"SELECT tenant_id, COUNT(*), SUM(? - begin_at) FROM task WHERE state = {int(TaskState.RUNNING)}"
        " AND lease_until >= ? AND task_type != ? GROUP BY tenant_id",
        (now_ms, now_ms, str(TaskType.FINISH)),
    )
    return {str(tenant_id): AtWork(int(count), max(0, int(elapsed_ms))) for tenant_id, count, elapsed_ms in found}


def now_and_lead(rows: Rows) -> tuple[int, bool]:
    """What time it is for the database, and whether any executor is there: one of them leads the relay."""
    led_until = "(SELECT until_ms FROM lease WHERE name = ?)"
    ((now_ms, until_ms),) = rows.rows(f"SELECT {rows.now_ms}, {led_until}", (_RELAY_ROLE,))
    return int(now_ms), (until_ms or 0) >= now_ms - _TAKE_OVER_MS


def _speed(ended: Sequence[Ended], at_work: AtWork, tenants: int) -> Speed:
    """The time of those at work counts too: else the first ones to end would be taken for the usual ones."""
    took: dict[str, list[int]] = defaultdict(list)
    for task in ended:
        took[task.task_type].append(max(1, task.end_ms - task.begin_ms))
    ended_ms = sum(sum(some) for some in took.values())
    parallel = ended_ms / _busy_ms(ended)
    if at_work.tasks and ended_ms >= _STEADY_MS * len(ended):
        # Not more than are there now: executors may have gone.
        parallel = min(parallel, at_work.tasks)
        parallel = max(parallel, at_work.tasks * ended_ms / (ended_ms + at_work.elapsed_ms))
    else:
        parallel = max(parallel, at_work.tasks)
    return Speed({kind: sum(some) / len(some) / 1000 for kind, some in took.items()}, parallel / tenants)


def _busy_ms(ended: Sequence[Ended]) -> int:
    """The time during which at least one of the tasks was at work."""
    busy_ms = until_ms = 0
    for task in sorted(ended, key=lambda task: task.begin_ms):
        end_ms = max(task.end_ms, task.begin_ms + 1)
        busy_ms += max(0, end_ms - max(task.begin_ms, until_ms))
        until_ms = max(until_ms, end_ms)
    return busy_ms
