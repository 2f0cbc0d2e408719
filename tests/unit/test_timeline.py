"""The strip of a document's ranges, the attempts of a task, and what is advised about its errors."""

from __future__ import annotations

import pytest

from api.db.services.advice import advice
from api.db.services.timeline_views import EventLine, ShownState, Span, attempts_of, merged, shown_state
from common.errors import BY_CODE
from common.task_state import TaskState

DONE, FAILED, WAITING = ShownState.DONE, ShownState.FAILED, ShownState.WAITING


def line(kind: str, at_ms: int, claim_no: int = 1, code: str = "", **stages: float) -> EventLine:
    return EventLine("t", at_ms, kind, claim_no, f"e{claim_no}", code, "why" if code else "", stages)


def test_neighbours_in_one_state_are_one_piece() -> None:
    spans = [Span(0, 12, DONE), Span(12, 24, DONE), Span(24, 36, FAILED), Span(36, 40, DONE), Span(50, 60, DONE)]
    assert merged(spans) == [Span(0, 24, DONE, 2), Span(24, 36, FAILED), Span(36, 40, DONE), Span(50, 60, DONE)]
    assert merged([]) == []


def test_a_long_strip_is_bounded_and_hides_no_failure() -> None:
    states = [DONE, WAITING] * 5000
    states[7001] = FAILED
    strip = merged([Span(n, n + 1, state) for n, state in enumerate(states)], 100)
    assert len(strip) <= 100
    assert sum(span.tasks for span in strip) == 10_000
    assert (strip[0].first, strip[-1].end) == (0, 10_000)
    (failed,) = [span for span in strip if span.state is FAILED]
    assert failed.first <= 7001 < failed.end


def test_every_state_of_a_task_is_shown() -> None:
    for state in TaskState:
        assert shown_state(state, reused=False, is_partial=False) in ShownState
    assert shown_state(TaskState.DONE, reused=True, is_partial=False) is ShownState.REUSED
    assert shown_state(TaskState.DONE, reused=True, is_partial=True) is ShownState.PARTIAL
    assert shown_state(TaskState.FAIL, reused=True, is_partial=True) is FAILED


def test_an_attempt_is_a_claim_and_what_became_of_it() -> None:
    lines = [
        *(line("claim", 10), line("lose", 20, code="executor_lost"), line("claim", 30, 2)),
        *(line("retry", 35, 2, "attempt_failed"), line("claim", 40, 3), line("done", 50, 3, parsing=0.5)),
    ]
    found = attempts_of(lines, 3, is_running=False)
    assert [(a.number, a.executor, a.started_ms, a.ended_ms, a.outcome, a.error_code) for a in found] == [
        (1, "e1", 10, 20, "lost", "executor_lost"),
        (2, "e2", 30, 35, "retried", "attempt_failed"),
        (3, "e3", 40, 50, "done", ""),
    ]
    assert found[2].stages == {"parsing": 0.5}


def test_a_claim_without_an_end_is_shown_only_while_it_runs() -> None:
    lines = [line("claim", 10), line("claim", 20, 2)]
    assert [(a.number, a.outcome) for a in attempts_of(lines, 2, is_running=True)] == [(2, "running")]
    assert attempts_of(lines, 2, is_running=False) == ()


@pytest.mark.parametrize("code", [*BY_CODE, "executor_lost", "never heard of"])
def test_something_is_advised_about_every_error(code: str) -> None:
    assert advice(code).endswith((".", "log."))
    assert len(advice(code)) > 20
