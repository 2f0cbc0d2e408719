"""The sentence and the number that say where a document is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from api.db.services.spoken import about_text, clock_text
from api.db.services.status_facts import Loss, OpenTask, StatusFacts
from api.db.services.status_text import progress_of, status_text
from common.task_state import DocumentRun, TaskState, TaskType
from rag.parser.blocks import Unit

# 2026-03-04 10:04:11 UTC
LOST_MS = 1_772_618_651_000
NOW_MS = LOST_MS + 20_000
FACTS = StatusFacts(
    run=DocumentRun.RUNNING,
    is_paused=False,
    is_searchable_run=True,
    unit=Unit.PAGE,
    units=12,
    done_tasks=2,
    total_tasks=5,
    run_chunks=7,
    chunk_count=40,
    duration_s=1.26,
    error_message="page 3 is damaged",
    error_code="unreadable_file",
    now_ms=NOW_MS,
    max_attempts=3,
)
RUNNING = OpenTask(
    id="t",
    task_type=TaskType.RANGE,
    from_page=12,
    to_page=24,
    state=TaskState.RUNNING,
    progress=0.5,
    stage="parsing",
    attempt=0,
    run_after_ms=0,
    waiting_since_ms=0,
    executor="e-9",
    begin_ms=NOW_MS - 1000,
    lease_until_ms=NOW_MS + 15_000,
    claim_no=1,
    error_code="",
    error_message="",
)
WAITING = replace(
    RUNNING,
    state=TaskState.PENDING,
    progress=0.0,
    stage="",
    executor="",
    error_code="attempt_failed",
    error_message="a hiccup",
)
PREPARE = replace(RUNNING, task_type=TaskType.PREPARE, from_page=0, to_page=0)
FINISH = replace(WAITING, task_type=TaskType.FINISH, from_page=0, to_page=0, error_code="", claim_no=0)
LOSS = Loss("e-7", LOST_MS)
LOST = replace(WAITING, error_code="executor_lost", loss=LOSS)
AGAIN = replace(RUNNING, error_code="executor_lost", loss=LOSS)
NOBODY = "no executor is running: start one with `pagemill up` or `pagemill executor`"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"run": DocumentRun.UNSTART}, ""),
        ({"run": DocumentRun.CANCEL, "done_tasks": 0}, "stopped by the user; parse it again to go on"),
        (
            {"run": DocumentRun.CANCEL, "former_chunks": 40},
            "stopped by the user with 2 of 5 tasks done; 40 chunks of the parse before can still be found;"
            " parse it again to go on",
        ),
        ({"run": DocumentRun.DONE}, "done: 40 chunks from 12 pages in 1.3 s"),
        ({"run": DocumentRun.DONE, "units": 1, "chunk_count": 1}, "done: 1 chunk from 1 page in 1.3 s"),
        ({"run": DocumentRun.DONE, "unit": Unit.WHOLE}, "done: 40 chunks from the file in 1.3 s"),
        (
            {"run": DocumentRun.DONE, "chunk_count": 0, "run_chunks": 0},
            "done: no text was found in 12 pages; scans are read unless `layout_recognize` is Plain Text",
        ),
        (
            {"run": DocumentRun.DONE, "chunk_count": 0, "run_chunks": 40},
            "done, but all of its chunks were deleted; parse it again to get them back",
        ),
        (
            {"run": DocumentRun.DONE, "reused_tasks": 4, "bad_pages": [(6, 7, "it died (signal 11)")]},
            "done: 40 chunks from 12 pages in 1.3 s; 4 of 5 tasks reused;"
            " but page 7 could not be read: it died (signal 11)",
        ),
        (
            {"run": DocumentRun.DONE, "bad_pages": [(n, n + 1, "bad") for n in range(5)]},
            "done: 40 chunks from 12 pages in 1.3 s; but page 1 could not be read: bad; page 2 could not be read: bad;"
            " page 3 could not be read: bad; and 2 more",
        ),
        ({"run": DocumentRun.FAIL, "chunk_count": 0}, "failed: page 3 is damaged"),
        ({"run": DocumentRun.FAIL}, "failed: page 3 is damaged; 40 chunks of the rest can be found"),
        ({"run": DocumentRun.FAIL, "is_searchable_run": False}, "failed: page 3 is damaged"),
        (
            {"run": DocumentRun.FAIL, "is_searchable_run": False, "former_chunks": 40},
            "failed: page 3 is damaged; 40 chunks of the parse before can still be found",
        ),
        (
            {
                "run": DocumentRun.FAIL,
                "error_code": "executor_lost",
                "error_message": "executor lost 5 times on pages 13-24",
            },
            "failed: executor lost 5 times on pages 13-24; 40 chunks of the rest can be found;"
            " replay its failed tasks, or parse it again",
        ),
    ],
)
def test_sentence_of_one_that_has_ended(changes: dict[str, Any], expected: str) -> None:
    assert status_text(replace(FACTS, **changes)) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"queued_before": 34}, "waiting: 34 tasks of other documents are ahead"),
        ({"queued_before": 34, "queued_s": 41.0}, "waiting: 34 tasks of other documents are ahead, about 40 s"),
        ({"queued_before": 1, "queued_s": 0.2}, "waiting: 1 task of another document is ahead, about 1 s"),
        ({"queued_before": 0, "queued_s": 0.0}, "waiting: it is the next in the queue"),
        ({"queued_before": 1000}, "waiting: 1000 tasks or more of other documents are ahead"),
        (
            {"queued_before": 1000, "queued_s": 200.0},
            "waiting: 1000 tasks or more of other documents are ahead, more than 3 min",
        ),
        (
            {"queued_before": 3, "queued_s": 5.0, "done_tasks": 2},
            "waiting: 3 tasks of other documents are ahead, about 5 s; 2 of 5 tasks done",
        ),
        (
            {"queued_before": 0, "failed_tasks": 1},
            "waiting: it is the next in the queue; 0 of 5 tasks done, 1 failed (page 3 is damaged)",
        ),
        ({}, "waiting; 0 of 5 tasks done"),
        ({"is_executor_there": False, "queued_before": 3}, f"{NOBODY}; 0 of 5 tasks done"),
        ({"is_executor_there": False, "tasks": [RUNNING]}, f"{NOBODY}; 0 of 5 tasks done"),
        ({"is_paused": True}, "paused by the user until it is resumed; 0 of 5 tasks done"),
        ({"is_paused": True, "is_executor_there": False}, "paused by the user until it is resumed; 0 of 5 tasks done"),
        (
            {"is_paused": True, "tasks": [RUNNING]},
            "paused: what is at work ends, the rest waits until it is resumed;"
            " reading pages 13-24: parsing; 0 of 5 tasks done",
        ),
    ],
)
def test_sentence_of_one_that_waits(changes: dict[str, Any], expected: str) -> None:
    assert status_text(replace(FACTS, **{"done_tasks": 0} | changes)) == expected


@pytest.mark.parametrize(
    ("tasks", "changes", "expected"),
    [
        ([RUNNING], {}, "reading pages 13-24: parsing; 2 of 5 tasks done"),
        ([RUNNING], {"left_s": 38.0}, "reading pages 13-24: parsing; 2 of 5 tasks done, about 40 s left"),
        ([RUNNING], {"left_s": 0.5}, "reading pages 13-24: parsing; 2 of 5 tasks done"),
        ([RUNNING], {"failed_tasks": 1, "error_message": "executor lost 5 times on pages 1-12", "left_s": 5},
         "reading pages 13-24: parsing; 2 of 5 tasks done, 1 failed (executor lost 5 times on pages 1-12),"
         " about 5 s left"),
        ([replace(RUNNING, stage="", to_page=13)], {}, "reading page 13: starting; 2 of 5 tasks done"),
        ([replace(RUNNING, attempt=1)], {}, "reading pages 13-24: parsing, attempt 2 of 3; 2 of 5 tasks done"),
        ([RUNNING, replace(WAITING, from_page=24, to_page=36, attempt=1, run_after_ms=NOW_MS + 11_500)], {},
         "reading pages 13-24: parsing; 2 of 5 tasks done; pages 25-36: attempt 2 of 3 in 12 s: a hiccup"),
        ([replace(PREPARE, stage="looking at the file")], {}, "reading the file: looking at the file"),
        ([PREPARE], {"left_s": 8.2}, "reading the file: parsing, about 8 s left"),
        ([replace(RUNNING, task_type=TaskType.FINISH)], {}, "making its chunks findable"),
        ([FINISH], {}, "making its chunks findable"),
        ([replace(FINISH, claim_no=3, run_after_ms=NOW_MS + 800)], {},
         "making its chunks findable: the index has not taken in the last of them yet; the next look in 1 s"),
        ([replace(FINISH, error_code="index_unavailable", error_message="the index is away",
                  waiting_since_ms=LOST_MS)], {},
         "waiting since 10:04:11 UTC: the index is away; the next try is queued"),
        ([replace(WAITING, attempt=1, run_after_ms=NOW_MS + 11_500)], {}, "attempt 2 of 3 in 12 s: a hiccup"),
        ([replace(WAITING, attempt=2)], {}, "attempt 3 of 3 is queued: a hiccup"),
        ([replace(WAITING, waiting_since_ms=LOST_MS, run_after_ms=NOW_MS + 1000)], {},
         "waiting since 10:04:11 UTC: a hiccup; the next try in 1 s"),
        ([WAITING], {}, "a new start is queued: a hiccup"),
    ],
)  # fmt: skip
def test_sentence_of_one_at_work_or_in_trouble(tasks: list[OpenTask], changes: dict[str, Any], expected: str) -> None:
    assert status_text(replace(FACTS, tasks=tasks, **changes)) == expected


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([LOST], "pages 13-24 wait to be started again"),
        ([replace(LOST, to_page=13)], "page 13 waits to be started again"),
        ([replace(PREPARE, state=TaskState.PENDING, loss=LOSS)], "the file waits to be started again"),
        ([replace(FINISH, loss=LOSS)], "the last step waits to be started again"),
        ([LOST, replace(LOST, from_page=0, to_page=12), replace(LOST, from_page=24, to_page=36)],
         "pages 1-12 and 2 more ranges wait to be started again"),
        ([AGAIN], "pages 13-24 started again on e-9"),
        ([replace(RUNNING, from_page=0), AGAIN], "pages 13-24 started again on e-9"),
        ([AGAIN, replace(LOST, from_page=0, to_page=12)], "pages 13-24 started again on e-9, 1 more not yet"),
        ([AGAIN, replace(AGAIN, from_page=24, to_page=36, executor="e-10")],
         "pages 13-24 and 1 more range started again on e-10, e-9"),
        ([replace(AGAIN, executor=f"e-{n}") for n in range(4)],
         "pages 13-24 and 3 more ranges started again on 4 others"),
        ([LOST, replace(AGAIN, loss=Loss("e-3", LOST_MS - 5000))], "pages 13-24 wait to be started again"),
    ],
)  # fmt: skip
def test_sentence_after_the_loss_of_an_executor(tasks: list[OpenTask], expected: str) -> None:
    said = status_text(replace(FACTS, tasks=tasks))
    assert said == f"executor e-7 was lost at 10:04:11 UTC; {expected}; 2 of 5 tasks done"


def test_sentence_while_a_lease_is_over_and_nobody_has_taken_the_task_back() -> None:
    silent = replace(RUNNING, lease_until_ms=LOST_MS)
    assert status_text(replace(FACTS, tasks=[silent])) == (
        "executor e-9 is not heard of, its lease ended at 10:04:11 UTC; pages 13-24 start again on another;"
        " 2 of 5 tasks done"
    )
    beside = replace(RUNNING, from_page=0, to_page=12)
    assert status_text(replace(FACTS, tasks=[silent, beside])).startswith("reading pages 1-12")


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.0, "1 s"), (4.7, "5 s"), (9.4, "9 s"), (9.6, "10 s"), (37, "40 s"), (54, "50 s"), (56, "1 min"),
        (170, "3 min"), (569, "9 min"), (571, "10 min"), (1900, "30 min"),
        (3400, "1 h"), (7000, "2 h"), (200_000, "2 days"),
    ],
)  # fmt: skip
def test_times_are_rounded_as_people_speak(seconds: float, expected: str) -> None:
    assert about_text(seconds) == expected


def test_a_time_of_another_day_has_its_date() -> None:
    assert clock_text(LOST_MS, LOST_MS + 3_600_000) == "10:04:11 UTC"
    assert clock_text(LOST_MS, LOST_MS + 86_400_000) == "2026-03-04 10:04:11 UTC"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"run": DocumentRun.UNSTART}, 0.0),
        ({"run": DocumentRun.CANCEL}, 0.0),
        ({"run": DocumentRun.DONE}, 1.0),
        ({"run": DocumentRun.FAIL}, -1.0),
        ({}, 0.4),
        ({"tasks": [RUNNING, RUNNING]}, 0.6),
        ({"tasks": [WAITING]}, 0.4),
        ({"done_tasks": 5, "tasks": [replace(RUNNING, task_type=TaskType.FINISH)]}, 0.99),
        ({"total_tasks": 0, "done_tasks": 0}, 0.0),
    ],
)
def test_progress(changes: dict[str, Any], expected: float) -> None:
    assert progress_of(replace(FACTS, **changes)) == expected
