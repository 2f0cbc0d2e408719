"""The queue as the rows have it: what waits, is published, put off, paused or at work, by priority and by tenant.

One walk over an index of the tasks that have not ended; what it costs is bounded by `tasks.max_backlog`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from api.db.database import Rows
from api.db.services.task_sql import marks
from common.task_state import Priority, TaskState

# Tenants that are told of by themselves: those with the most tasks.
MOST_TENANTS = 50


@dataclass(frozen=True)
class Line:
    """Tasks of one priority or tenant. `waiting` can be published now, `put_off` must wait for their time, `published`
    stand in a stream. `oldest_s` is how long the oldest of those that wait or are published has been due."""

    waiting: int = 0
    put_off: int = 0
    published: int = 0
    running: int = 0
    paused: int = 0
    oldest_s: float = 0.0

    def __add__(self, other: Line) -> Line:
        return Line(
            self.waiting + other.waiting,
            self.put_off + other.put_off,
            self.published + other.published,
            self.running + other.running,
            self.paused + other.paused,
            max(self.oldest_s, other.oldest_s),
        )

    @property
    def tasks(self) -> int:
        return self.waiting + self.put_off + self.published + self.running + self.paused


@dataclass(frozen=True)
class TenantLine:
    tenant_id: str
    name: str
    line: Line


@dataclass(frozen=True)
class QueueRows:
    """`others` are the tenants that are not among `tenants`, taken together."""

    priorities: dict[Priority, Line]
    tenants: tuple[TenantLine, ...]
    others: Line
    other_tenants: int

    @property
    def all(self) -> Line:
        return sum(self.priorities.values(), Line())


class QueueView:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def look(self) -> QueueRows:
        return self._rows.read(self._look)

    def _look(self) -> QueueRows:
        priorities: dict[Priority, Line] = {priority: Line() for priority in sorted(Priority, reverse=True)}
        tenants: dict[str, Line] = defaultdict(Line)
        for priority, tenant_id, line in self._lines():
            priorities[Priority(priority)] += line
            tenants[tenant_id] += line
        ordered = sorted(tenants, key=lambda tenant_id: (-tenants[tenant_id].tasks, tenant_id))
        told, rest = ordered[:MOST_TENANTS], ordered[MOST_TENANTS:]
        names = self._names(told)
        return QueueRows(
            priorities,
            tuple(TenantLine(tenant_id, names.get(tenant_id, ""), tenants[tenant_id]) for tenant_id in told),
            sum((tenants[tenant_id] for tenant_id in rest), Line()),
            len(rest),
        )

    def _lines(self) -> list[tuple[int, str, Line]]:
        """One for each priority, tenant and kind of waiting."""
        now_ms = self._rows.clock()
        found = self._rows.rows(
            "SELECT priority, tenant_id, published_at > 0, COUNT(*), SUM(CASE WHEN run_after > ? THEN 1 ELSE 0 END),"
            f" MIN(run_after) FROM task WHERE state = {int(TaskState.PENDING)}"
            " GROUP BY priority, tenant_id, published_at > 0",
            (now_ms,),
        )
        lines = []
        for priority, tenant_id, is_published, count, put_off, oldest_ms in found:
            line = Line(oldest_s=max(0, now_ms - int(oldest_ms)) / 1000)
            if is_published:
                line = replace(line, published=int(count))
            else:
                line = replace(line, waiting=int(count) - int(put_off), put_off=int(put_off))
            lines.append((int(priority), str(tenant_id), line))
        for state, name in ((TaskState.RUNNING, "running"), (TaskState.PAUSED, "paused")):
            counted = self._rows.rows(
                f"SELECT priority, tenant_id, COUNT(*) FROM task WHERE state = {int(state)}"
                " GROUP BY priority, tenant_id"
            )
            lines += [(int(p), str(tenant_id), replace(Line(), **{name: int(n)})) for p, tenant_id, n in counted]
        return lines

    def _names(self, tenant_ids: Sequence[str]) -> dict[str, str]:
        """A tenant has the id of the user who owns it."""
        if not tenant_ids:
            return {}
        found = self._rows.rows(f"SELECT id, email FROM user WHERE id IN ({marks(tenant_ids)})", tenant_ids)
        return {str(user_id): str(email) for user_id, email in found}
