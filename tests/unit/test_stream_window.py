"""How many published tasks may stand in the streams."""

from __future__ import annotations

from rag.svr.stream_window import StreamWindow


def taken_steadily(window: StreamWindow, per_s: int, seconds: float, begin_s: float = 100.0) -> int:
    """Executors that take so many tasks a second out of streams that are never empty; the size at the end."""
    step_s, size = 0.01, 0
    for turn in range(int(seconds / step_s)):
        size = window.fit(round(per_s * step_s), begin_s + turn * step_s, was_full=True)
    return size


def test_it_is_the_least_while_nothing_is_taken() -> None:
    window = StreamWindow(2)
    assert [window.fit(0, float(second), was_full=True) for second in range(5)] == [2] * 5


def test_it_holds_a_quarter_of_a_second_of_work() -> None:
    assert 800 < taken_steadily(StreamWindow(2), 4000, 5.0) < 1050


def test_of_slow_tasks_there_are_enough_in_hand() -> None:
    window = StreamWindow(2)
    window.in_hand = 400
    assert taken_steadily(window, 100, 5.0) == 2
    fast = StreamWindow(2)
    fast.in_hand = 400
    assert taken_steadily(fast, 4000, 5.0) > 350


def test_executors_that_are_kept_waiting_get_more() -> None:
    assert taken_steadily(StreamWindow(2), 100, 5.0) > 7


def test_it_grows_within_a_few_turns() -> None:
    assert taken_steadily(StreamWindow(2), 4000, 0.1) > 180


def test_a_burst_into_free_slots_is_no_speed() -> None:
    window = StreamWindow(2)
    window.in_hand = 12
    window.fit(0, 100.0, was_full=False)
    assert window.fit(12, 100.05, was_full=True) == 2


def test_speed_is_forgotten_when_work_ends_and_not_when_it_pauses() -> None:
    window = StreamWindow(2)
    taken_steadily(window, 4000, 5.0, begin_s=100.0)
    assert window.fit(0, 105.2, was_full=False) > 300
    assert window.fit(0, 125.0, was_full=False) == 2


def test_it_is_bounded() -> None:
    assert taken_steadily(StreamWindow(2), 1_000_000, 2.0) == 4096
