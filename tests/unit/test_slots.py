"""How many tasks an executor may take."""

from __future__ import annotations

import threading

from rag.svr.slots import Slots
from tests.waiting import PATIENCE_S, wait_until


def test_free_ones_are_counted_and_some_may_be_taken_beyond_them() -> None:
    slots = Slots(3)
    slots.take(2)
    assert (slots.used, slots.wait_free(), slots.wait_free(2)) == (2, 1, 3)
    slots.take(1)
    assert slots.wait_free(2) == 2
    slots.take(1)
    assert slots.wait_free(2) == 1
    slots.give(2)
    assert slots.wait_free() == 1


def test_who_waits_is_woken_by_a_slot() -> None:
    slots = Slots(1)
    slots.take(1)
    found: list[int] = []
    waiter = threading.Thread(target=lambda: found.append(slots.wait_free()))
    waiter.start()
    slots.give(1)
    waiter.join(PATIENCE_S)
    assert found == [1]


def test_closing_lets_everybody_go_however_many_are_owed() -> None:
    slots = Slots(1)
    slots.take(5)
    found: list[int] = []
    waiters = [threading.Thread(target=lambda beyond=b: found.append(slots.wait_free(beyond))) for b in (0, 2)]
    for waiter in waiters:
        waiter.start()
    slots.close()
    for waiter in waiters:
        waiter.join(PATIENCE_S)
    assert found == [0, 0]
    slots.give(5)
    assert slots.wait_free() == 0


def test_while_it_is_held_nobody_is_let_in_and_it_is_quiet_once_both_readers_wait() -> None:
    slots = Slots(2)
    slots.take(1)
    slots.hold(True)
    found: list[int] = []
    waiters = [threading.Thread(target=lambda beyond=b: found.append(slots.wait_free(beyond))) for b in (0, 4)]
    waiters[0].start()
    slots.give(1)
    assert not slots.is_quiet
    waiters[1].start()
    wait_until(lambda: slots.is_quiet)
    assert found == []
    slots.hold(False)
    for waiter in waiters:
        waiter.join(PATIENCE_S)
    assert sorted(found) == [2, 6]
    assert not slots.is_quiet


def test_only_what_keeps_the_parser_busy_for_a_moment_stands_in_line() -> None:
    slots = Slots(6)
    slots.take(6)
    for _ in range(6):
        slots.left_line()
        slots.was_read(0.2)
        slots.give(1, in_line=False)
    assert (slots.used, slots.wait_free()) == (0, 2)  # one is read, one stands in line
    slots.take(2)
    assert slots.wait_free(beyond=4) == 4
    slots.left_line()  # it is written to the index now, and the parser reads the other
    slots.was_read(0.2)
    assert (slots.used, slots.wait_free()) == (2, 1)


def test_more_of_short_tasks_stand_in_line_and_none_of_long_ones() -> None:
    short, long = Slots(6), Slots(6, parsers=2)
    for _ in range(20):
        for slots, seconds in ((short, 0.05), (long, 5.0)):
            slots.take(1)
            slots.left_line()
            slots.was_read(seconds)
            slots.give(1, in_line=False)
    assert (short.wait_free(), long.wait_free()) == (4, 2)


def test_who_waits_is_woken_when_a_task_leaves_the_parser() -> None:
    slots = Slots(6)
    slots.take(1)
    slots.left_line()
    slots.was_read(5.0)
    slots.take(1)
    found: list[int] = []
    waiter = threading.Thread(target=lambda: found.append(slots.wait_free()))
    waiter.start()
    slots.left_line()
    slots.was_read(5.0)
    waiter.join(PATIENCE_S)
    assert found == [1]


def test_a_task_that_was_never_read_leaves_no_trace_in_the_line() -> None:
    slots = Slots(6)
    slots.take(1)
    slots.left_line()
    slots.was_read(5.0)
    slots.give(1, in_line=False)
    slots.take(1)
    slots.give(1)
    assert (slots.used, slots.wait_free()) == (0, 1)


def test_tasks_that_need_no_parser_leave_their_place_in_line_to_others() -> None:
    slots = Slots(6)
    slots.take(1)
    slots.left_line()
    slots.was_read(5.0)
    slots.give(1, in_line=False)
    for used in range(1, 6):
        slots.take(1)
        slots.left_line()  # its chunks are copied
        assert (slots.used, slots.wait_free()) == (used, 1)
    for _ in range(5):
        slots.give(1, in_line=False)
    assert (slots.used, slots.wait_free()) == (0, 1)
