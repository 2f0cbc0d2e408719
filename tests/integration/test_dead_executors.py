"""What the supervisor does for an executor that it saw die."""

from __future__ import annotations

import pytest

from api.db.database import Rows
from api.db.models import Task
from api.db.services.role_service import RoleService
from common.errors import RowsUnavailable
from common.task_state import TaskState
from rag.svr.dead_executors import DeadExecutors
from tests.world import World


@pytest.fixture
def world(rows: Rows) -> World:
    return World(rows)


def test_its_tasks_and_roles_are_free_at_once(world: World) -> None:
    doc_id = world.document()
    world.parsing.start([doc_id])
    world.claim_all(doc_id, owner="e1:dead")
    roles = RoleService(world.rows)
    assert roles.lead("relay", "e1:dead", 60_000)
    dead = DeadExecutors(world.rows, world.tasks)
    dead.add("e1:dead", "was killed by SIGKILL")
    assert dead
    dead.hand_back()
    assert not dead
    task = Task.get(Task.doc_id == doc_id)
    assert (task.state, task.losses) == (TaskState.PENDING, 1)
    assert roles.lead("relay", "e2:alive", 60_000)


def test_a_database_that_is_away_is_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    doc_id = world.document()
    world.parsing.start([doc_id])
    world.claim_all(doc_id, owner="e1:dead")
    dead = DeadExecutors(world.rows, world.tasks)
    dead.add("e1:dead", "was killed by SIGKILL")
    with monkeypatch.context() as away:

        def refuse(*_: object) -> None:
            raise RowsUnavailable("the database can't be used now")

        away.setattr(world.rows, "write", refuse)
        dead.hand_back()
    assert dead
    assert Task.get(Task.doc_id == doc_id).state == TaskState.RUNNING
    dead.hand_back()
    assert not dead
    assert Task.get(Task.doc_id == doc_id).state == TaskState.PENDING


def test_an_executor_that_held_nothing_is_forgotten(world: World) -> None:
    dead = DeadExecutors(world.rows, world.tasks)
    dead.add("e1:idle", "was killed by SIGKILL")
    dead.hand_back()
    assert not dead
