"""What the relay needs of the rows: which tasks to publish next, in fair turns; marking and unmarking them. Speaks no
Redis."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from api.db.database import Rows
from api.db.services.task_sql import marks
from common.task_state import Priority, TaskState

_WAITING = f"state = {int(TaskState.PENDING)} AND published_at = 0"
# One publish in so many goes to the oldest task whatever its priority, so that nothing starves.
OLDEST_EVERY = 10


@dataclass(frozen=True)
class Publishable:
    task_id: str
    priority: int
    run_after: int


class PublishService:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._turn = 0
        self._last_tenant: dict[int, str] = {}

    def mark_next(self, room: int) -> list[Publishable]:
        """Choose up to `room` waiting tasks and mark them published: by priority, then tenants in turns.

        Marked first, sent afterwards: what is marked and never sent is unmarked by `unmark`. Chosen before the write
        transaction, which others wait for: a task that is cancelled in between is sent, and nobody can claim it."""
        waiting = self._rows.read(self._rows.rows, f"SELECT 1 FROM task WHERE {_WAITING} LIMIT 1")
        return self._marked(self._rows.read(self._choose, room) if waiting and room > 0 else [])

    def mark_express(self, room: int, each: int) -> list[Publishable]:
        """Choose up to `room` waiting tasks of tenants that have fewer than `each` in work or published, and mark them
        published. Nothing where a single tenant waits: it has nobody to be kept waiting by."""
        return self._marked(self._rows.read(self._choose_express, room, each) if room > 0 else [])

    def published_before(self, age_ms: int) -> list[str]:
        """Ids of pending tasks that were marked longer ago than this."""
        found = self._rows.read(
            self._rows.rows,
            f"SELECT id FROM task WHERE state = {int(TaskState.PENDING)} AND published_at > 0"
            f" AND published_at < {self._rows.now_ms} - ? LIMIT 10000",
            (age_ms,),
        )
        return [row[0] for row in found]

    def count_published(self) -> int:
        found = self._rows.read(
            self._rows.rows,
            f"SELECT COUNT(*) FROM task WHERE state = {int(TaskState.PENDING)} AND published_at > 0",
        )
        return int(found[0][0])

    def unmark(self, task_ids: Collection[str]) -> int:
        """These are nowhere to be delivered: let them be published again."""
        done = 0
        ordered = sorted(task_ids)
        for start in range(0, len(ordered), 500):
            done += self._rows.write(self._unmark, ordered[start : start + 500])
        return done

    def next_due_ms(self) -> int | None:
        """Milliseconds until the first task that waits for its `run_after` is due; None where there is none."""
        found = self._rows.read(
            self._rows.rows,
            f"SELECT MIN(run_after) - {self._rows.now_ms} FROM task WHERE {_WAITING}",
        )
        return None if found[0][0] is None else max(0, int(found[0][0]))

    def _marked(self, chosen: list[Publishable]) -> list[Publishable]:
        if chosen:
            self._rows.write(self._mark, sorted(c.task_id for c in chosen))
        return chosen

    def _mark(self, task_ids: list[str]) -> None:
        self._rows.execute(
            f"UPDATE task SET published_at = {self._rows.now_ms} WHERE id IN ({marks(task_ids)})"
            f" AND +state = {int(TaskState.PENDING)} AND +published_at = 0",
            task_ids,
        )

    def _unmark(self, task_ids: list[str]) -> int:
        return int(
            self._rows.execute(
                f"UPDATE task SET published_at = 0"
                f" WHERE id IN ({marks(task_ids)}) AND +state = {int(TaskState.PENDING)}",
                task_ids,
            ).rowcount
        )

    def _choose(self, room: int) -> list[Publishable]:
        lanes = {int(priority): self._lanes(priority, room) for priority in sorted(Priority, reverse=True)}
        chosen: list[Publishable] = []
        if sum(len(some) for some in lanes.values()) == 1:  # nobody to take turns with
            (lane,) = (lane for some in lanes.values() for lane in some)
            self._turn += len(lane.tasks)
            self._last_tenant[lane.tasks[0].priority] = lane.tenant_id
            return list(lane.tasks)
        while len(chosen) < room and any(lanes.values()):
            self._turn += 1
            if self._turn % OLDEST_EVERY == 0:
                lane = min((lane for some in lanes.values() for lane in some), key=lambda x: x.tasks[0].run_after)
                priority = lane.tasks[0].priority
            else:
                priority = next(p for p, some in lanes.items() if some)
                lane = lanes[priority][0]
            chosen.append(lane.tasks.popleft())
            lanes[priority].remove(lane)
            if lane.tasks:
                lanes[priority].append(lane)
            self._last_tenant[priority] = lane.tenant_id
        return chosen

    def _choose_express(self, room: int, each: int) -> list[Publishable]:
        waiting = [(p, tenant) for p in sorted(Priority, reverse=True) for tenant in self._tenants_after(p, "")]
        if len({tenant for _, tenant in waiting}) < 2:
            return []
        under_way = self._under_way()
        chosen: list[Publishable] = []
        for priority, tenant in waiting:
            free = min(each - under_way[tenant], room - len(chosen))
            if free > 0:
                due = self._due(priority, tenant, free)
                under_way[tenant] += len(due)
                chosen += due
        return chosen

    def _under_way(self) -> Counter[str]:
        """Tasks that run or are published, for each tenant."""
        under_way: Counter[str] = Counter()
        for which in (f"state = {int(TaskState.RUNNING)}", f"state = {int(TaskState.PENDING)} AND published_at > 0"):
            found = self._rows.rows(f"SELECT tenant_id, COUNT(*) FROM task WHERE {which} GROUP BY tenant_id")
            under_way.update({tenant: int(count) for tenant, count in found})
        return under_way

    def _lanes(self, priority: int, room: int) -> deque[_Lane]:
        """One lane per tenant that has due tasks of this priority; the tenant after the last one served is first."""
        last = self._last_tenant.get(priority, "")
        tenants = [*self._tenants_after(priority, last), *self._tenants_after(priority, "", until=last)]
        lanes = (_Lane(tenant, self._due(priority, tenant, room)) for tenant in tenants)
        return deque(lane for lane in lanes if lane.tasks)

    def _tenants_after(self, priority: int, tenant: str, until: str | None = None) -> Iterable[str]:
        """Skips from tenant to tenant in the index: the cost is that of the tenants, not of their tasks."""
        while True:
            found = self._rows.rows(
                f"SELECT tenant_id FROM task WHERE {_WAITING} AND priority = ? AND tenant_id > ?"
                f" ORDER BY tenant_id LIMIT 1",
                (priority, tenant),
            )
            if not found or (until is not None and found[0][0] > until):
                return
            tenant = found[0][0]
            yield tenant

    def _due(self, priority: int, tenant: str, room: int) -> deque[Publishable]:
        found = self._rows.rows(
            f"SELECT id, priority, run_after FROM task WHERE {_WAITING} AND priority = ? AND tenant_id = ?"
            f" AND run_after <= {self._rows.now_ms} ORDER BY run_after, id LIMIT ?",
            (priority, tenant, room),
        )
        return deque(Publishable(*row) for row in found)


@dataclass(frozen=True)
class _Lane:
    tenant_id: str
    tasks: deque[Publishable]
