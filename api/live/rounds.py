"""One look at the rows for all followers together: what changed, whose state is computed once, and who is told.

`Rounds` remembers what the last look saw and what was told; it is used by one thread."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from api.db.services.job_changes import Look, Mark
from api.db.services.job_views import JobStatus, JobView
from api.live.connection import Connection
from api.live.followers import Follower
from api.live.framing import Event

# States computed in one round: the rest comes in the next.
_AT_ONCE = 400
_OWED_AT_ONCE = 100
# A follower for whom more than this waits is not given what it is owed yet.
_ENOUGH_BYTES = 64 * 1024
MOST_OWED = 2000


class Changes(Protocol):
    def look(self, job_ids: set[str], dataset_ids: set[str], since_ms: int | None) -> Look: ...

    def owed(self, dataset_id: str, since_ms: int | None, most: int) -> list[str]: ...

    def states(self, doc_ids: Sequence[str]) -> dict[str, JobView]: ...


@dataclass(frozen=True)
class Told:
    """What a round has to say, and who has heard the last of it."""

    events: list[tuple[Connection, Event]] = field(default_factory=list)
    finished: list[Connection] = field(default_factory=list)


class Rounds:
    def __init__(self, changes: Changes, shown: Callable[[JobView], Mapping[str, Any]]) -> None:
        self._changes = changes
        self._shown = shown
        self._since_ms: int | None = None
        self._caught_up_ms = 0
        self._marks: dict[str, Mark] = {}
        self._at_work: set[str] = set()
        self._due: dict[str, None] = {}
        self._told: dict[str, str] = {}

    def run_once(self, followers: Sequence[Follower]) -> Told:
        told = Told()
        jobs = {f.job_id for f in followers if f.job_id}
        look = self._changes.look(jobs, {f.dataset_id for f in followers if f.dataset_id}, self._since_ms)
        self._note(look, jobs)
        for follower in followers:
            if not follower.is_known:
                self._welcome(follower, look.now_ms, told)
        owed = self._owed_now(followers)
        wanted = self._wanted(owed)
        states = self._changes.states(wanted)  # an outage up to here leaves everything owed and due
        self._cross_off(wanted, owed, look.now_ms)
        self._tell_all(followers, wanted, states, owed, told)
        self._told = {d: said for d, said in self._told.items() if d in self._marks or d in self._at_work}
        return told

    def _note(self, look: Look, jobs: Iterable[str]) -> None:
        """Due is what changed, what is or was just at work, and every job on its way."""
        changed = [d for d, mark in look.marks.items() if self._marks.get(d) != mark]
        on_their_way = [d for d in jobs if d not in look.marks or look.marks[d].is_running]
        self._due |= dict.fromkeys([*changed, *look.at_work, *self._at_work, *on_their_way])
        self._since_ms, self._marks, self._at_work = look.now_ms, look.marks, look.at_work

    def _welcome(self, follower: Follower, now_ms: int, told: Told) -> None:
        if follower.job_id:
            owed = [follower.job_id]
        else:
            owed = self._changes.owed(follower.dataset_id, follower.since_ms, MOST_OWED)
        if len(owed) > MOST_OWED:
            told.events.append((follower.connection, _reset(follower.dataset_id, now_ms)))
        else:
            follower.owed.extend(owed)
        if follower.since_ms is None:
            follower.since_ms = now_ms
        follower.is_known = True

    def _owed_now(self, followers: Sequence[Follower]) -> dict[Follower, list[str]]:
        owed: dict[Follower, list[str]] = {}
        distinct: set[str] = set()
        for follower in followers:
            if follower.owed and follower.connection.waiting_bytes < _ENOUGH_BYTES and len(distinct) < _AT_ONCE:
                owed[follower] = list(islice(follower.owed, _OWED_AT_ONCE))
                distinct.update(owed[follower])
        return owed

    def _wanted(self, owed: Mapping[Follower, Sequence[str]]) -> list[str]:
        """The ids whose states are computed now: what somebody is owed, and the first of what is due."""
        wanted = dict.fromkeys(doc_id for some in owed.values() for doc_id in some)
        room = max(0, _AT_ONCE - len(wanted))
        return list(wanted | dict.fromkeys(islice((d for d in self._due if d not in wanted), room)))

    def _cross_off(self, wanted: Iterable[str], owed: Mapping[Follower, Sequence[str]], now_ms: int) -> None:
        for doc_id in wanted:
            self._due.pop(doc_id, None)
        for follower, some in owed.items():
            for _ in some:
                follower.owed.popleft()
        if not self._due or not self._caught_up_ms:
            self._caught_up_ms = now_ms

    def _tell_all(
        self,
        followers: Sequence[Follower],
        wanted: Sequence[str],
        states: Mapping[str, JobView],
        owed: Mapping[Follower, Sequence[str]],
        told: Told,
    ) -> None:
        by_subject: dict[str, list[Follower]] = {}
        for follower in followers:
            by_subject.setdefault(follower.job_id or follower.dataset_id, []).append(follower)
        creditors: dict[str, list[Follower]] = {}
        for follower, some in owed.items():
            for doc_id in some:
                creditors.setdefault(doc_id, []).append(follower)
        for doc_id in wanted:
            view = states.get(doc_id)
            data, is_new = self._said(doc_id, view)
            hearers = dict.fromkeys(creditors.get(doc_id, ()))
            if is_new:
                dataset_id = view.dataset_id if view else ""
                hearers |= dict.fromkeys([*by_subject.get(doc_id, ()), *by_subject.get(dataset_id, ())])
            for follower in hearers:
                event = Event(follower.next_id(self._caught_up_ms), data)
                told.events.append((follower.connection, event))
                if follower.job_id and (view is None or view.is_final):
                    told.finished.append(follower.connection)

    def _said(self, doc_id: str, view: JobView | None) -> tuple[str, bool]:
        """The state as JSON, and whether it is another one than before: the time left alone makes no news."""
        shown = dict(self._shown(view)) if view else _gone(doc_id)
        said = json.dumps(shown | {"eta_s": None})
        is_new = self._told.get(doc_id) != said
        self._told[doc_id] = said
        return json.dumps(shown, ensure_ascii=False), is_new


def _gone(doc_id: str) -> dict[str, Any]:
    status = str(JobStatus.DELETED)
    return {
        "job_id": doc_id,
        "status": status,
        "progress": 0.0,
        "step": status,
        "message": "deleted, and nothing of it is left",
        "is_final": True,
    }


def _reset(dataset_id: str, now_ms: int) -> Event:
    message = (
        f"more than {MOST_OWED} documents changed or are on their way: list them; what changes from now on follows"
    )
    return Event(now_ms, json.dumps({"dataset_id": dataset_id, "message": message}), name="reset")
