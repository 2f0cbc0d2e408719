"""What a document says of itself on its way through the engine, on SQLite and on MariaDB."""

from __future__ import annotations

import re

import pytest

from api.db.database import Rows
from api.db.models import Document, Task, TaskEvent
from api.db.services.control_service import ControlService
from api.db.services.document_list import DocumentFilter
from api.db.services.document_service import DocumentService
from api.db.services.parse_service import Doorbell
from api.db.services.role_service import RoleService
from api.db.services.task_requests import Fail, FinishPrepare, GiveBack, NewRange, Progress
from common.settings import TaskSettings
from common.task_state import DocumentRun, TaskState
from tests.world import World

CLOCK = r"\d\d:\d\d:\d\d UTC"
NOBODY = "no executor is running: start one with `pagemill up` or `pagemill executor`"


class Teller(World):
    """A world that is asked for sentences. An executor leads the relay in it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.documents = DocumentService(self.rows, TaskSettings())
        bell = Doorbell(lambda: None, lambda _: None)
        self.control = ControlService(self.rows, TaskSettings(), bell)
        RoleService(self.rows).lead("relay", "e-1:boot", 60_000)

    def says(self, doc_id: str) -> str:
        """As the list shows it, which is as the document alone does but for what time has changed."""
        page = self.documents.page(self.tenant_id, self.kb_id, DocumentFilter(page_size=1000))
        (listed,) = [d.progress_msg for d in page.documents if d.id == doc_id]
        return listed

    def says_at_once(self, doc_id: str, task_id: str, wait_ms: int) -> str:
        """What it said when the task was put off for so long, however long ago that is on a slow machine."""
        then_ms = Task.get_by_id(task_id).run_after - wait_ms
        assert 0 <= self.rows.clock() - then_ms < 60_000
        with pytest.MonkeyPatch.context() as still:
            still.setattr(self.rows, "clock", lambda: then_ms)
            return self.says(doc_id)

    def queued_last(self) -> str:
        """A document that was started at least a millisecond after all others."""
        doc_id = self.document()
        self.parsing.start([doc_id])
        self.rows.write(Task.update(run_after=Task.run_after + 1).where(Task.doc_id == doc_id).execute)
        return doc_id

    def took(self, seconds: float) -> None:
        """Let every task that is done have taken this long, one after another, up to now."""
        now_ms = self.rows.clock()
        done = list(Task.select().where((Task.state == TaskState.DONE) & (Task.task_type == "range")))
        for number, task in enumerate(reversed(done)):
            end_ms = now_ms - int(number * seconds * 1000)
            begin_ms = end_ms - int(seconds * 1000)
            self.rows.write(Task.update(begin_at=begin_ms, end_at=end_ms).where(Task.id == task.id).execute)

    def end_leases(self) -> None:
        """Time passes: every claim and role is over."""
        self.rows.write(self.rows.execute, "UPDATE task SET lease_until = 1000 WHERE state = 1")
        self.rows.write(self.rows.execute, "UPDATE lease SET until_ms = 1000")

    def age(self, doc_id: str, seconds: int = 60) -> None:
        earlier = Document.begin_ms - seconds * 1000
        self.rows.write(Document.update(begin_ms=earlier).where(Document.id == doc_id).execute)


@pytest.fixture
def world(rows: Rows) -> Teller:
    return Teller(rows)


def test_queued_behind_others_with_a_time_once_one_was_measured(world: Teller) -> None:
    _, first = world.started(9)
    behind = world.queued_last()
    assert world.says(behind) == "waiting: 9 tasks of other documents are ahead"
    world.finish(*world.claim(first[0]))
    world.took(5.0)
    assert world.says(behind) == "waiting: 8 tasks of other documents are ahead, about 40 s"
    for task in world.claim(*first[1:]):
        world.finish(task)
    assert world.says(behind) == "waiting: it is the next in the queue"


def test_the_time_is_by_how_many_are_done_at_once(world: Teller) -> None:
    _, ranges = world.started(12)
    for task in world.claim(*ranges[:2]):
        world.finish(task)
    world.took(30.0)
    world.claim(*ranges[2:4])
    behind = world.queued_last()
    assert world.says(behind) == "waiting: 8 tasks of other documents are ahead, about 2 min"


def test_another_tenants_backlog_is_not_ahead(world: Teller, rows: Rows) -> None:
    other = World(rows)
    other.started(20)
    mine = world.document()
    world.parsing.start([mine])
    assert world.says(mine) == "waiting: it is the next in the queue"


def test_at_work_with_the_time_that_is_left(world: Teller) -> None:
    doc_id, ranges = world.started(5)
    (first,) = world.claim(ranges[0])
    world.tasks.apply([Progress(first.held, 0.5, "parsing")])
    assert world.says(doc_id) == "reading pages 1-12: parsing; 0 of 5 tasks done"
    world.finish(first)
    world.took(10.0)
    world.claim(ranges[1])
    assert world.says(doc_id) == "reading pages 13-24: starting; 1 of 5 tasks done, about 40 s left"


def test_preparing(world: Teller) -> None:
    doc_id = world.document()
    world.parsing.start([doc_id])
    assert world.says(doc_id) == "waiting: it is the next in the queue"
    (prepare,) = world.claim_all(doc_id)
    assert world.says(doc_id) == "reading the file: starting"
    world.tasks.apply([Progress(prepare.held, 0.0, "looking at the file")])
    assert world.says(doc_id) == "reading the file: looking at the file"


def test_nobody_is_there_to_do_it(world: Teller) -> None:
    doc_id, ranges = world.started(2)
    world.finish(*world.claim(ranges[0]))
    world.claim(ranges[1])
    world.end_leases()
    assert world.says(doc_id).startswith("executor e1 is not heard of")  # it was only just started
    world.age(doc_id)
    assert world.says(doc_id) == f"{NOBODY}; 1 of 2 tasks done"
    RoleService(world.rows).lead("relay", "e-2:boot", 60_000)
    assert re.fullmatch(
        r"executor e1 is not heard of, its lease ended at 1970-01-01 00:00:01 UTC;"
        r" pages 13-24 start again on another; 1 of 2 tasks done",
        world.says(doc_id),
    )


def test_nobody_was_ever_there(world: Teller) -> None:
    RoleService(world.rows).step_down("relay", "e-1:boot")
    doc_id = world.document()
    world.parsing.start([doc_id])
    world.age(doc_id)
    assert world.says(doc_id) == f"{NOBODY}; 0 of 1 task done"


def test_tasks_at_work_show_that_somebody_is_there(world: Teller) -> None:
    RoleService(world.rows).step_down("relay", "e-1:boot")
    doc_id, ranges = world.started(2)
    world.age(doc_id)
    world.claim(ranges[0])
    assert world.says(doc_id) == "reading pages 1-12: starting; 0 of 2 tasks done"


def test_a_lost_executor_and_where_its_work_goes_on(world: Teller) -> None:
    doc_id, ranges = world.started(3)
    world.finish(*world.claim(ranges[0]))
    world.claim(ranges[1], owner="e-7:boot")
    world.tasks.hand_back("e-7:boot", "its process died")
    lost = rf"executor e-7 was lost at {CLOCK}; "
    assert re.fullmatch(lost + "pages 13-24 wait to be started again; 1 of 3 tasks done", world.says(doc_id))
    event = TaskEvent.get(TaskEvent.kind == "lose")
    assert event.owner == "e-7:boot"
    (again,) = world.claim(ranges[1], owner="e-9:boot")
    assert re.fullmatch(lost + "pages 13-24 started again on e-9; 1 of 3 tasks done", world.says(doc_id))
    world.finish(again)
    assert world.says(doc_id) == "waiting: it is the next in the queue; 2 of 3 tasks done"


def test_an_executor_lost_with_several_ranges(world: Teller) -> None:
    doc_id, ranges = world.started(4)
    world.claim(*ranges[:3], owner="e-7:boot")
    world.tasks.hand_back("e-7:boot", "its process died")
    assert "; pages 1-12 and 2 more ranges wait to be started again; " in world.says(doc_id)
    world.claim(ranges[0], owner="e-8:boot")
    world.claim(ranges[2], owner="e-9:boot")
    assert "; pages 1-12 and 1 more range started again on e-8, e-9, 1 more not yet; " in world.says(doc_id)


def test_a_lost_parser_process_is_no_lost_executor(world: Teller) -> None:
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    world.tasks.apply([GiveBack(task.held, "lose", 0, "parser_lost", "the parser process died (signal 9) on page 3")])
    assert world.says(doc_id) == "a new start is queued: the parser process died (signal 9) on page 3"


def lose(world: Teller, task_id: str, times: int) -> None:
    for number in range(times):
        assert len(world.claim(task_id, owner=f"e-{number}:boot")) == 1
        assert world.tasks.hand_back(f"e-{number}:boot", "its process died") == 1


def test_lost_too_often_on_some_pages(world: Teller) -> None:
    doc_id, ranges = world.started(3)
    lose(world, ranges[1], 5)
    message = "executor lost 5 times on pages 13-24"
    row = Task.get_by_id(ranges[1])
    assert (row.state, row.error_code, row.error_message) == (TaskState.FAIL, "executor_lost", message)
    assert world.says(doc_id) == f"waiting: it is the next in the queue; 0 of 3 tasks done, 1 failed ({message})"
    for task in world.claim(ranges[0], ranges[2]):
        world.finish(task)
    world.flip(doc_id)
    assert world.says(doc_id) == (
        f"failed: {message}; 6 chunks of the rest can be found; replay its failed tasks, or parse it again"
    )
    assert world.control.replay([ranges[1]]) == [ranges[1]]
    assert world.says(doc_id) == "waiting: it is the next in the queue; 2 of 3 tasks done"


def test_lost_too_often_on_rows(world: Teller) -> None:
    doc_id = world.document()
    world.parsing.start([doc_id])
    (prepare,) = world.claim_all(doc_id)
    sheet = {"kind": "csv", "unit": "row", "units": 9000}
    world.tasks.apply([FinishPrepare(prepare.held, sheet, (NewRange(0, 5000, "a"), NewRange(5000, 9000, "b")))])
    first = next(t.id for t in world.tasks_of(doc_id) if t.to_page == 5000)
    lose(world, first, 5)
    assert world.doc(doc_id).error_message == "executor lost 5 times on rows 1-5000"


def test_lost_too_often_before_it_was_split_and_at_its_end(world: Teller) -> None:
    doc_id = world.document()
    world.parsing.start([doc_id])
    lose(world, world.pending(doc_id)[0], 5)
    assert world.doc(doc_id).error_message == "executor lost 5 times"
    lose(world, world.pending(doc_id)[0], 5)  # its finish task
    assert world.doc(doc_id).run == DocumentRun.FAIL
    assert world.says(doc_id) == "failed: executor lost 5 times; replay its failed tasks, or parse it again"


def test_executors_and_parsers_lost(world: Teller) -> None:
    _, ranges = world.started(2)
    died = "the parser process died (signal 9) on page 3"
    for _ in range(5):
        (task,) = world.claim(ranges[0])
        world.tasks.apply([GiveBack(task.held, "lose", 0, "parser_lost", died)])
    assert Task.get_by_id(ranges[0]).error_message == f"parser process lost 5 times on pages 1-12: {died}"
    lose(world, ranges[1], 4)
    (task,) = world.claim(ranges[1])
    world.tasks.apply([GiveBack(task.held, "lose", 0, "parser_lost", died)])
    assert Task.get_by_id(ranges[1]).error_message == (
        f"executor or parser process lost 5 times on pages 13-24: {died}"
    )


def test_after_errors_and_outages(world: Teller) -> None:
    doc_id, ranges = world.started(2)
    (task,) = world.claim(ranges[0])
    world.tasks.apply([GiveBack(task.held, "retry", 12_000, "x", "the embedding endpoint answered 429")])
    said = world.says_at_once(doc_id, task.id, 12_000)
    assert said == "attempt 2 of 3 in 12 s: the embedding endpoint answered 429"
    (other,) = world.claim(ranges[1])
    assert world.says_at_once(doc_id, task.id, 12_000) == (
        "reading pages 13-24: starting; 0 of 2 tasks done;"
        " pages 1-12: attempt 2 of 3 in 12 s: the embedding endpoint answered 429"
    )
    world.tasks.apply([GiveBack(other.held, "wait", 5000, "index_unavailable", "the index is away")])
    said = world.says_at_once(doc_id, other.id, 5000)
    assert re.fullmatch(rf"waiting since {CLOCK}: the index is away; the next try in 5 s", said)


def test_paused(world: Teller) -> None:
    doc_id, ranges = world.started(2)
    (task,) = world.claim(ranges[0])
    world.control.pause([doc_id])
    assert world.says(doc_id) == (
        "paused: what is at work ends, the rest waits until it is resumed;"
        " reading pages 1-12: starting; 0 of 2 tasks done"
    )
    world.finish(task)
    assert world.says(doc_id) == "paused by the user until it is resumed; 1 of 2 tasks done"
    world.control.resume([doc_id])
    assert world.says(doc_id) == "waiting: it is the next in the queue; 1 of 2 tasks done"


def test_waiting_for_the_index(world: Teller) -> None:
    doc_id, ranges = world.started(1)
    world.finish(*world.claim(*ranges))
    assert world.says(doc_id) == "making its chunks findable"
    (finish,) = world.claim_all(doc_id)
    assert world.says(doc_id) == "making its chunks findable"
    world.tasks.apply([GiveBack(finish.held, "wait", 2000, "", "waiting until its last chunk can be found")])
    assert world.says_at_once(doc_id, finish.id, 2000) == (
        "making its chunks findable: the index has not taken in the last of them yet; the next look in 2 s"
    )


def test_stopped_and_failed_parses_after_one_that_went_well(world: Teller) -> None:
    doc_id, ranges = world.started(1)
    world.finish(*world.claim(*ranges), chunks=3)
    world.flip(doc_id)
    world.parsing.start([doc_id])
    world.parsing.stop([doc_id])
    assert world.says(doc_id) == (
        "stopped by the user; 3 chunks of the parse before can still be found; parse it again to go on"
    )
    world.parsing.start([doc_id])
    for task in world.claim_all(doc_id):
        world.tasks.apply([Fail(task.held, "unreadable_file", "page 3 is damaged")])
    world.flip(doc_id)
    assert world.says(doc_id) == "failed: page 3 is damaged; 3 chunks of the parse before can still be found"


def test_a_page_of_the_list_costs_a_fixed_number_of_queries(world: Teller, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    execute = world.rows.db.execute_sql

    def count(sql: str, *args: object) -> object:
        seen.append(sql)
        return execute(sql, *args)

    monkeypatch.setattr(world.rows.db, "execute_sql", count)

    def cost(documents: int) -> int:
        for number in range(documents):
            _, ranges = world.started(3)
            world.claim(ranges[0], owner=f"e-{number}:boot")
            world.tasks.hand_back(f"e-{number}:boot", "its process died")
        seen.clear()
        world.documents.page(world.tenant_id, world.kb_id, DocumentFilter())
        return len(seen)

    assert cost(1) == cost(8)
    assert len(seen) <= 14
