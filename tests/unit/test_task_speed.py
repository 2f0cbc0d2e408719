"""What is guessed of times yet to come, from tasks that ended and from those at work."""

from __future__ import annotations

import pytest

from api.db.services.status_facts import QUEUE_HORIZON, OpenTask
from api.db.services.task_speed import AtWork, Ended, Speed, speed_of
from api.db.services.waiting_line import Place, left_s, line_of
from common.task_state import TaskState, TaskType

RANGE, PREPARE, FINISH = str(TaskType.RANGE), str(TaskType.PREPARE), str(TaskType.FINISH)


def ended(begin_s: float, end_s: float, tenant_id: str = "a", task_type: str = RANGE) -> Ended:
    return Ended(tenant_id, task_type, int(begin_s * 1000), int(end_s * 1000))


def pace(speed: Speed | None) -> float:
    """Seconds that every further range in front costs."""
    assert speed is not None
    share_s = speed.share_s(RANGE)
    assert share_s is not None
    return share_s


def running(progress: float = 0.0, begin_s: float = 90) -> OpenTask:
    return OpenTask("t", RANGE, 0, 12, TaskState.RUNNING, progress, "", 0, 0, 0, "e", int(begin_s * 1000), 0, 1, "", "")


def test_nothing_measured_nothing_guessed() -> None:
    assert speed_of([], {"a": AtWork(3, 100)}, "a") is None


def test_tasks_one_after_another_with_idle_time_between() -> None:
    speed = speed_of([ended(0, 2), ended(2, 4), ended(300, 302)], {}, "a")
    assert pace(speed) == pytest.approx(2.0)


def test_tasks_side_by_side() -> None:
    assert pace(speed_of([ended(0, 6)] * 6, {}, "a")) == pytest.approx(1.0)


def test_short_tasks_are_not_judged_by_one_look_at_who_is_at_work() -> None:
    many = [ended(n / 100, n / 100 + 0.04) for n in range(100)]
    assert pace(speed_of(many, {"a": AtWork(0, 0)}, "a")) == pytest.approx(0.01, rel=0.1)
    assert pace(speed_of(many, {"a": AtWork(1, 20)}, "a")) == pytest.approx(0.01, rel=0.1)


def test_executors_that_went_count_no_more() -> None:
    many = [ended(n, n + 8) for n in range(80)] * 2  # sixteen at once, then two
    assert pace(speed_of(many, {"a": AtWork(2, 8000)}, "a")) == pytest.approx(4.0, rel=0.1)


def test_the_first_ones_to_end_are_not_taken_for_the_usual_ones() -> None:
    """Forty-eight began a second ago and share eight parsers: eight a second will end, not forty-eight."""
    assert pace(speed_of([ended(0, 1)] * 8, {"a": AtWork(40, 40_000)}, "a")) == pytest.approx(1 / 8, rel=0.3)


def test_one_that_hangs_does_not_make_all_slow() -> None:
    assert pace(speed_of([ended(0, 2), ended(2, 4)], {"a": AtWork(2, 300_000)}, "a")) <= 2.0


def test_a_tenant_is_judged_by_its_own_share() -> None:
    both = [ended(n, n + 2) for n in range(0, 20, 2)] + [ended(n, n + 2, "b") for n in range(0, 20, 2)] * 7
    assert pace(speed_of(both, {}, "a")) == pytest.approx(2.0)


def test_a_new_tenant_shares_with_those_at_work() -> None:
    theirs = [ended(0, 2, "b")] * 4
    assert pace(speed_of(theirs, {}, "a")) == pytest.approx(0.5)
    assert pace(speed_of(theirs, {"b": AtWork(4, 0)}, "a")) == pytest.approx(1.0)


def test_what_was_not_measured_is_not_guessed() -> None:
    prepared = speed_of([ended(0, 1, task_type=PREPARE)], {}, "a")
    assert prepared is not None
    assert (prepared.share_s(PREPARE), prepared.share_s(RANGE), prepared.share_s(FINISH)) == (1.0, None, 0.0)
    read = speed_of([ended(0, 3)], {}, "a")
    assert read is not None
    assert read.share_s(PREPARE) == 3.0  # no longer than a range


SPEED = Speed({RANGE: 4.0, PREPARE: 1.0}, 2.0)


def test_places_in_the_line() -> None:
    line = line_of([("a", PREPARE), ("b", RANGE), ("c", RANGE), ("b", RANGE), ("a", FINISH)], SPEED, "abc")
    assert line.place_of("a") == Place(0, 0.0, 6.5, 2)
    assert line.place_of("b") == Place(1, 0.5, 6.5, 2)
    assert line.place_of("c") == Place(2, 2.5, 4.5, 1)
    assert line.place_of("d") is None


def test_places_without_a_speed() -> None:
    line = line_of([("a", RANGE), ("b", RANGE)], None, "ab")
    assert (line.place_of("a"), line.place_of("b")) == (Place(0, 0.0, None, 1), Place(1, None, None, 1))


def test_whoever_is_not_seen_in_a_long_line_is_behind_it() -> None:
    line = line_of([("a", RANGE)] * QUEUE_HORIZON, SPEED, "ab")
    assert line.place_of("b") == Place(QUEUE_HORIZON, 2.0 * QUEUE_HORIZON, None, 0)


@pytest.mark.parametrize(
    ("open_tasks", "at_work", "place", "speed", "expected"),
    [
        (0, [], None, SPEED, None),
        (1, [running(progress=0.5)], None, None, 10.0),  # by its own progress
        (1, [running()], None, None, None),
        (1, [running(begin_s=99)], None, SPEED, 3.0),
        (1, [running(begin_s=90)], None, SPEED, 0.0),  # overdue
        (2, [running(begin_s=99)], Place(0, 0.0, 2.0, 1), SPEED, 3.5),
        (2, [running(progress=0.1)], Place(0, 0.0, 2.0, 1), SPEED, 90.0),  # the one at work takes longest
        (6, [], Place(0, 0.0, 4.0, 2), SPEED, 12.0),  # four beyond what was looked at
        (2, [running(begin_s=99)], None, SPEED, None),
        (2, [running(begin_s=99)], Place(1000, 9.0, None, 0), SPEED, None),
    ],
)
def test_time_left(
    open_tasks: int, at_work: list[OpenTask], place: Place | None, speed: Speed | None, expected: float | None
) -> None:
    assert left_s(open_tasks, at_work, place, speed, 100_000) == (None if expected is None else pytest.approx(expected))
