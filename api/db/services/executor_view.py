"""Executors as operators see them: those that run, by their heartbeats and their rows, and those that ended, with what
became of their tasks. Without heartbeats (Redis is away or was flushed) the rows tell, a few seconds behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from api.db.database import Rows
from api.db.services.executor_fates import MOST_TOLD, ExecutorFates, LostTask
from api.db.services.executor_orders import ExecutorOrders, Order
from api.db.services.executor_registry import Ended, ExecutorRegistry, ExecutorRow
from api.db.services.task_sql import marks
from common.errors import QueueUnavailable
from rag.utils.redis_conn import ExecutorBeat

# An executor writes its row every five seconds; one that is late by as much again is silent.
_ROW_FRESH_S = 10.0


class Life(StrEnum):
    """`UNKNOWN`: nobody can tell, since the heartbeats can't be read; its row was fresh not long ago."""

    ALIVE = "alive"
    SILENT = "silent"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class RunningExecutor:
    """`said` is its last heartbeat, or what its row has of it; `age_s` is how old that is."""

    name: str
    owner: str
    life: Life
    age_s: float
    boot_ms: int
    said: Mapping[str, Any]
    order: Order | None


@dataclass(frozen=True)
class EndedExecutor:
    """`lost` are the first of the tasks that it held, `fates` counts all of them by what they are now."""

    row: ExecutorRow
    fates: Mapping[str, int]
    lost: tuple[LostTask, ...]

    @property
    def is_dead(self) -> bool:
        return self.row.ended is not Ended.LEFT


@dataclass(frozen=True)
class DocumentName:
    document_name: str = ""
    dataset_id: str = ""
    tenant_id: str = ""


@dataclass(frozen=True)
class Executors:
    """`heartbeat_error` says why there are no heartbeats; "" where there are. `documents` names those in work."""

    running: tuple[RunningExecutor, ...]
    ended: tuple[EndedExecutor, ...]
    documents: Mapping[str, DocumentName]
    heartbeat_error: str


class ExecutorView:
    """`beats` reads the heartbeats, and raises QueueUnavailable."""

    def __init__(self, rows: Rows, beats: Callable[[], list[ExecutorBeat]]) -> None:
        self._rows = rows
        self._beats = beats
        self._registry = ExecutorRegistry(rows)
        self._orders = ExecutorOrders(rows)
        self._fates = ExecutorFates(rows)

    def look(self) -> Executors:
        """Raises RowsUnavailable. Heartbeats that can't be read are told, and no error."""
        found = self.look_at_running()
        return replace(found, ended=tuple(self._ended()), documents=self._documents(found.running))

    def count_lost(self) -> int:
        return self._registry.count_lost()

    def look_at_running(self) -> Executors:
        """The same without those that ended, and without the names of documents."""
        beats: list[ExecutorBeat] = []
        error = ""
        try:
            beats = self._beats()
        except QueueUnavailable as exc:
            error = exc.public_message
        return Executors(tuple(self._running(beats, has_beats=not error)), (), {}, error)

    def _running(self, beats: Sequence[ExecutorBeat], *, has_beats: bool) -> list[RunningExecutor]:
        orders = self._orders.all()
        by_owner = {str(beat.said.get("owner", "")): beat for beat in beats}
        now_ms = self._rows.read(self._rows.clock)
        found = []
        for row in self._registry.running():
            order = orders.get(row.name)
            if order is not None and order.owner not in ("", row.owner):
                order = None  # meant for an earlier boot
            beat = by_owner.pop(row.owner, None)
            if beat is not None:
                life = Life.ALIVE if beat.is_alive else Life.SILENT
                found.append(
                    RunningExecutor(row.name, row.owner, life, max(0.0, beat.age_s), row.boot_ms, beat.said, order)
                )
                continue
            age_s = max(0.0, (now_ms - row.seen_ms) / 1000)
            fresh = Life.ALIVE if has_beats else Life.UNKNOWN
            life = fresh if age_s < _ROW_FRESH_S else Life.SILENT
            found.append(RunningExecutor(row.name, row.owner, life, age_s, row.boot_ms, row.beat, order))
        return found

    def _ended(self) -> list[EndedExecutor]:
        rows = self._registry.ended()
        fates = self._fates.of([row.owner for row in rows])
        return [
            EndedExecutor(
                row, Counter(str(lost.fate) for lost in fates[row.owner]), tuple(fates[row.owner][:MOST_TOLD])
            )
            for row in rows
        ]

    def _documents(self, running: Sequence[RunningExecutor]) -> dict[str, DocumentName]:
        """Each document that somebody works on."""
        ids = sorted({str(task["document_id"]) for one in running for task in one.said.get("current", ())})
        if not ids:
            return {}
        found = self._rows.read(
            self._rows.rows, f"SELECT id, name, kb_id, tenant_id FROM document WHERE id IN ({marks(ids)})", ids
        )
        return {str(doc_id): DocumentName(*rest) for doc_id, *rest in found}
