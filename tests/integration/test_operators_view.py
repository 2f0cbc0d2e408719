"""What operators are told from the rows, on both databases: the queue, failed tasks by cause, users."""

from __future__ import annotations

import pytest

from api.db.database import Rows
from api.db.services.account_service import AccountService
from api.db.services.failed_groups import FailedGroups
from api.db.services.queue_view import Line, QueueView
from api.db.services.task_requests import Fail, GiveBack
from api.db.services.user_admin import UserAdmin
from common.errors import InvalidInput
from common.ids import new_id
from common.task_state import Priority
from tests.world import World


@pytest.fixture
def world(rows: Rows) -> World:
    return World(rows)


def test_the_queue_is_counted_by_priority_and_tenant(world: World) -> None:
    _, (first, second, *_) = world.started(ranges=4)
    assert len(world.claim(first)) == 1
    (back,) = world.claim(second)
    world.tasks.apply([GiveBack(back.held, "retry", 60_000, "timeout", "too slow")])
    assert len(world.publishing.mark_next(1)) == 1
    other = new_id()
    urgent = world.document(tenant_id=other, kb_id=world.dataset(other), priority=2)
    world.parsing.start([urgent])
    paused = world.document()
    world.parsing.start([paused])
    world.control.pause([paused])
    found = QueueView(world.rows).look()
    normal, line = found.priorities[Priority.NORMAL], found.priorities[Priority.URGENT]
    assert (normal.waiting, normal.put_off, normal.published, normal.running, normal.paused) == (1, 1, 1, 1, 1)
    assert (line.waiting, line.running, found.priorities[Priority.BULK]) == (1, 0, Line())
    assert [tenant.tenant_id for tenant in found.tenants] == [world.tenant_id, other]
    assert found.all.tasks == 6
    assert 0 <= found.all.oldest_s < 600


def test_failures_are_one_group_whatever_the_file_and_the_page(world: World) -> None:
    for number in range(3):
        doc_id = world.document()
        world.parsing.start([doc_id])
        (task,) = world.claim_all(doc_id)
        world.tasks.apply([Fail(task.held, "parser_error", f"{doc_id}.pdf broke on page {number}")])
    groups = FailedGroups(world.rows)
    (group,) = groups.look()
    assert (group.message, group.count, group.current, group.documents) == ("the file broke on page …", 3, 3, 3)
    assert len(group.examples) == 3
    ids = groups.task_ids(group.id, 2)
    assert len(ids) == 2
    assert len(groups.task_ids(group.id, 2, ids[-1])) == 1
    assert groups.task_ids("0" * 16, 2) == []


def test_the_last_administrator_stays_one(rows: Rows) -> None:
    accounts, users = AccountService(rows, "m"), UserAdmin(rows)
    first = accounts.create_user("a@example.org", "A", "a long enough password", is_superuser=True)
    second = accounts.create_user("b@example.org", "B", "a long enough password", is_superuser=True)
    users.set_superuser(second, False, by=first)
    with pytest.raises(InvalidInput, match="only administrator"):
        users.set_active(first, False, by=second)
    assert [(user.email, user.is_superuser, user.keys) for user in users.all()] == [
        ("a@example.org", True, 0),
        ("b@example.org", False, 0),
    ]
