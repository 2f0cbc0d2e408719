"""Answers that are kept for a while."""

from __future__ import annotations

import pytest

from api.apps.kept import Kept


class _Found:
    """An answer that takes a time to find, by a clock of its own."""

    def __init__(self, takes_s: float) -> None:
        self.now_s = 0.0
        self.calls = 0
        self.takes_s = takes_s

    def find(self) -> int:
        self.calls += 1
        self.now_s += self.takes_s
        return self.calls


def test_it_is_found_once_in_its_time() -> None:
    found = _Found(0.0)
    kept = Kept(found.find, 1.0, lambda: found.now_s)
    assert [kept.get(), kept.get()] == [1, 1]
    found.now_s = 1.0
    assert kept.get() == 2


def test_what_takes_long_is_kept_longer() -> None:
    found = _Found(0.5)
    kept = Kept(found.find, 1.0, lambda: found.now_s)
    assert kept.get() == 1
    found.now_s = 10.4
    assert kept.get() == 1
    found.now_s = 10.5
    assert kept.get() == 2


def test_an_error_is_not_kept() -> None:
    answers = iter([ValueError("away"), 7])

    def find() -> int:
        answer = next(answers)
        if isinstance(answer, ValueError):
            raise answer
        return answer

    kept = Kept(find, 1.0)
    with pytest.raises(ValueError, match="away"):
        kept.get()
    assert kept.get() == 7
