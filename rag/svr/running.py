"""The tasks in this executor's hands: running them, renewing their leases, stopping those that are no longer ours,
and handing in how each one ended."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import trio

from api.db.services.task_requests import (
    ClaimedTask,
    Continued,
    Ending,
    Fail,
    FinishPrepare,
    FinishRange,
    GiveBack,
    GoOn,
    Progress,
    Renew,
)
from common.errors import LeaseLost, Outage, PagemillError
from common.ids import new_token
from common.settings import ExecutorSettings, TaskSettings
from common.task_state import TaskState, TaskType
from rag.svr.fence import Fence, steady_s
from rag.svr.retry import as_known, decide
from rag.svr.rows_thread import RowsThread
from rag.svr.slots import Slots
from rag.svr.worker import Work, WorkerParts, run_one

log = logging.getLogger(__name__)
_PROGRESS_EVERY_S = 1.0
_FENCE_LOOK_S = 0.25
# Finish tasks only wait: up to so many of them hold no slot.
_MOST_FINISHING = 64


@dataclass(frozen=True)
class RunningConfig:
    """`owner` is whose claims these are."""

    executor: ExecutorSettings
    tasks: TaskSettings
    owner: str


class RunningTasks:
    """Trio only. `counts` are this boot's done, failed, retried and cancelled tasks."""

    def __init__(
        self, config: RunningConfig, parts: WorkerParts, rows: RowsThread, slots: Slots, nursery: trio.Nursery
    ) -> None:
        self._config = config
        self._parts = parts
        self._rows = rows
        self._slots = slots
        self._nursery = nursery
        self._works: dict[str, Work] = {}
        self._closing = False
        self._draining = False
        self._finishing = 0
        self._idle = trio.Event()
        self._busy = trio.Event()
        self.counts: Counter[str] = Counter()

    @property
    def works(self) -> list[Work]:
        return list(self._works.values())

    def start(self, tasks: Sequence[ClaimedTask], sent_s: float) -> None:
        """Begin work on tasks that were just claimed; each holds a slot, but for finish tasks: these only wait."""
        for task in tasks:
            fence = Fence(self._config.executor.lease_s, sent_s)
            work = Work(task, fence, ProgressReporter(self._rows, task), self._slots)
            if work.fence.remaining_s <= 0:
                # The claim was stored so late that its lease is over: back, before anybody calls it a loss.
                self._rows.submit(GiveBack(task.held, "drain"), _ignore)
                self._slots.give(1)
                continue
            if task.task_type is TaskType.FINISH and self._finishing < _MOST_FINISHING:
                self._finishing += 1
                work.holds_slot = work.in_line = False
                self._slots.give(1)
            self._works[task.id] = work
            self._busy.set()
            self._nursery.start_soon(self._run, work)

    def stop(self, task_ids: Iterable[str]) -> None:
        """These were cancelled or are somebody else's now: end the work and hand in nothing."""
        for task_id in task_ids:
            work = self._works.pop(task_id, None)
            if work is not None:
                self.counts["cancelled"] += 1
                work.scope.cancel()

    async def renew_forever(self) -> None:
        """Renew all claims in one UPDATE every few seconds; stop what is no longer held."""
        while True:
            await trio.sleep(self._config.executor.renew_s)
            works = self.works
            if not works:
                continue
            sent_s = steady_s()
            try:
                held = await self._rows.ask(Renew(tuple(w.task.held for w in works)))
            except Outage as exc:
                log.warning("leases could not be renewed: %s", exc)
                continue
            assert isinstance(held, set)
            for work in works:
                if work.task.id in held:
                    work.fence.renewed(sent_s)
            self.stop(w.task.id for w in works if w.task.id not in held)

    async def fence_forever(self) -> None:
        """Stop work whose lease may have ended, whether or not the rows can be reached."""
        while True:
            if not self._works:
                self._busy = trio.Event()
                await self._busy.wait()
            await trio.sleep(_FENCE_LOOK_S)
            lost = [w for w in self.works if w.fence.remaining_s <= 0]
            for work in lost:
                log.error("task %s: its lease could not be renewed; its work is stopped", work.task.id)
            self.stop(w.task.id for w in lost)

    async def drain(self) -> None:
        """Let work end within the grace, then give the rest back; nothing is counted against it."""
        self._closing = True
        with trio.move_on_after(self._config.executor.drain_grace_s):
            await self._wait_idle()
        self._draining = True
        for work in self.works:
            work.scope.cancel()
        await self._wait_idle()

    async def _wait_idle(self) -> None:
        while self._works:
            self._idle = trio.Event()
            await self._idle.wait()

    async def _run(self, work: Work) -> None:
        task = work.task
        ending: Ending | None = None
        try:
            with work.scope:
                ending = await run_one(work, self._parts)
        except Exception as exc:  # a task's run is one of the two edges where anything may come up
            error = as_known(exc)
            if error is not exc:
                log.exception("task %s: unexpected error", task.id)
            ending = decide(task, error, self._config.tasks, random.random())
        if ending is None and self._draining:
            ending = GiveBack(task.held, "drain")
        try:
            if ending is not None and self._is_ours(work):
                await self._hand_in(work, ending)
        finally:
            self._forget(work)

    def _is_ours(self, work: Work) -> bool:
        """Not by the task's id alone: it may have been lost and be here again under a new claim."""
        return self._works.get(work.task.id) is work

    async def _hand_in(self, work: Work, ending: Ending) -> None:
        """Tell the rows how the task ended, again and again while they are away and the lease holds."""
        work.stage = "finishing"
        delay_s = 0.1
        if isinstance(ending, FinishRange | FinishPrepare) and not (self._closing or self._slots.is_held):
            ending = replace(ending, go_on=GoOn(self._config.owner, new_token()))
        while True:
            sent_s = steady_s()
            try:
                work.fence.check()
                state = await self._rows.ask(ending)
                break
            except LeaseLost:
                return
            except Outage as exc:
                log.warning("task %s: its end could not be stored yet: %s", work.task.id, exc)
                await trio.sleep(delay_s)
                delay_s = min(delay_s * 2, 2.0)
            except PagemillError as exc:
                log.error("task %s: %s", work.task.id, exc)
                if isinstance(ending, Fail):
                    return  # not even that: its lease will tell
                ending = Fail(work.task.held, exc.code, "the database refused its result; the log says why")
        if isinstance(state, Continued):
            self._slots.take(1)
            self.start([state.task], sent_s)
        self._count(work.task, ending, state)

    def _count(self, task: ClaimedTask, ending: Ending, state: object) -> None:
        if state is None:
            self.counts["cancelled"] += 1
        elif state is TaskState.DONE or isinstance(state, Continued):
            self.counts["done"] += 1
        elif state is TaskState.FAIL:
            self.counts["failed"] += 1
            if isinstance(ending, GiveBack | Fail):
                log.warning("task %s of document %s failed: %s", task.id, task.document_id, ending.message)
        elif isinstance(ending, GiveBack) and ending.error_code:
            self.counts["retried"] += 1
            log.info("task %s of document %s goes back: %s", task.id, task.document_id, ending.message)

    def _forget(self, work: Work) -> None:
        if self._is_ours(work):
            del self._works[work.task.id]
        if work.holds_slot:
            self._slots.give(1, in_line=work.in_line)
        else:
            self._finishing -= 1
        if not self._works:
            self._idle.set()


class ProgressReporter:
    """Coalesced: at most one write per task and second, riding on the next batch."""

    def __init__(self, rows: RowsThread, task: ClaimedTask) -> None:
        self._rows = rows
        self._task = task
        self._sent_s: float | None = None

    def __call__(self, progress: float, message: str) -> None:
        now_s = steady_s()
        if self._sent_s is None:
            # Nor is the first second of work worth a write: many tasks are done by then.
            self._sent_s = now_s
        if now_s - self._sent_s < _PROGRESS_EVERY_S:
            return
        self._sent_s = now_s
        self._rows.submit(Progress(self._task.held, progress, message), _ignore)


def _ignore(reply: object) -> None:
    """Progress that could not be written is followed by newer progress."""
