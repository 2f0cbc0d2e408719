"""Token buckets: what flows in, what is owed, and how many names are kept."""

from __future__ import annotations

import threading

import pytest

from api.apps.token_buckets import TokenBuckets


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_burst_then_as_much_as_flows_in(clock: Clock) -> None:
    buckets = TokenBuckets(per_minute=30, burst=3, clock=clock)
    assert [buckets.take("a") for _ in range(3)] == [0, 0, 0]
    assert buckets.take("a") == buckets.take("a") == 2  # what is refused costs nothing
    assert buckets.take("b") == 0
    clock.now_s = 1.5
    assert buckets.take("a") == buckets.wait_s("a") == 0.5
    clock.now_s = 2
    assert (buckets.wait_s("a"), buckets.take("a"), buckets.wait_s("a")) == (0, 0, 2)
    clock.now_s = 1000
    assert [buckets.take("a") > 0 for _ in range(4)] == [False, False, False, True]


def test_what_is_owed_is_paid_for_up_to_a_burst(clock: Clock) -> None:
    buckets = TokenBuckets(per_minute=60, burst=2, clock=clock)
    for _ in range(4):
        buckets.owe("a")
    assert buckets.wait_s("a") == 3
    for _ in range(100):
        buckets.owe("a")
    assert buckets.wait_s("a") == 3
    clock.now_s = 3
    assert buckets.wait_s("a") == 0


def test_asking_makes_no_name_known_and_forgetting_makes_it_new(clock: Clock) -> None:
    buckets = TokenBuckets(per_minute=60, burst=1, clock=clock)
    assert buckets.wait_s("a") == 0 and not buckets.knows("a")
    assert buckets.take("a") == 0 and buckets.knows("a") and buckets.take("a") == 1
    buckets.forget("a")
    buckets.forget("never seen")
    assert not buckets.knows("a") and buckets.take("a") == 0


def test_the_name_not_heard_of_for_longest_makes_room(clock: Clock) -> None:
    buckets = TokenBuckets(per_minute=60, burst=5, clock=clock, most=100)
    for number in range(100):
        buckets.take(str(number))
    buckets.take("0")
    for number in range(100, 150):
        buckets.take(str(number))
    assert len(buckets) == 100
    assert buckets.knows("0") and buckets.knows("149") and not buckets.knows("1")


def test_none_a_minute_is_no_limit(clock: Clock) -> None:
    buckets = TokenBuckets(per_minute=0, burst=1, clock=clock)
    assert not any(buckets.take("a") for _ in range(10))
    buckets.owe("a")
    assert buckets.wait_s("a") == 0 and buckets.knows("a")


def test_threads_share_a_burst(clock: Clock) -> None:
    buckets = TokenBuckets(per_minute=60, burst=500, clock=clock)
    taken: list[float] = []

    def take_many() -> None:
        taken.extend(buckets.take("a") for _ in range(200))

    threads = [threading.Thread(target=take_many) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken.count(0) == 500
