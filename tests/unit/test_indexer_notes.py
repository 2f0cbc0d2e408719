"""When the indexer makes the copies that are noted."""

from __future__ import annotations

import pytest

from rag.svr import indexer


def test_copies_are_made_when_none_has_come_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(indexer.time, "monotonic", lambda: now_s)
    notes = indexer.Notes()
    assert not notes.have_rested(0)
    assert not notes.have_rested(1)
    now_s += 0.3
    assert not notes.have_rested(2)
    now_s += 0.3
    assert not notes.have_rested(2)
    now_s += 0.2
    assert notes.have_rested(2)
    assert not notes.have_rested(0)


def test_the_first_of_many_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(indexer.time, "monotonic", lambda: now_s)
    notes = indexer.Notes()
    looks = []
    for number in range(1, 60):
        looks.append(notes.have_rested(number))
        now_s += 0.125
    assert looks.index(True) == 40
    assert not looks[41]
