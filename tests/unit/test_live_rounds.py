"""Who is told what in a round: once for each state, whole states, and nothing lost when the rows are away."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from api.db.services.job_changes import Look, Mark
from api.db.services.job_views import JobStatus, JobView
from api.live.connection import Connection
from api.live.followers import Follower
from api.live.rounds import MOST_OWED, Rounds, Told
from api.live.sse import SseFraming
from common.errors import RowsUnavailable


def view(job_id: str, dataset_id: str = "d", status: JobStatus = JobStatus.RUNNING, **fields: Any) -> JobView:
    values: dict[str, Any] = dict.fromkeys(JobView.__dataclass_fields__)
    return JobView(**values | {"id": job_id, "dataset_id": dataset_id, "status": status, "progress": 0.0} | fields)


class Rows:
    """Documents that change by hand."""

    def __init__(self) -> None:
        self.now_ms = 1000
        self.documents: dict[str, JobView] = {}
        self.changed_ms: dict[str, int] = {}
        self.at_work: set[str] = set()
        self.is_away = False
        self.computed: list[str] = []

    def put(self, one: JobView) -> None:
        self.now_ms += 1
        self.documents[one.id] = one
        self.changed_ms[one.id] = self.now_ms

    def look(self, job_ids: set[str], dataset_ids: set[str], since_ms: int | None) -> Look:
        self.now_ms += 1
        early_ms = (self.now_ms if since_ms is None else since_ms) - 100
        marks = {
            d: Mark(v.dataset_id, v.status is JobStatus.RUNNING, self.changed_ms[d], 0)
            for d, v in self.documents.items()
            if d in job_ids or (v.dataset_id in dataset_ids and self.changed_ms[d] >= early_ms)
        }
        return Look(self.now_ms, marks, {d for d in self.at_work if self.documents[d].dataset_id in dataset_ids})

    def owed(self, dataset_id: str, since_ms: int | None, most: int) -> list[str]:
        found = [
            d
            for d, v in self.documents.items()
            if v.dataset_id == dataset_id
            and (v.status is JobStatus.RUNNING or (since_ms is not None and self.changed_ms[d] >= since_ms))
        ]
        return found[: most + 1]

    def states(self, doc_ids: Sequence[str]) -> dict[str, JobView]:
        if self.is_away:
            raise RowsUnavailable("the database does not answer")
        self.computed += doc_ids
        return {d: self.documents[d] for d in doc_ids if d in self.documents}


class Connected(Connection):
    """Nothing is written: only who is told counts here."""

    def __init__(self) -> None:
        super().__init__(socket.socket(), SseFraming(), lambda _: None)
        self.sock.close()
        self.waiting = 0

    @property
    def waiting_bytes(self) -> int:
        return self.waiting


@pytest.fixture
def rows() -> Rows:
    return Rows()


@pytest.fixture
def rounds(rows: Rows) -> Rounds:
    return Rounds(rows, lambda v: {"job_id": v.id, "progress": v.progress, "status": v.status, "eta_s": v.eta_s})


def of_job(job_id: str) -> Follower:
    return Follower(Connected(), job_id=job_id)


def of_dataset(dataset_id: str, since_ms: int | None = None) -> Follower:
    return Follower(Connected(), dataset_id=dataset_id, since_ms=since_ms)


def heard(told: Told, follower: Follower) -> list[str]:
    return [json.loads(e.data)["job_id"] for c, e in told.events if c is follower.connection]


def test_a_state_is_computed_once_and_told_to_all_that_follow(rows: Rows, rounds: Rounds) -> None:
    rows.put(view("a"))
    followers = [of_job("a") for _ in range(50)]
    told = rounds.run_once(followers)
    assert rows.computed == ["a"]
    assert [c for c, _ in told.events] == [f.connection for f in followers]
    assert told.finished == []


def test_what_does_not_change_is_not_told_again(rows: Rows, rounds: Rounds) -> None:
    rows.put(view("a", eta_s=9))
    follower = of_job("a")
    assert heard(rounds.run_once([follower]), follower) == ["a"]
    rows.documents["a"] = view("a", eta_s=8)
    assert rounds.run_once([follower]).events == []
    rows.documents["a"] = view("a", eta_s=8, progress=0.5)
    assert heard(rounds.run_once([follower]), follower) == ["a"]


def test_a_newcomer_hears_at_once_what_others_know(rows: Rows, rounds: Rounds) -> None:
    rows.put(view("a"))
    early, late = of_job("a"), of_job("a")
    rounds.run_once([early])
    told = rounds.run_once([early, late])
    assert (heard(told, early), heard(told, late)) == ([], ["a"])


def test_a_job_that_ended_is_told_and_finished(rows: Rows, rounds: Rounds) -> None:
    rows.put(view("a"))
    follower = of_job("a")
    rounds.run_once([follower])
    rows.put(view("a", status=JobStatus.DONE))
    told = rounds.run_once([follower])
    assert (heard(told, follower), told.finished) == (["a"], [follower.connection])


def test_a_job_of_which_nothing_is_left_is_told_as_deleted(rounds: Rounds) -> None:
    follower = of_job("gone")
    told = rounds.run_once([follower])
    assert told.finished == [follower.connection]
    assert json.loads(told.events[0][1].data)["status"] == "deleted"


def test_a_dataset_is_told_what_runs_and_what_changes(rows: Rows, rounds: Rounds) -> None:
    rows.put(view("old", status=JobStatus.DONE))
    rows.changed_ms["old"] = 1
    rows.put(view("a"))
    rows.put(view("far", dataset_id="other"))
    follower = of_dataset("d")
    assert heard(rounds.run_once([follower]), follower) == ["a"]
    rows.put(view("new", status=JobStatus.QUEUED))
    assert heard(rounds.run_once([follower]), follower) == ["new"]
    rows.put(view("far", dataset_id="other", progress=0.5))
    assert heard(rounds.run_once([follower]), follower) == []


def test_what_is_at_work_is_looked_at_though_its_row_stays(rows: Rows, rounds: Rounds) -> None:
    rows.put(view("a"))
    rows.at_work = {"a"}
    follower = of_dataset("d")
    rounds.run_once([follower])
    for progress in (0.1, 0.2):
        rows.documents["a"] = view("a", progress=progress)
        assert heard(rounds.run_once([follower]), follower) == ["a"]
    rows.at_work = set()
    rows.documents["a"] = view("a", progress=0.9)
    assert heard(rounds.run_once([follower]), follower) == ["a"]  # the last look at what was just at work


def test_who_comes_back_hears_the_newest_state_of_what_changed_since(rows: Rows, rounds: Rounds) -> None:
    rows.put(view("before", status=JobStatus.DONE))
    follower = of_dataset("d")
    told = rounds.run_once([follower])
    assert heard(told, follower) == ["before"]
    last_id = told.events[-1][1].id
    rows.now_ms += 10_000
    rows.put(view("since", status=JobStatus.DONE))
    back = of_dataset("d", last_id)
    assert heard(Rounds(rows, lambda v: {"job_id": v.id}).run_once([back]), back) == ["since"]


def test_much_that_is_owed_comes_in_parts_and_ids_wait_for_it(rows: Rows, rounds: Rounds) -> None:
    for number in range(250):
        rows.put(view(f"{number}", status=JobStatus.DONE))
    rows.now_ms += 10_000
    rows.put(view("live"))
    follower = of_dataset("d", 1)
    ids: list[int] = []
    known: list[str] = []
    while follower.owed or not follower.is_known:
        told = rounds.run_once([follower])
        known += heard(told, follower)
        ids += [e.id for _, e in told.events]
    assert set(known) == {*(str(n) for n in range(250)), "live"}
    assert ids == sorted(ids) and ids[0] == 1 and ids[-1] > 10_000


def test_who_does_not_keep_up_is_not_given_more_of_what_it_is_owed(rows: Rows, rounds: Rounds) -> None:
    rows.put(view("a"))
    follower = of_job("a")
    follower.connection.waiting = 10**6  # type: ignore[attr-defined]
    assert len(heard(rounds.run_once([follower]), follower)) == 1  # it is new to all, so it is told
    assert follower.owed


def test_too_much_to_be_told_is_told_as_that(rows: Rows, rounds: Rounds) -> None:
    for number in range(MOST_OWED + 1):
        rows.documents[f"{number}"] = view(f"{number}")
        rows.changed_ms[f"{number}"] = 1
    follower = of_dataset("d")
    (told,) = rounds.run_once([follower]).events
    assert (told[1].name, "more than 2000 documents" in told[1].data) == ("reset", True)


def test_an_outage_loses_nothing(rows: Rows, rounds: Rounds) -> None:
    rows.put(view("a"))
    follower, other = of_job("a"), of_dataset("d")
    rows.is_away = True
    for _ in range(2):
        with pytest.raises(RowsUnavailable):
            rounds.run_once([follower, other])
    rows.is_away = False
    told = rounds.run_once([follower, other])
    assert (heard(told, follower), heard(told, other)) == (["a"], ["a"])


def test_a_rush_of_changes_is_spread_over_rounds(rows: Rows, rounds: Rounds) -> None:
    follower = of_dataset("d")
    rounds.run_once([follower])
    for number in range(1000):
        rows.put(replace(view(f"{number}"), status=JobStatus.QUEUED))
        rows.changed_ms[f"{number}"] = rows.now_ms = 2000
    counts = []
    while (told := rounds.run_once([follower])).events:
        counts.append(len(told.events))
    assert (len(counts), sum(counts), max(counts)) == (3, 1000, 400)
