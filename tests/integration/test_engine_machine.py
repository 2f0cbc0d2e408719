"""The engine's transitions in any order: whatever users, executors, reaper and zombies do, the rows stay in step."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from api.db.database import open_rows
from api.db.migrations import migrate
from api.db.models import Document, Knowledgebase, Task
from api.db.services.control_service import ControlService
from api.db.services.parse_service import Doorbell
from api.db.services.task_requests import (
    ClaimedTask,
    Fail,
    FinishDocument,
    FinishPrepare,
    FinishRange,
    GiveBack,
    NewRange,
    Renew,
    Written,
)
from common.settings import TaskSettings
from common.task_state import DocumentRun, TaskState, TaskType
from tests.world import PROFILE, World

pytestmark = pytest.mark.timeout(600)
OPEN = (TaskState.PENDING, TaskState.RUNNING, TaskState.PAUSED)


class Engine(RuleBasedStateMachine):
    claims = Bundle("claims")
    zombies = Bundle("zombies")

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.rows = open_rows(f"sqlite:///{Path(self._folder.name) / 'rows.db'}")
        self.rows.db.pragma("synchronous", "off", permanent=True)
        migrate(self.rows)
        self.world = World(self.rows)
        self.control = ControlService(self.rows, TaskSettings(), Doorbell(lambda: None, lambda _: None))
        self.docs = [self.world.document() for _ in range(2)]
        self.ended: dict[str, int] = {}

    def teardown(self) -> None:
        self.rows.close_connection()
        os.close(self.rows._local.lock_fd)
        self._folder.cleanup()

    @rule(which=st.integers(0, 1))
    def parse(self, which: int) -> None:
        self.world.parsing.start([self.docs[which]])

    @rule(which=st.integers(0, 1))
    def stop(self, which: int) -> None:
        self.world.parsing.stop([self.docs[which]])

    @rule(which=st.integers(0, 1))
    def pause(self, which: int) -> None:
        self.control.pause([self.docs[which]])

    @rule(which=st.integers(0, 1))
    def resume(self, which: int) -> None:
        self.control.resume([self.docs[which]])

    @rule(which=st.integers(0, 1))
    def delete_and_upload_anew(self, which: int) -> None:
        if self.control.delete([self.docs[which]]):
            self.docs[which] = self.world.document()

    @rule(target=claims, which=st.integers(0, 1), count=st.integers(1, 3))
    def claim(self, which: int, count: int) -> Any:
        pending = self.world.pending(self.docs[which])[:count]
        return multiple(*(self.world.claim(*pending) if pending else ()))

    @rule(claim=consumes(claims), ranges=st.integers(1, 3), chunks=st.integers(0, 3))
    def finish(self, claim: ClaimedTask, ranges: int, chunks: int) -> None:
        self._finish(claim, ranges, chunks)

    @rule(claim=consumes(claims), name=st.sampled_from(["retry", "wait", "drain", "lose"]))
    def give_back(self, claim: ClaimedTask, name: str) -> None:
        self.world.tasks.apply([GiveBack(claim.held, name, 0, "x", "again")])

    @rule(claim=consumes(claims))
    def fail(self, claim: ClaimedTask) -> None:
        self.world.tasks.apply([Fail(claim.held, "x", "bad")])

    @rule(target=zombies, claim=consumes(claims))
    def lease_ends(self, claim: ClaimedTask) -> ClaimedTask:
        self.rows.execute("UPDATE task SET lease_until = 1 WHERE id = ? AND state = 1", (claim.id,))
        self.world.tasks.reap()
        return claim

    @rule(zombie=zombies, chunks=st.integers(0, 3))
    def a_zombie_wakes(self, zombie: ClaimedTask, chunks: int) -> None:
        before = self._everything()
        assert self.world.tasks.apply([Renew((zombie.held,))]) == [set()]
        self._finish(zombie, 2, chunks)
        assert self._everything() == before

    @rule()
    def replay(self) -> None:
        failed = [t.id for t in Task.select().where(Task.state == TaskState.FAIL)]
        self.control.replay(failed[:1])

    @invariant()
    def the_rows_are_in_step(self) -> None:
        for doc in Document.select():
            tasks = [t for t in self.world.tasks_of(doc.id) if t.generation == doc.generation]
            work = [t for t in tasks if t.state in OPEN and t.task_type != TaskType.FINISH]
            finishing = [t for t in tasks if t.state in OPEN and t.task_type == TaskType.FINISH]
            if doc.run == DocumentRun.RUNNING:
                assert len(work) == max(doc.open_tasks, 0)
                assert len(finishing) == (1 if doc.open_tasks < 0 else 0)
                assert doc.failed_tasks == len(
                    [t for t in tasks if t.state == TaskState.FAIL and t.task_type != TaskType.FINISH]
                )
            else:
                assert not work
                assert not finishing
            old = [t for t in self.world.tasks_of(doc.id) if t.generation != doc.generation]
            assert not [t for t in old if t.state in OPEN]

    @invariant()
    def what_ended_stays_ended(self) -> None:
        for task in Task.select():
            if task.id in self.ended:
                assert task.state == self.ended[task.id]
            if task.state in (TaskState.DONE, TaskState.CANCEL):
                self.ended[task.id] = task.state

    @invariant()
    def datasets_count_what_is_searched(self) -> None:
        alive = list(Document.select().where(Document.deleted_ms == 0))
        dataset = Knowledgebase.get_by_id(self.world.kb_id)
        assert dataset.chunk_count == sum(doc.chunk_count for doc in alive)
        assert all(doc.active_generation <= doc.generation for doc in alive)

    def _finish(self, claim: ClaimedTask, ranges: int, chunks: int) -> None:
        written = Written(chunks, chunks, 1)
        if claim.task_type is TaskType.PREPARE:
            new = tuple(NewRange(12 * n, 12 * n + 12, f"d{n}") for n in range(ranges))
            one_go = written if ranges == 1 else None
            self.world.tasks.apply([FinishPrepare(claim.held, PROFILE, new, one_go)])
        elif claim.task_type is TaskType.FINISH:
            self.world.tasks.apply([FinishDocument(claim.held, 1)])
        else:
            self.world.tasks.apply([FinishRange(claim.held, written)])

    def _everything(self) -> list[Any]:
        return [
            self.rows.rows("SELECT id, state, attempt, losses, claim_no, claim_token FROM task ORDER BY id"),
            self.rows.rows("SELECT id, run, open_tasks, done_tasks, run_chunks, generation FROM document ORDER BY id"),
        ]


TestEngine = Engine.TestCase
TestEngine.settings = settings(
    max_examples=int(os.environ.get("ENGINE_EXAMPLES", "25")),
    stateful_step_count=30,
    deadline=None,
    derandomize="ENGINE_EXAMPLES" not in os.environ,  # the same every time in CI; new ones where asked for
    suppress_health_check=list(HealthCheck),
)
