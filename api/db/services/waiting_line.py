"""The line in which a tenant's tasks wait, as far as it is looked at: who stands where, and for how long yet."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from api.db.database import Rows
from api.db.services.status_facts import QUEUE_HORIZON, OpenTask
from api.db.services.task_speed import Speed
from api.db.services.task_sql import marks
from common.task_state import Priority, TaskState, TaskType

# A waiting task's document and kind.
Waiting = tuple[str, str]
_MOST_SEEN = 50 * QUEUE_HORIZON
_seen: dict[str, Waiting] = {}


@dataclass(frozen=True)
class Place:
    """Where a document's tasks stand: `ahead` tasks of others are in front of its first. Times are None where nothing
    was measured; `through_s` is until its last one of the `count` that were seen has ended."""

    ahead: int
    ahead_s: float | None
    through_s: float | None
    count: int


@dataclass(frozen=True)
class Line:
    """`behind` is the place of all that were not seen; None where the whole line was."""

    places: Mapping[str, Place]
    behind: Place | None

    def place_of(self, doc_id: str) -> Place | None:
        return self.places.get(doc_id, self.behind)


def waiting_tasks(rows: Rows, tenant_id: str) -> list[Waiting]:
    """The tenant's waiting tasks in the order in which they are taken: what is published already, then lane by lane as
    the relay goes through its index. Tenants are served in turns, so those of others do not stand in front."""
    parts = [("published_at > 0", "published_at")]
    for priority in sorted(Priority, reverse=True):
        parts.append((f"published_at = 0 AND priority = {int(priority)}", "run_after"))
    task_ids: list[str] = []
    for part, due in parts:
        room = QUEUE_HORIZON - len(task_ids)
        if room:
            # Nothing that the index does not hold: tasks themselves are looked at once, below.
            chosen = (
                f"SELECT {due} AS due, id FROM task WHERE state = {int(TaskState.PENDING)}"
                f" AND tenant_id = ? AND {part} ORDER BY {due}, id LIMIT {room}"
            )
            found = rows.table("due, id", f"FROM ({chosen}) AS chosen", (tenant_id,))
            task_ids += [task_id for _, task_id in sorted(map(tuple, found))]
    return _traits(rows, task_ids)


def _traits(rows: Rows, task_ids: Sequence[str]) -> list[Waiting]:
    """A task's document and kind never change: what was read of one that waits is not read again for another answer."""
    known = {task_id: traits for task_id in task_ids if (traits := _seen.get(task_id))}
    unknown = [task_id for task_id in task_ids if task_id not in known]
    if unknown:
        which = f"FROM task WHERE id IN ({marks(unknown)})"
        for task_id, doc_id, kind in rows.table("id, doc_id, task_type", which, unknown):
            known[task_id] = (doc_id, kind)
        if len(_seen) > _MOST_SEEN:
            _seen.clear()
        _seen.update(known)
    return [known[task_id] for task_id in task_ids if task_id in known]


def line_of(waiting: Sequence[Waiting], speed: Speed | None, doc_ids: Collection[str]) -> Line:
    """The places of these documents."""
    shares = {str(kind): speed.share_s(kind) if speed else None for kind in TaskType}
    places: dict[str, Place] = {}
    passed_s: float | None = 0.0
    for ahead, (doc_id, kind) in enumerate(waiting):
        share_s = shares[kind]
        before_s = passed_s
        passed_s = None if passed_s is None or share_s is None else passed_s + share_s
        if doc_id in doc_ids:
            first = places.get(doc_id, Place(ahead, before_s, None, 0))
            places[doc_id] = Place(first.ahead, first.ahead_s, passed_s, first.count + 1)
    is_cut = len(waiting) >= QUEUE_HORIZON
    return Line(places, Place(len(waiting), passed_s, None, 0) if is_cut else None)


def left_s(
    open_tasks: int, running: Sequence[OpenTask], place: Place | None, speed: Speed | None, now_ms: int
) -> float | None:
    """Seconds until a document's last open range has ended; None where that is not known. `open_tasks` are its ranges
    that have not ended, `running` those at work."""
    rest = [_rest_s(task, speed, now_ms) for task in running]
    known = [rest_s for rest_s in rest if rest_s is not None]
    if len(known) < len(rest):
        return None
    longest_s = max(known, default=0.0)
    if open_tasks <= len(running):
        return longest_s if running else None
    share_s = speed.share_s(TaskType.RANGE) if speed else None
    if speed is None or share_s is None or place is None or place.through_s is None:
        return None
    # A document's ranges stand together: those beyond the part of the line that was looked at follow at once.
    unseen = max(0, open_tasks - len(running) - place.count)
    return max(longest_s, place.through_s + unseen * share_s + sum(known) / speed.parallel)


def _rest_s(task: OpenTask, speed: Speed | None, now_ms: int) -> float | None:
    """By its own progress; else by how long others of its kind took."""
    elapsed_s = max(0, now_ms - task.begin_ms) / 1000
    if task.progress > 0:
        return elapsed_s * (1 - task.progress) / task.progress
    takes_s = speed.seconds.get(task.task_type) if speed and task.task_type == TaskType.RANGE else None
    return None if takes_s is None else max(0.0, takes_s - elapsed_s)
