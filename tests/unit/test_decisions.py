"""Pure decisions of the engine: the tables of states, what an error leads to, and the fence."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.db.services.task_requests import ClaimedTask, Fail, GiveBack
from common import errors
from common.settings import TaskSettings
from common.task_state import (
    DOCUMENT_TRANSITIONS,
    TASK_TRANSITIONS,
    TERMINAL_TASK_STATES,
    DocumentRun,
    TaskState,
    TaskType,
    chunk_task_no,
    from_states_sql,
    set_state_sql,
)
from rag.svr.fence import Fence, steady_s
from rag.svr.retry import as_known, backoff_ms, decide

TASK = ClaimedTask(
    id="t", token="k", claim_no=1, task_type=TaskType.RANGE, tenant_id="u", dataset_id="d", document_id="doc",
    generation=1, from_page=0, to_page=12, attempt=0, losses=0, waiting_since=0, begin_at=1_000_000, digest="",
    file_digest="", file_name="", chunk_method="naive", parser_config="{}", profile=None, embedding_model="m",
    index_seq=0,
)  # fmt: skip
SETTINGS = TaskSettings()


def test_only_replay_leaves_a_terminal_state_and_nothing_leaves_cancel_or_done() -> None:
    leaving = {t.name for t in TASK_TRANSITIONS.values() if set(t.sources) & set(TERMINAL_TASK_STATES)}
    assert leaving == {"replay"}
    for final in (TaskState.CANCEL, TaskState.DONE):
        assert not any(final in t.sources for t in TASK_TRANSITIONS.values())


def test_every_state_can_be_reached_and_only_an_executor_finishes() -> None:
    assert {t.target for t in TASK_TRANSITIONS.values()} == set(TaskState)
    assert {t.target for t in DOCUMENT_TRANSITIONS.values()} == set(DocumentRun)
    assert TASK_TRANSITIONS["finish"].who == "executor"


def test_the_sql_is_made_from_the_table() -> None:
    cancel = TASK_TRANSITIONS["cancel"]
    assert set_state_sql(cancel) == "state = 3"
    assert from_states_sql(cancel) == "state IN (0, 1, 2)"
    assert from_states_sql(DOCUMENT_TRANSITIONS["flip"], "run") == "run = 1"


def test_a_prepare_tasks_chunks_are_never_taken_for_a_ranges() -> None:
    assert chunk_task_no(TaskType.PREPARE, 0) != chunk_task_no(TaskType.RANGE, 0)


def test_every_error_has_a_code_of_its_own_and_comes_back_from_it() -> None:
    codes = [cls.code for cls in errors.BY_CODE.values()]
    assert len(set(codes)) == len(codes) > 15
    for code, cls in errors.BY_CODE.items():
        assert type(errors.from_code(code, "m")) is cls
    assert isinstance(errors.from_code("never heard of", "m"), errors.AttemptFailed)


@pytest.mark.parametrize("error", [errors.EncryptedFile("x"), errors.PagesOutside("x"), errors.NotFound("x")])
def test_a_permanent_error_fails_at_once(error: errors.PagemillError) -> None:
    assert decide(TASK, error, SETTINGS, 0.5) == Fail(TASK.held, error.code, "x")


def test_own_errors_have_three_attempts() -> None:
    endings = [
        decide(msgspec.structs.replace(TASK, attempt=n), errors.AttemptFailed("bad"), SETTINGS, 0.5) for n in range(3)
    ]
    assert [type(e) for e in endings] == [GiveBack, GiveBack, Fail]
    assert isinstance(endings[0], GiveBack)
    assert endings[0].transition == "retry"
    assert isinstance(endings[2], Fail)
    assert "attempt 3 of 3" in endings[2].message


def test_an_outage_waits_until_patience_ends() -> None:
    waiting = decide(msgspec.structs.replace(TASK, attempt=2), errors.IndexUnavailable("away"), SETTINGS, 0.5)
    assert isinstance(waiting, GiveBack)
    assert waiting.transition == "wait"
    long_ago = msgspec.structs.replace(TASK, waiting_since=1, begin_at=3_700_000)
    given_up = decide(long_ago, errors.IndexUnavailable("away"), SETTINGS, 0.5)
    assert isinstance(given_up, Fail)
    assert "gave up after waiting 3699 s" in given_up.message


def test_a_dead_parser_is_a_loss_and_a_lost_lease_is_nobodys_business() -> None:
    lost = decide(TASK, errors.ParserLost("died"), SETTINGS, 0.5)
    assert isinstance(lost, GiveBack)
    assert lost.transition == "lose"
    assert decide(TASK, errors.LeaseLost("gone"), SETTINGS, 0.5) is None


def test_an_unforeseen_error_says_its_kind_and_nothing_more() -> None:
    error = as_known(KeyError("secret"))
    assert isinstance(error, errors.AttemptFailed)
    assert "KeyError" in error.public_message
    assert "secret" not in error.public_message


@given(times=st.integers(0, 1000), jitter=st.floats(0, 1))
def test_backoff_is_bounded_and_never_zero(times: int, jitter: float) -> None:
    wait_ms = backoff_ms(SETTINGS, times, jitter)
    assert 1000 <= wait_ms <= SETTINGS.backoff_max_s * 1000


def test_a_fence_holds_from_before_the_claim_was_sent() -> None:
    fence = Fence(10.0, steady_s() - 8.0)
    fence.check()
    fence.renewed(steady_s() - 20.0)  # an old answer that came late does not shorten it
    assert 0 < fence.remaining_s <= 1.0
    with pytest.raises(errors.LeaseLost):
        Fence(10.0, steady_s() - 9.5).check()
