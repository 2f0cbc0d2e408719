"""The reaper does not trust leases when its own host slept or the database's clock jumped."""

from __future__ import annotations

import pytest

from rag.svr import reaper
from rag.svr.reaper import Reaper, ReaperConfig


class Clocks:
    def __init__(self) -> None:
        self.steady_s = 1000.0
        self.database_ms = 5_000_000

    def tick(self, seconds: float, database_seconds: float | None = None) -> None:
        self.steady_s += seconds
        self.database_ms += int((seconds if database_seconds is None else database_seconds) * 1000)


class Rows:
    """Stands for the services: counts what is asked of them."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self.reaped = 0
        self.leads = True

    def lead(self, *_: object) -> bool:
        return self.leads

    def clock_ms(self) -> int:
        return self._clocks.database_ms

    def reap(self) -> int:
        self.reaped += 1
        return 0

    def check(self) -> int:
        return 0

    def drop_orphans(self) -> int:
        return 0

    def restart_outdated(self) -> list[str]:
        return []


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    made = Clocks()
    monkeypatch.setattr(reaper, "steady_s", lambda: made.steady_s)
    return made


@pytest.mark.parametrize(("passed_s", "database_s"), [(20.0, None), (1.0, 3600.0)], ids=["slept", "clock jumped"])
def test_after_a_gap_it_waits_one_more_lease(clocks: Clocks, passed_s: float, database_s: float | None) -> None:
    rows = Rows(clocks)
    made = Reaper(ReaperConfig("e1", 15.0), rows, rows, rows, rows)  # type: ignore[arg-type]
    clocks.tick(1)
    assert made.run_once()
    assert rows.reaped == 1
    clocks.tick(passed_s, database_s)
    made.run_once()
    for _ in range(14):
        clocks.tick(1)
        made.run_once()
    assert rows.reaped == 1
    clocks.tick(1)
    made.run_once()
    assert rows.reaped == 2


def test_a_successor_reaps_at_once(clocks: Clocks) -> None:
    rows = Rows(clocks)
    rows.leads = False
    made = Reaper(ReaperConfig("e2", 15.0), rows, rows, rows, rows)  # type: ignore[arg-type]
    for _ in range(60):
        clocks.tick(2)
        assert made.run_once() is False
    rows.leads = True
    clocks.tick(2)
    assert made.run_once() is True
    assert rows.reaped == 1
