"""Turns at the interpreter: how many at once, who is next, and who is not waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from common.turns import Turns, stepping_aside
from tests.waiting import PATIENCE_S, wait_until

_NEVER_S = 3600.0


class People:
    """Threads that take a turn, do something in it, and are waited for at the end of a test."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.threads: list[threading.Thread] = []

    def start(self, work: Callable[[], None]) -> None:
        """Until it has its turn, or stands in the line behind all that were started before."""
        entered = threading.Event()
        before = self.turns.waiting

        def run() -> None:
            with self.turns.turn():
                entered.set()
                work()

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()
        wait_until(lambda: entered.is_set() or self.turns.waiting > before, PATIENCE_S, "a place in the line")


@pytest.fixture
def one() -> Iterator[People]:
    yield from _people(Turns(1, _NEVER_S))


@pytest.fixture
def impatient() -> Iterator[People]:
    yield from _people(Turns(1, 0.02))


def _people(turns: Turns) -> Iterator[People]:
    people = People(turns)
    yield people
    for thread in people.threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_no_more_are_in_than_may_be_at_once() -> None:
    turns, inside, most, guard = Turns(2), [0], [0], threading.Lock()

    def work() -> None:
        with guard:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        with guard:
            inside[0] -= 1

    def many() -> None:
        for _ in range(200):
            with turns.turn():
                work()

    threads = [threading.Thread(target=many) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert (inside[0], turns.waiting) == (0, 0)
    assert most[0] <= 2


def test_first_come_first_served(one: People) -> None:
    gate, served = threading.Event(), list[int]()
    one.start(lambda: _wait(gate))
    for number in range(5):
        one.start(lambda number=number: served.append(number))  # type: ignore[misc]
    gate.set()
    wait_until(lambda: len(served) == 5, PATIENCE_S, "all of them")
    assert served == list(range(5))


def test_who_steps_aside_lets_another_in_and_goes_on_before_those_who_wait(one: People) -> None:
    told, may_end, served = threading.Event(), threading.Event(), list[str]()

    def steps_aside() -> None:
        with stepping_aside():
            _wait(told)
        served.append("first")

    one.start(steps_aside)
    one.start(lambda: _wait(may_end))  # in, though the first has not ended
    one.start(lambda: served.append("second"))
    told.set()
    wait_until(lambda: one.turns.waiting == 2, PATIENCE_S, "the first in the line again")
    may_end.set()
    wait_until(lambda: len(served) == 2, PATIENCE_S, "both")
    assert served == ["first", "second"]


def test_who_need_not_wait_again_goes_on_at_once(one: People) -> None:
    told, may_end, has_gone_on = threading.Event(), threading.Event(), threading.Event()

    def steps_aside() -> None:
        with stepping_aside(waits_again=False):
            _wait(told)
        has_gone_on.set()

    one.start(steps_aside)
    one.start(lambda: _wait(may_end))
    told.set()
    assert has_gone_on.wait(PATIENCE_S)
    may_end.set()


def test_a_turn_that_lasts_long_is_not_waited_for(impatient: People) -> None:
    gate, served = threading.Event(), threading.Event()
    impatient.start(lambda: _wait(gate))
    impatient.start(served.set)
    assert served.wait(PATIENCE_S)
    gate.set()


def test_an_error_gives_the_turn_back(one: People) -> None:
    with pytest.raises(ZeroDivisionError), one.turns.turn(), stepping_aside():
        raise ZeroDivisionError
    served = threading.Event()
    one.start(served.set)
    assert served.wait(PATIENCE_S)


def test_threads_that_take_no_turns_neither_wait_for_one_nor_give_one_away(one: People) -> None:
    done, served = threading.Event(), threading.Event()
    one.start(lambda: _wait(done))
    one.start(served.set)
    with stepping_aside(), stepping_aside(waits_again=False):
        assert one.turns.waiting == 1
    assert one.turns.waiting == 1 and not served.is_set()
    done.set()
    assert served.wait(PATIENCE_S)


def _wait(event: threading.Event) -> None:
    assert event.wait(PATIENCE_S)
