"""The whole queue in numbers, whoever's tasks they are: how many wait, for how long, and how many are at work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from api.db.database import Rows
from common.task_state import Priority, TaskState


@dataclass(frozen=True)
class Lane:
    """What waits under one priority; `oldest_s` is how long the first of these has been due."""

    waiting: int
    oldest_s: float


@dataclass(frozen=True)
class PoolFigures:
    lanes: Mapping[Priority, Lane]
    at_work: int
    paused: int

    @property
    def waiting(self) -> int:
        return sum(lane.waiting for lane in self.lanes.values())

    @property
    def oldest_s(self) -> float:
        return max(lane.oldest_s for lane in self.lanes.values())


class JobPool:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def figures(self) -> PoolFigures:
        return self._rows.read(self._figures)

    def _figures(self) -> PoolFigures:
        now_ms = self._rows.clock()
        waiting = self._rows.rows(
            f"SELECT priority, COUNT(*), MIN(run_after) FROM task WHERE state = {int(TaskState.PENDING)}"
            " GROUP BY priority"
        )
        lanes = dict.fromkeys(sorted(Priority, reverse=True), Lane(0, 0.0))
        for priority, count, due_ms in waiting:
            lanes[Priority(priority)] = Lane(int(count), max(0, now_ms - int(due_ms)) / 1000)
        return PoolFigures(lanes, self._count(TaskState.RUNNING), self._count(TaskState.PAUSED))

    def _count(self, state: TaskState) -> int:
        return int(self._rows.rows(f"SELECT COUNT(*) FROM task WHERE state = {int(state)}")[0][0])
