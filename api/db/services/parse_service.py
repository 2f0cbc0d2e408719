"""Starting and stopping a parse: a new generation with its first task, or the end of one. Each is one transaction;
ringing the relay afterwards is the caller's (`Doorbell`)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from api.db.database import Rows
from api.db.services import task_control, task_sql, webhook_outcomes
from api.db.services.document_sql import WHOLE_DOCUMENT
from api.db.services.known_file import known_file
from api.db.services.task_plan import ModelTraits
from common.errors import Backlogged
from common.settings import TaskSettings
from common.task_state import (
    DOCUMENT_TRANSITIONS,
    TaskState,
    TaskType,
    from_states_sql,
    set_state_sql,
)
from rag.parser.blocks import PARSER_VERSION

_AT_ONCE = 50
# To count half of the limit takes some milliseconds, and as many tasks do not come in so short a time.
_COUNT_KEPT_S = 5.0
_ACTIVE_FROM_START = "CASE WHEN active_generation = 0 THEN generation + 1 ELSE active_generation END"


@dataclass(frozen=True)
class Doorbell:
    """How the rest of the system hears of a commit. Losing a ring costs seconds, never work."""

    tasks_waiting: Callable[[], None]
    tasks_cancelled: Callable[[Sequence[str]], None]


class Settler(Protocol):
    """unchanged_parse.py, copied_parse.py."""

    def settle(self, doc_ids: Sequence[str], /, *, are_new: bool = False) -> list[str]:
        """End the parse of those documents whose chunks are there already. Returns their ids."""


class ParseService:
    def __init__(
        self,
        rows: Rows,
        settings: TaskSettings,
        model: ModelTraits,
        bell: Doorbell,
        *settlers: Settler,
    ) -> None:
        """`settlers` end those parses, in turn, for which no task is needed. Without them chunks that are known are
        copied range by range."""
        self._rows = rows
        self._settings = settings
        self._model = model
        self._settlers = settlers
        self._keep_ms = int(settings.reuse_keep_h * 3_600_000)
        self._bell = bell
        self._counted_s = -math.inf
        self._waiting = 0

    def start(self, doc_ids: Sequence[str], *, are_new: bool = False) -> list[str]:
        """Begin a new generation of each document that is not running; where nothing has changed since its last parse,
        or another document was made of the same, that parse is done already. Returns the ids of those that were
        started. `are_new` are those that the caller's own transaction makes."""
        self.require_room()
        settled: list[str] = []
        others = list(doc_ids)
        for settler in self._settlers:
            settled += settler.settle(others, are_new=are_new)
            others = [doc_id for doc_id in others if doc_id not in settled]
        self._waiting += len(others)
        return settled + self.restart(others)

    def restart(self, doc_ids: Sequence[str]) -> list[str]:
        """Begin a new generation of each document that is not running, by tasks, however many wait already. Returns the
        ids of those that were started."""
        started: list[str] = []
        for part in _slices(doc_ids):
            started += self._rows.write(self._start_all, part, {})
        if started:
            self._rows.after_commit(self._bell.tasks_waiting)
        return started

    def stop(self, doc_ids: Sequence[str]) -> list[str]:
        """Cancel the running parse of each document. Returns the ids of those that were running."""
        return self._stop_in_slices(doc_ids, is_outcome=True)

    def _stop_in_slices(self, doc_ids: Sequence[str], *, is_outcome: bool) -> list[str]:
        stopped: dict[str, list[str]] = {}
        for part in _slices(doc_ids):
            self._rows.write(self._stop_all, part, stopped, is_outcome)
        tasks = [task_id for at_work in stopped.values() for task_id in at_work]
        if tasks:
            self._rows.after_commit(partial(self._bell.tasks_cancelled, tasks))
        return [doc_id for doc_id in doc_ids if doc_id in stopped]

    def require_room(self) -> None:
        """Raises Backlogged. Counted through the index, no further than the limit, and far below it now and then."""
        limit = self._settings.max_backlog
        if self._waiting < limit / 2 and time.monotonic() - self._counted_s < _COUNT_KEPT_S:
            return
        found = self._rows.read(
            self._rows.rows,
            f"SELECT COUNT(*) FROM (SELECT 1 FROM task WHERE state = {int(TaskState.PENDING)} LIMIT {limit + 1}) AS w",
        )
        self._counted_s, self._waiting = time.monotonic(), int(found[0][0])
        if self._waiting > limit:
            raise Backlogged(f"more than {limit} tasks are waiting already: try again later")

    def restart_outdated(self) -> list[str]:
        """Begin anew every running document that waits for an older parser version than this one: no executor of
        today claims its tasks. Returns the ids of those that were begun anew."""
        found = self._rows.read(
            self._rows.rows,
            f"SELECT DISTINCT doc_id FROM task WHERE state = {int(TaskState.PENDING)} AND parser_version < ? LIMIT 500",
            (PARSER_VERSION,),
        )
        doc_ids = [row[0] for row in found]
        self._stop_in_slices(doc_ids, is_outcome=False)
        return self.restart(doc_ids)

    def _start_all(self, doc_ids: Sequence[str], begun: dict[str, str]) -> list[str]:
        """`begun` names each document's first task, and outlives a transaction that is run again: where that task is
        there, the commit went through and only its reply was lost."""
        task_sql.lock_documents(self._rows, doc_ids)
        return [doc_id for doc_id in doc_ids if self._has_begun(doc_id, begun) or self._start(doc_id, begun)]

    def _has_begun(self, doc_id: str, begun: dict[str, str]) -> bool:
        return doc_id in begun and bool(self._rows.rows("SELECT 1 FROM task WHERE id = ?", (begun[doc_id],)))

    def _start(self, doc_id: str, begun: dict[str, str]) -> bool:
        transition = DOCUMENT_TRANSITIONS["parse"]
        now = self._rows.now_ms
        won = self._rows.execute(
            f"UPDATE document SET {set_state_sql(transition, 'run')}, active_generation = {_ACTIVE_FROM_START},"
            f" generation = generation + 1, paused = 0, open_tasks = 0, total_tasks = 0, done_tasks = 0,"
            f" failed_tasks = 0, failed_pages = 0, reused_tasks = 0, run_units = 0, run_chunks = 0, run_tokens = 0,"
            f" index_seq = 0, error_code = '', error_message = '', begin_ms = {now}, end_ms = 0, update_ms = {now}"
            f" WHERE id = ? AND deleted_ms = 0 AND {from_states_sql(transition, 'run')}",
            (doc_id,),
        ).rowcount
        if not won:
            return False
        begun[doc_id] = self._insert_first_tasks(doc_id)
        return True

    def _insert_first_tasks(self, doc_id: str) -> str:
        """One prepare task; or, for a file whose profile is known, its ranges at once. Returns the first one's id."""
        file = known_file(self._rows, doc_id, self._model)
        ranges = file.ranges(self._settings)
        now_ms = self._rows.clock()
        if ranges:
            task_ids = task_sql.insert_tasks(self._rows, file.key, TaskType.RANGE, ranges, now_ms)
        else:
            task_ids = task_sql.insert_tasks(self._rows, file.key, TaskType.PREPARE, [WHOLE_DOCUMENT], now_ms)
        count = max(1, len(ranges))
        self._rows.execute(
            "UPDATE document SET profile = ?, open_tasks = ?, total_tasks = ? WHERE id = ?",
            (file.profile if ranges else None, count, count, doc_id),
        )
        return task_ids[0]

    def _stop_all(self, doc_ids: Sequence[str], stopped: dict[str, list[str]], is_outcome: bool) -> None:
        """Stops what runs. `stopped`, with the ids of each document's tasks that were at work, outlives a transaction
        that is run again, like `begun`. What begins anew at once is no outcome to tell."""
        task_sql.lock_documents(self._rows, doc_ids)
        for doc_id in doc_ids:
            if self._stop(doc_id):
                stopped[doc_id] = task_control.cancel_open_tasks(self._rows, doc_id, self._keep_ms)
                if is_outcome:
                    webhook_outcomes.record(self._rows, doc_id, webhook_outcomes.Outcome.CANCELLED)
            elif not (self._rows.is_in_doubt and self._is_stopped(doc_id)):
                stopped.pop(doc_id, None)  # an earlier try was rolled back, and now it is too late

    def _is_stopped(self, doc_id: str) -> bool:
        cancel = int(DOCUMENT_TRANSITIONS["cancel"].target)
        return bool(self._rows.rows(f"SELECT 1 FROM document WHERE id = ? AND run = {cancel}", (doc_id,)))

    def _stop(self, doc_id: str) -> bool:
        """A first parse that is stopped stops being searched in the same moment; an older generation stays."""
        transition = DOCUMENT_TRANSITIONS["cancel"]
        first_parse = "active_generation = generation"
        won = self._rows.execute(
            f"UPDATE document SET {set_state_sql(transition, 'run')}, paused = 0, open_tasks = 0,"
            f" chunk_count = CASE WHEN {first_parse} THEN 0 ELSE chunk_count END,"
            f" token_count = CASE WHEN {first_parse} THEN 0 ELSE token_count END,"
            f" active_generation = CASE WHEN {first_parse} THEN 0 ELSE active_generation END,"
            f" end_ms = {self._rows.now_ms}, update_ms = {self._rows.now_ms}"
            f" WHERE id = ? AND {from_states_sql(transition, 'run')}",
            (doc_id,),
        ).rowcount
        return bool(won)


def _slices(doc_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Renewals wait for the same lock: no transaction is long."""
    for start in range(0, len(doc_ids), _AT_ONCE):
        yield doc_ids[start : start + _AT_ONCE]
