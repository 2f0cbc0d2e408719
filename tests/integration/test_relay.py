"""The relay on real rows and a real Valkey: fair turns, a bounded window, and repair of whatever was lost."""

from __future__ import annotations

import pytest

from api.db.database import Rows
from api.db.models import Task
from api.db.services.publish_service import PublishService
from api.db.services.role_service import RoleService
from common.ids import new_id
from common.settings import RelaySettings
from common.task_state import Priority
from rag.svr.relay import Relay, RelayConfig
from rag.utils.redis_conn import Queue, Standing
from tests.waiting import wait_for, wait_until
from tests.world import World


@pytest.fixture
def world(rows: Rows) -> World:
    return World(rows)


def relay_of(world: World, queue: Queue, holder: str = "e1:boot", **changes: float) -> Relay:
    settings = RelaySettings().model_copy(update={"window": 64, **changes})
    return Relay(RelayConfig(settings, holder), RoleService(world.rows), PublishService(world.rows), queue)


def standing(queue: Queue, consumer: str = "probe") -> list[str]:
    return [m.task_id for m in queue.read(consumer, 1000)]


def test_a_parse_is_published_once(world: World, queue: Queue) -> None:
    doc_id = world.document()
    world.parsing.start([doc_id])
    relay = relay_of(world, queue)
    assert relay.publish() == 1
    assert relay.publish() == 0
    assert standing(queue) == world.pending(doc_id)


def test_tenants_take_turns_and_urgent_tasks_overtake(world: World) -> None:
    bulk_tenant, small_tenant = new_id(), new_id()
    bulk_kb, small_kb = world.dataset(bulk_tenant), world.dataset(small_tenant)
    bulk = [world.document(tenant_id=bulk_tenant, kb_id=bulk_kb) for _ in range(30)]
    world.parsing.start(bulk)
    small = world.document(tenant_id=small_tenant, kb_id=small_kb)
    world.parsing.start([small])
    urgent = world.document(tenant_id=bulk_tenant, kb_id=bulk_kb, priority=Priority.URGENT)
    world.parsing.start([urgent])
    chosen = [c.task_id for c in world.publishing.mark_next(4)]
    assert chosen[0] == world.pending(urgent)[0]
    assert world.pending(small)[0] in chosen[:3]
    assert [c.priority for c in world.publishing.mark_next(4)] == [Priority.NORMAL] * 4


def test_nothing_starves_under_urgent_work(world: World) -> None:
    old = world.document(priority=Priority.BULK)
    world.parsing.start([old])
    world.parsing.start([world.document(priority=Priority.URGENT) for _ in range(40)])
    chosen = [c.task_id for c in world.publishing.mark_next(20)]
    assert world.pending(old)[0] in chosen


def test_a_task_waits_for_its_time(world: World) -> None:
    doc_id = world.document()
    world.parsing.start([doc_id])
    world.rows.execute("UPDATE task SET run_after = run_after + 60000 WHERE doc_id = ?", (doc_id,))
    assert world.publishing.mark_next(10) == []
    due_ms = world.publishing.next_due_ms()
    assert due_ms is not None
    assert 50_000 < due_ms <= 60_000


def test_streams_stay_within_the_window(world: World, queue: Queue) -> None:
    world.parsing.start([world.document() for _ in range(40)])
    relay = relay_of(world, queue, window=8)
    assert relay.publish() == 8
    assert relay.publish() == 0
    messages = queue.read("e1", 4)
    queue.ack(messages)
    assert relay.publish() == 4


def test_the_window_follows_what_was_taken(world: World, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr("rag.svr.relay.time.monotonic", lambda: now_s)
    world.parsing.start([world.document() for _ in range(200)])
    relay = relay_of(world, queue, window=8)
    published = []
    for _ in range(4):
        published.append(relay.publish())
        queue.ack(queue.read("e1", 100))
        now_s += 0.01
    assert published[0] == 8
    assert published == sorted(published)
    assert published[-1] > 16
    now_s += 60.0
    assert relay.publish() == 8  # that speed is long ago


def express(queue: Queue) -> list[str]:
    """The first of all reads makes the group and finds nothing."""
    return [m.task_id for _ in range(10) for m in queue.wait_express("probe", 0.01)]


def full_window(world: World, queue: Queue) -> Relay:
    """A relay that has published as many tasks of one tenant as may stand in the streams."""
    world.parsing.start([world.document() for _ in range(20)])
    relay = relay_of(world, queue, window=4)
    assert relay.publish() == 4
    return relay


def test_a_tenant_with_nothing_in_work_need_not_wait_for_room(world: World, queue: Queue) -> None:
    relay = full_window(world, queue)
    newcomer = new_id()
    kb_id = world.dataset(newcomer)
    docs = [world.document(tenant_id=newcomer, kb_id=kb_id) for _ in range(3)]
    world.parsing.start(docs)
    assert relay.publish() == 2, "from the third on it has to wait for its turn"
    sent = express(queue)
    assert len(sent) == 2, sent
    assert set(sent) < {t for d in docs for t in world.pending(d)}
    assert relay.publish() == 0, "those are still under way"
    assert len(standing(queue)) == 4


def test_one_tenant_alone_has_no_express(world: World, queue: Queue) -> None:
    relay = full_window(world, queue)
    assert relay.publish() == 0
    assert queue.standing() == Standing(in_turn=4, express=0)


def test_few_stand_in_the_express_stream(world: World, queue: Queue) -> None:
    relay = full_window(world, queue)
    for _ in range(5):
        tenant_id = new_id()
        kb_id = world.dataset(tenant_id)
        world.parsing.start([world.document(tenant_id=tenant_id, kb_id=kb_id) for _ in range(2)])
    assert (relay.publish(), relay.publish()) == (4, 0)
    read = wait_for(lambda: queue.wait_express("e1", 0.01))
    queue.ack(read)
    assert (relay.publish(), queue.standing().express) == (1, 4)


def test_a_flush_of_the_express_stream_is_repaired(world: World, queue: Queue) -> None:
    full_window(world, queue)
    tenant_id = new_id()
    doc_id = world.document(tenant_id=tenant_id, kb_id=world.dataset(tenant_id))
    world.parsing.start([doc_id])
    relay = relay_of(world, queue, unmark_after_s=0.001, window=4)
    assert relay.publish() == 1
    queue._redis.flushall()
    found: set[str] = set()

    def sent_again() -> bool:
        relay.repair()
        found.update(standing(queue), express(queue))
        return set(world.pending(doc_id)) <= found

    wait_until(sent_again, what="the task to be sent again")
    assert len(found) > 1, "and what stood in the window"


def test_a_flush_is_repaired(world: World, queue: Queue) -> None:
    docs = [world.document() for _ in range(5)]
    world.parsing.start(docs)
    relay = relay_of(world, queue, unmark_after_s=0.001, window=8)
    assert relay.publish() == 5
    queue._redis.flushall()
    wait_until(relay.repair)
    assert sorted(standing(queue)) == sorted(t for d in docs for t in world.pending(d))


def test_a_publish_that_was_marked_but_never_sent_is_repaired(world: World, queue: Queue) -> None:
    doc_id = world.document()
    world.parsing.start([doc_id])
    assert len(world.publishing.mark_next(10)) == 1
    relay = relay_of(world, queue, unmark_after_s=0.001)
    assert relay.publish() == 0
    wait_until(relay.repair)
    assert standing(queue) == world.pending(doc_id)


def test_what_stands_in_a_stream_is_not_sent_twice(world: World, queue: Queue) -> None:
    world.parsing.start([world.document() for _ in range(3)])
    relay = relay_of(world, queue, unmark_after_s=0.001)
    relay.publish()
    wait_until(lambda: len(world.publishing.published_before(1)) == 3)
    assert relay.repair() == 0
    assert len(standing(queue)) == 3


def test_messages_that_a_dead_executor_read_are_sent_again(world: World, queue: Queue) -> None:
    doc_id = world.document()
    world.parsing.start([doc_id])
    relay = relay_of(world, queue, unmark_after_s=0.05)
    relay.publish()
    assert standing(queue, "dead") == world.pending(doc_id)
    wait_until(relay.repair)
    assert standing(queue, "alive") == world.pending(doc_id)


def test_one_leads_until_it_steps_down_or_its_lease_ends(world: World, queue: Queue) -> None:
    first, second = relay_of(world, queue, "e1:a"), relay_of(world, queue, "e2:b")
    assert first.run_once() is True
    assert second.run_once() is False
    roles = RoleService(world.rows)
    assert roles.lead("relay", "e1:a", -1) is True  # its lease ends now
    wait_until(second.run_once)
    assert roles.lead("relay", "e1:a", 1000) is False
    roles.step_down("relay", "e2:b")
    assert roles.lead("relay", "e1:a", 1000) is True


def test_a_task_that_went_back_is_published_again(world: World, queue: Queue) -> None:
    doc_id = world.document()
    world.parsing.start([doc_id])
    relay = relay_of(world, queue)
    relay.publish()
    queue.ack(queue.read("e1", 5))
    world.claim_all(doc_id, owner="e1:dead")
    world.tasks.hand_back("e1:dead", "its process died")
    assert Task.get(Task.doc_id == doc_id).published_at == 0
    assert relay.publish() == 1
