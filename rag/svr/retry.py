"""What becomes of a task that met an error: a pure decision."""

from __future__ import annotations

from api.db.services.task_requests import ClaimedTask, Fail, GiveBack
from common.errors import AttemptFailed, Outage, PagemillError, Verdict
from common.settings import TaskSettings

_LONGEST_DOUBLING = 16


def backoff_ms(settings: TaskSettings, times: int, jitter: float) -> int:
    """Doubling from backoff_s up to backoff_max_s, between half and all of it."""
    full_s = min(settings.backoff_max_s, settings.backoff_s * 2 ** min(times, _LONGEST_DOUBLING))
    return int(full_s * 1000 * (0.5 + jitter / 2))


def _asked_ms(error: PagemillError, jitter: float) -> int:
    """What the server asked for, and up to a tenth more: not all that wait come back in one moment. 0: nothing."""
    asked_s = error.retry_after_s if isinstance(error, Outage) else None
    return int((asked_s or 0.0) * 1000 * (1 + jitter / 10))


def as_known(error: Exception) -> PagemillError:
    """An error nobody foresaw counts as the task's own, and says what it was without saying too much."""
    return error if isinstance(error, PagemillError) else AttemptFailed(f"unexpected error: {type(error).__name__}")


def decide(task: ClaimedTask, error: PagemillError, settings: TaskSettings, jitter: float) -> GiveBack | Fail | None:
    """How the task goes on; None where it is no longer ours to decide. `jitter` is a random number in 0..1."""
    code, message = error.code, error.public_message
    if error.verdict is Verdict.BAIL:
        return None
    if error.verdict is Verdict.PERMANENT:
        return Fail(task.held, code, message)
    if error.verdict is Verdict.LOSS:
        return GiveBack(task.held, "lose", 0, code, message)
    if error.verdict is Verdict.OUTAGE:
        waited_ms = task.begin_at - task.waiting_since if task.waiting_since else 0
        if waited_ms > settings.outage_patience_s * 1000:
            return Fail(task.held, code, f"gave up after waiting {waited_ms // 1000} s: {message}")
        doublings = (waited_ms // int(settings.backoff_s * 1000)).bit_length()
        wait_ms = _asked_ms(error, jitter) or backoff_ms(settings, doublings, jitter)
        return GiveBack(task.held, "wait", wait_ms, code, message)
    if task.attempt + 1 >= settings.max_attempts:
        return Fail(task.held, code, f"{message} (attempt {task.attempt + 1} of {settings.max_attempts})")
    return GiveBack(task.held, "retry", backoff_ms(settings, task.attempt, jitter), code, message)
