"""A task's states and the document that follows them, on SQLite and on MariaDB."""

from __future__ import annotations

import time
from functools import partial

import pytest

from api.db.database import Rows
from api.db.models import Knowledgebase, StaleChunks, Task, TaskEvent
from api.db.services.stale_service import StaleService
from api.db.services.task_requests import (
    BadRange,
    Claim,
    ClaimedTask,
    Continued,
    Fail,
    FinishDocument,
    FinishPrepare,
    FinishRange,
    GiveBack,
    GoOn,
    Held,
    NewRange,
    Progress,
    Renew,
    Written,
)
from api.db.services.task_service import Limits, TaskService
from common.ids import new_token
from common.task_state import PREPARE_TASK_NO, DocumentRun, TaskState, TaskType
from tests.at_once import at_once
from tests.world import PROFILE, World


@pytest.fixture
def world(rows: Rows) -> World:
    return World(rows)


def test_a_document_goes_from_parse_to_done(world: World) -> None:
    doc_id, ranges = world.started(2)
    assert world.rings == ["ring", "ring"]  # the parse, and the ranges of the prepared document
    assert (world.doc(doc_id).open_tasks, world.doc(doc_id).total_tasks) == (2, 2)
    first, second = world.claim(*ranges)
    assert (first.from_page, first.to_page, first.claim_no, first.digest) == (0, 12, 1, "digest0")
    assert world.finish(first, chunks=3, seq=7) is TaskState.DONE
    assert world.doc(doc_id).done_tasks == 1
    assert world.finish(second, chunks=5, seq=6) is TaskState.DONE
    assert len(world.rings) == 3  # the finish task
    (finish,) = world.claim_all(doc_id)
    assert (finish.task_type, finish.index_seq) == (TaskType.FINISH, 7)
    assert world.tasks.apply([FinishDocument(finish.held, 7)]) == [TaskState.DONE]
    doc = world.doc(doc_id)
    assert (doc.run, doc.active_generation, doc.visible_seq) == (DocumentRun.DONE, 1, 7)
    assert (doc.chunk_count, doc.token_count) == (8, 80)
    dataset = Knowledgebase.get_by_id(world.kb_id)
    assert (dataset.chunk_count, dataset.token_count) == (8, 80)


def test_only_one_of_two_claims_wins(world: World) -> None:
    doc_id, ranges = world.started(1)
    assert len(world.claim(*ranges, owner="e1:a")) == 1
    assert world.claim(*ranges, owner="e2:b") == []
    assert Task.get_by_id(ranges[0]).owner == "e1:a"
    assert world.doc(doc_id).run == DocumentRun.RUNNING


def test_a_claim_whose_commit_reply_was_lost_is_read_back(world: World) -> None:
    _, ranges = world.started(1)
    claim = Claim(tuple(ranges), "e1:a", new_token())
    (first,) = world.tasks.apply([claim])
    (again,) = world.tasks.apply([claim])
    assert first == again
    assert isinstance(again, list)
    assert again[0].claim_no == 1


def test_a_finish_that_is_sent_twice_counts_once(world: World) -> None:
    doc_id, ranges = world.started(2)
    first, _ = world.claim(*ranges)
    assert world.finish(first) is TaskState.DONE
    assert world.finish(first) is TaskState.DONE
    doc = world.doc(doc_id)
    assert (doc.done_tasks, doc.open_tasks, doc.run_chunks) == (1, 1, 3)


def test_a_finish_after_cancel_changes_nothing(world: World) -> None:
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    assert world.parsing.stop([doc_id]) == [doc_id]
    assert world.cancelled == [task.id]
    assert world.finish(task) is None
    assert Task.get_by_id(task.id).state == TaskState.CANCEL
    doc = world.doc(doc_id)
    assert (doc.run, doc.active_generation, doc.chunk_count) == (DocumentRun.CANCEL, 0, 0)
    assert world.pending(doc_id) == []
    assert world.parsing.stop([doc_id]) == []


def test_a_stopped_reparse_keeps_the_old_generation(world: World) -> None:
    doc_id, ranges = world.started(1)
    world.finish(*world.claim(*ranges))
    world.flip(doc_id)
    assert world.parsing.start([doc_id]) == [doc_id]
    doc = world.doc(doc_id)
    assert (doc.generation, doc.active_generation, doc.run) == (2, 1, DocumentRun.RUNNING)
    assert world.parsing.stop([doc_id]) == [doc_id]
    doc = world.doc(doc_id)
    assert (doc.run, doc.active_generation, doc.chunk_count) == (DocumentRun.CANCEL, 1, 3)


def test_a_known_file_is_split_at_once_and_the_old_generation_becomes_stale(world: World) -> None:
    doc_id, ranges = world.started(1)
    world.finish(*world.claim(*ranges))
    world.flip(doc_id)
    world.parsing.start([doc_id])
    claimed = world.claim_all(doc_id)
    assert [(t.task_type, t.from_page, t.to_page) for t in claimed] == [
        (TaskType.RANGE, 0, 12),
        (TaskType.RANGE, 12, 24),
    ]
    assert all(t.digest for t in claimed)
    for task in claimed:
        world.finish(task, chunks=2)
    world.flip(doc_id)
    assert world.doc(doc_id).active_generation == 2
    (line,) = StaleService(world.rows).due(10)
    assert (line.scope.document_id, line.scope.generation, line.scope.claim) == (doc_id, 1, None)
    assert Knowledgebase.get_by_id(world.kb_id).chunk_count == 4


def test_who_prepares_goes_on_with_the_first_range_and_who_reads_the_last_with_the_finish(world: World) -> None:
    doc_id = world.document()
    world.parsing.start([doc_id])
    (prepare,) = world.claim_all(doc_id)
    rings = len(world.rings)
    ending = FinishPrepare(
        prepare.held, PROFILE, (NewRange(0, 12, "d0"), NewRange(12, 24, "d1")), go_on=GoOn("e1:a", "second")
    )
    (ended,) = world.tasks.apply([ending])
    assert isinstance(ended, Continued)
    first = ended.task
    assert (first.task_type, first.from_page, first.token, first.claim_no) == (TaskType.RANGE, 0, "second", 1)
    assert (Task.get_by_id(first.id).state, Task.get_by_id(first.id).owner) == (TaskState.RUNNING, "e1:a")
    assert len(world.rings) == rings + 1  # the other range waits to be published
    assert world.tasks.apply([ending]) == [Continued(first)]  # the reply was lost
    (other,) = world.claim_all(doc_id)
    rings = len(world.rings)
    assert world.finish(first) is TaskState.DONE
    (ended,) = world.tasks.apply([FinishRange(other.held, Written(2, 20, 3), go_on=GoOn("e1:a", "third"))])
    assert isinstance(ended, Continued)
    assert (ended.task.task_type, ended.task.index_seq, ended.task.token) == (TaskType.FINISH, 7, "third")
    assert len(world.rings) == rings  # nothing waits
    assert [event.kind for event in TaskEvent.select().where(TaskEvent.task_id == ended.task.id)] == ["claim"]
    assert world.tasks.apply([FinishDocument(ended.task.held, 7)]) == [TaskState.DONE]
    assert world.doc(doc_id).run == DocumentRun.DONE


def test_of_two_that_read_the_last_ranges_in_one_batch_one_goes_on(world: World) -> None:
    _, ranges = world.started(2)
    claimed = world.claim(*ranges)
    endings = [
        FinishRange(task.held, Written(1, 10, 1), go_on=GoOn("e1:a", f"next{place}"))
        for place, task in enumerate(claimed)
    ]
    first, second = world.tasks.apply(endings)
    assert isinstance(first, Continued)
    assert (first.task.task_type, second) == (TaskType.FINISH, TaskState.DONE)


def test_nobody_goes_on_with_a_paused_or_stopped_document(world: World) -> None:
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    world.control.pause([doc_id])
    go_on = GoOn("e1:a", new_token())
    assert world.tasks.apply([FinishRange(task.held, Written(1, 10, 1), go_on=go_on)]) == [TaskState.DONE]
    finish = Task.get(Task.doc_id == doc_id, Task.task_type == TaskType.FINISH)
    assert finish.state == TaskState.PAUSED
    stopped_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    world.parsing.stop([stopped_id])
    assert world.tasks.apply([FinishRange(task.held, Written(1, 10, 1), go_on=go_on)]) == [None]


def test_a_second_parse_while_one_runs_is_refused(world: World) -> None:
    doc_id, _ = world.started(1)
    assert world.parsing.start([doc_id]) == []
    assert world.doc(doc_id).generation == 1


def test_a_document_of_one_range_is_prepared_and_read_in_one_go(world: World) -> None:
    doc_id = world.document()
    world.parsing.start([doc_id])
    (prepare,) = world.claim_all(doc_id)
    assert prepare.task_no == PREPARE_TASK_NO
    done = FinishPrepare(prepare.held, PROFILE, (), Written(4, 40, 9))
    assert world.tasks.apply([done]) == [TaskState.DONE]
    assert world.flip(doc_id) is TaskState.DONE
    assert (world.doc(doc_id).chunk_count, world.doc(doc_id).run) == (4, DocumentRun.DONE)


def test_a_retry_uses_an_attempt_waits_and_makes_the_claim_stale(world: World) -> None:
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    assert world.tasks.apply([GiveBack(task.held, "retry", 60_000, "x", "it went wrong")]) == [TaskState.PENDING]
    row = Task.get_by_id(task.id)
    assert (row.attempt, row.losses, row.retry_count, row.published_at) == (1, 0, 1, 0)
    assert (row.error_code, row.error_message) == ("x", "it went wrong")
    assert world.claim(task.id) == []  # its time has not come
    assert StaleService(world.rows).lost_claims([doc_id]) == {doc_id: {(1, 0, 1)}}


def test_a_wait_uses_no_attempt_and_remembers_since_when(world: World) -> None:
    _, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    world.tasks.apply([GiveBack(task.held, "wait", 0, "outage", "the index is away")])
    (again,) = world.claim(task.id)
    assert (again.attempt, again.losses) == (0, 0)
    assert again.waiting_since > 0
    world.tasks.apply([GiveBack(again.held, "wait", 0, "outage", "the index is away")])
    (third,) = world.claim(task.id)
    assert third.waiting_since == again.waiting_since


def test_a_finish_task_that_waits_makes_no_range_stale(world: World) -> None:
    doc_id, ranges = world.started(1)
    world.finish(*world.claim(*ranges))
    (finish,) = world.claim_all(doc_id)
    world.tasks.apply([GiveBack(finish.held, "wait", 0)])
    assert StaleService(world.rows).due(10) == []
    assert world.flip(doc_id) is TaskState.DONE


def test_a_drain_counts_nothing(world: World) -> None:
    _, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    world.tasks.apply([GiveBack(task.held, "drain")])
    row = Task.get_by_id(task.id)
    assert (row.state, row.attempt, row.losses, row.retry_count) == (TaskState.PENDING, 0, 0, 0)


def test_a_failed_range_does_not_stop_its_siblings_and_the_document_fails_at_the_end(world: World) -> None:
    doc_id, ranges = world.started(2)
    first, second = world.claim(*ranges)
    assert world.tasks.apply([Fail(first.held, "unreadable_file", "page 3 is damaged")]) == [TaskState.FAIL]
    assert world.doc(doc_id).run == DocumentRun.RUNNING
    world.finish(second, chunks=5)
    world.flip(doc_id)
    doc = world.doc(doc_id)
    assert (doc.run, doc.error_code, doc.error_message) == (DocumentRun.FAIL, "unreadable_file", "page 3 is damaged")
    assert (doc.active_generation, doc.chunk_count) == (1, 5)  # a first parse stays searchable as far as it came


def test_a_failed_reparse_never_flips(world: World) -> None:
    doc_id, ranges = world.started(1)
    world.finish(*world.claim(*ranges), chunks=3)
    world.flip(doc_id)
    world.parsing.start([doc_id])
    for task in world.claim_all(doc_id):
        world.tasks.apply([Fail(task.held, "x", "bad")])
    world.flip(doc_id)
    doc = world.doc(doc_id)
    assert (doc.run, doc.active_generation, doc.chunk_count) == (DocumentRun.FAIL, 1, 3)
    assert Knowledgebase.get_by_id(world.kb_id).chunk_count == 3


def test_a_lost_lease_goes_back_and_the_zombie_changes_nothing(rows: Rows) -> None:
    world = World(rows, lease_ms=-1)
    doc_id, ranges = world.started(1)
    (zombie,) = world.claim(*ranges)
    assert world.tasks.reap() == 1
    world.tasks = TaskService(rows, Limits(15_000, 5), lambda: None)
    (heir,) = world.claim(*ranges, owner="e2:b")
    assert (heir.losses, heir.claim_no) == (1, 2)
    assert world.finish(zombie) is None
    assert world.tasks.apply([Renew((zombie.held,))]) == [set()]
    assert world.finish(heir) is TaskState.DONE
    assert world.doc(doc_id).done_tasks == 1
    assert StaleService(rows).lost_claims([doc_id]) == {doc_id: {(1, 0, 1)}}


def test_a_task_that_is_lost_too_often_fails(rows: Rows) -> None:
    world = World(rows, lease_ms=-1)
    doc_id, ranges = world.started(1)
    for _ in range(5):
        assert len(world.claim(*ranges)) == 1
        assert world.tasks.reap() == 1
    row = Task.get_by_id(ranges[0])
    assert row.state == TaskState.FAIL
    assert "lost 5 times" in row.error_message
    world.flip(doc_id)
    assert world.doc(doc_id).run == DocumentRun.FAIL


def test_a_dead_childs_tasks_are_handed_back_and_nobody_elses(world: World) -> None:
    _, ranges = world.started(2)
    (mine,) = world.claim(ranges[0], owner="e1:boot1")
    (other,) = world.claim(ranges[1], owner="e1:boot2")
    assert world.tasks.hand_back("e1:boot1", "its process died") == 1
    assert Task.get_by_id(mine.id).state == TaskState.PENDING
    assert Task.get_by_id(other.id).state == TaskState.RUNNING


def test_renewal_names_tokens_and_an_unchanged_one_still_holds(world: World) -> None:
    _, ranges = world.started(2)
    claimed = world.claim(*ranges)
    held = tuple(t.held for t in claimed)
    stranger = Held(claimed[0].id, new_token(), claimed[0].document_id)
    assert world.tasks.apply([Renew(held), Renew(held), Renew((stranger,))]) == [set(ranges), set(ranges), set()]


def test_progress_never_touches_a_task_that_ended(world: World) -> None:
    _, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    world.tasks.apply([Progress(task.held, 0.5, "parsing")])
    assert (Task.get_by_id(task.id).progress, Task.get_by_id(task.id).progress_msg) == (0.5, "parsing")
    world.finish(task)
    world.tasks.apply([Progress(task.held, 0.7, "late")])
    assert (Task.get_by_id(task.id).progress, Task.get_by_id(task.id).progress_msg) == (1.0, "")


def test_a_whole_batch_is_one_transaction_and_keeps_every_answer_apart(world: World) -> None:
    doc_id, ranges = world.started(4)
    first, second, third, fourth = world.claim(*ranges)
    other_doc, other = world.started(1)
    answers = world.tasks.apply(
        [
            FinishRange(first.held, Written(1, 10, 1)),
            Claim(tuple(other), "e1:boot", new_token()),
            FinishRange(Held(second.id, new_token(), doc_id), Written(9, 9, 9)),
            Fail(third.held, "x", "bad"),
            Renew((fourth.held,)),
            FinishRange(fourth.held, Written(2, 20, 3)),
        ]
    )
    assert answers[0] is TaskState.DONE
    assert isinstance(answers[1], list)
    assert isinstance(answers[1][0], ClaimedTask)
    assert answers[2] is None
    assert answers[3] is TaskState.FAIL
    assert answers[4] == {fourth.id}
    assert answers[5] is TaskState.DONE
    doc = world.doc(doc_id)
    assert (doc.open_tasks, doc.done_tasks, doc.failed_tasks, doc.run_chunks) == (1, 2, 1, 3)
    assert world.doc(other_doc).open_tasks == 1


def test_only_ranges_that_lacked_nothing_are_kept_for_reuse(world: World) -> None:
    doc_id, ranges = world.started(3)
    world.rows.execute("UPDATE task SET digest = id WHERE doc_id = ?", (doc_id,))
    whole, cut_short, with_a_bad_page = world.claim(*ranges)
    bad = BadRange(0, 1, "parser_lost", "the parser process died")
    world.tasks.apply(
        [
            FinishRange(whole.held, Written(1, 10, 1)),
            FinishRange(cut_short.held, Written(1, 10, 1, is_whole=False)),
            FinishRange(with_a_bad_page.held, Written(1, 10, 1, (bad,))),
        ]
    )
    assert world.rows.rows("SELECT digest FROM range_result WHERE doc_id = ?", (doc_id,)) == [(whole.id,)]


def test_the_timeline_tells_what_happened(world: World) -> None:
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    world.tasks.apply([GiveBack(task.held, "retry", 0, "x", "once")])
    world.finish(*world.claim(*ranges))
    events = TaskEvent.select().where(TaskEvent.task_id == task.id).order_by(TaskEvent.id)
    assert [(e.kind, e.claim_no, e.message) for e in events] == [
        ("claim", 1, ""),
        ("retry", 1, "once"),
        ("claim", 2, ""),
        ("done", 2, ""),
    ]
    assert all(e.doc_id == doc_id and e.at_ms > 0 for e in events)


def test_last_two_finishers_at_once_insert_one_finish_task(world: World) -> None:
    for _ in range(5):
        doc_id, ranges = world.started(2)
        at_once(*[partial(world.finish, task) for task in world.claim(*ranges)], rows=world.rows)
        finishing = [t for t in world.tasks_of(doc_id) if t.task_type == TaskType.FINISH]
        assert len(finishing) == 1


def test_claims_race_and_each_task_has_one_winner(world: World) -> None:
    _, ranges = world.started(40)
    won: list[str] = []

    def claim(owner: str) -> None:
        for task_id in ranges:
            won.extend(t.id for t in world.claim(task_id, owner=owner))

    at_once(*[partial(claim, f"e{n}:boot") for n in range(4)], rows=world.rows)
    assert sorted(won) == sorted(ranges)


def test_the_databases_clock_is_utc_milliseconds(rows: Rows) -> None:
    assert abs(rows.clock() - time.time() * 1000) < 5_000


def test_stale_lines_are_forgotten_one_by_one(world: World) -> None:
    _, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    world.tasks.apply([GiveBack(task.held, "lose", 0, "parser_lost", "it died")])
    stale = StaleService(world.rows)
    (line,) = stale.due(5)
    assert line.scope.claim == (0, 1)
    stale.forget(line)
    assert StaleChunks.select().count() == 0
