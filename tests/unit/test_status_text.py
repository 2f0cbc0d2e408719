"""The sentence and the number that say where a document is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from api.db.services.status_text import OpenTask, StatusFacts, progress_of, status_text
from common.task_state import DocumentRun, TaskState, TaskType
from rag.parser.blocks import Unit

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
    now_ms=100_000,
    max_attempts=3,
)
RUNNING = OpenTask("t", TaskType.RANGE, 12, 24, TaskState.RUNNING, 0.5, "parsing", 0, 0, 0, "", "")
WAITING = replace(
    RUNNING, state=TaskState.PENDING, progress=0.0, stage="", error_code="attempt_failed", error_message="a hiccup"
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"run": DocumentRun.UNSTART}, ""),
        ({"run": DocumentRun.CANCEL}, "stopped by the user"),
        ({"run": DocumentRun.DONE}, "done: 40 chunks from 12 pages in 1.3 s"),
        ({"run": DocumentRun.DONE, "units": 1, "chunk_count": 1}, "done: 1 chunk from 1 page in 1.3 s"),
        ({"run": DocumentRun.DONE, "unit": Unit.WHOLE}, "done: 40 chunks from the file in 1.3 s"),
        (
            {"run": DocumentRun.DONE, "chunk_count": 0},
            "done: no text was found in 12 pages; scanned pages need OCR, which is not available",
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
        ({"queued_before": 3}, "waiting: 3 tasks are queued before it"),
        ({"queued_before": 1}, "waiting: 1 task is queued before it"),
        ({"queued_before": 0}, "waiting: it is the next in the queue"),
        ({"queued_before": 1000}, "waiting: 1000 tasks or more are queued before it"),
        ({}, "waiting; 2 of 5 tasks done"),
        ({"is_paused": True}, "paused; 2 of 5 tasks done"),
        ({"tasks": [RUNNING]}, "reading pages 13-24: parsing; 2 of 5 tasks done"),
        ({"tasks": [RUNNING], "is_paused": True}, "reading pages 13-24: parsing; 2 of 5 tasks done"),
        ({"tasks": [replace(RUNNING, stage="", to_page=13)]}, "reading page 13: starting; 2 of 5 tasks done"),
        ({"tasks": [replace(RUNNING, task_type=TaskType.PREPARE, stage="x")]}, "reading the file: x"),
        ({"tasks": [replace(RUNNING, task_type=TaskType.FINISH)]}, "making its chunks findable"),
        ({"tasks": [replace(WAITING, task_type=TaskType.FINISH)]}, "making its chunks findable"),
        (
            {"tasks": [replace(WAITING, attempt=1, run_after_ms=111_500)]},
            "attempt 2 of 3 starts in 12 s: a hiccup",
        ),
        ({"tasks": [replace(WAITING, attempt=2)]}, "attempt 3 of 3 is queued: a hiccup"),
        (
            {"tasks": [replace(WAITING, waiting_since_ms=1, run_after_ms=101_000)]},
            "waiting for a part of the system to come back, the next try starts in 1 s: a hiccup",
        ),
        ({"tasks": [WAITING]}, "queued again: a hiccup"),
    ],
)
def test_sentence(changes: dict[str, Any], expected: str) -> None:
    assert status_text(replace(FACTS, **changes)) == expected


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
