"""The only writer of a task's state, and of the document's state that follows from it in the same transaction.

`apply` answers what an executor asks, a whole batch at once. Starting and stopping a parse is in parse_service.py,
publishing in publish_service.py; both change task rows through this module's transitions."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import peewee

from api.db.database import Rows
from api.db.services import document_sql, executor_registry, tally_service, task_control, task_sql
from api.db.services.tally_service import Tally
from api.db.services.task_requests import (
    Claim,
    ClaimedTask,
    Continued,
    Ending,
    Fail,
    FinishDocument,
    FinishPrepare,
    FinishRange,
    GiveBack,
    Held,
    Progress,
    Renew,
    Request,
    Written,
)
from api.db.services.task_sql import Event, TaskRow
from common.errors import AttemptFailed
from common.settings import Settings
from common.task_state import TASK_TRANSITIONS, TaskState, TaskType, from_states_sql, set_state_sql
from rag.flow.split import range_text
from rag.parser.blocks import Unit

# The error code of a task that was taken from an executor that is gone.
EXECUTOR_LOST = "executor_lost"

Ended = TaskState | Continued | None
Answer = list[ClaimedTask] | set[str] | Ended


@dataclass(frozen=True)
class Limits:
    """How long a claim holds, how often a task may be lost, and how long chunks of a failed parse are kept."""

    lease_ms: int
    max_losses: int
    keep_ms: int = 86_400_000

    @staticmethod
    def of(settings: Settings) -> Limits:
        keep_ms = int(settings.tasks.reuse_keep_h * 3_600_000)
        return Limits(int(settings.executor.lease_s * 1000), settings.tasks.max_losses, keep_ms)


class TaskService:
    """`tasks_waiting` is called after a commit that made tasks wait to be published: to ring the relay."""

    def __init__(self, rows: Rows, limits: Limits, tasks_waiting: Callable[[], None]) -> None:
        self._rows = rows
        self._limits = limits
        self._tasks_waiting = tasks_waiting

    def apply(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer all requests in one transaction, or none; renewals in one of their own before.

        A claim answers the tasks it got, a renewal the ids still held, an ending the task's new state (Continued: DONE,
        and the next one taken), or None where the claim it speaks for no longer holds."""
        renewals = [r for r in requests if isinstance(r, Renew)]
        others = [r for r in requests if not isinstance(r, Renew)]
        try:
            # By themselves and first: a renewal must never wait for the row of somebody else's document.
            renewed = self._rows.write(self._renew, renewals) if renewals else []
            answers, waiting = self._rows.write(self._apply, others) if others else ([], False)
        except peewee.PeeweeException as exc:
            raise AttemptFailed(f"the database refused what was to be written: {exc}") from exc
        if waiting:
            self._tasks_waiting()
        first, second = iter(renewed), iter(answers)
        return [next(first) if isinstance(r, Renew) else next(second) for r in requests]

    def hand_back(self, owner: str, why: str) -> int:
        """Take the tasks from an executor that is known to be dead, but for those of documents that somebody works on
        at this moment. Returns how many."""
        return self._lose("owner = ?", (owner,), why)

    def holds_any(self, owner: str) -> bool:
        return bool(self._rows.read(self._find_running, "owner = ?", (owner,)))

    def reap(self) -> int:
        """Take the tasks whose lease ran out. Returns how many."""
        return self._lose(f"lease_until < {self._rows.now_ms}", (), "its lease ran out")

    def _renew(self, requests: Sequence[Renew]) -> list[set[str]]:
        return [task_sql.renew(self._rows, request.held, self._limits.lease_ms) for request in requests]

    def _apply(self, requests: Sequence[Claim | Progress | Ending]) -> tuple[list[Answer], bool]:
        endings = [r for r in requests if not isinstance(r, Claim | Progress)]
        task_sql.lock_documents(self._rows, (e.held.document_id for e in endings))
        ended, waiting = self._end(endings)
        answers: list[Answer] = []
        for request in requests:
            if isinstance(request, Claim):
                answers.append(self._claim(request))
            elif isinstance(request, Progress):
                task_sql.set_progress(self._rows, request.held, request.progress, request.message)
                answers.append(None)
            else:
                answers.append(ended[request.held])
        return answers, waiting

    def _claim(self, request: Claim) -> list[ClaimedTask]:
        claimed, told = task_sql.claim(
            self._rows, request.task_ids, request.owner, request.token, self._limits.lease_ms
        )
        events = [
            Event(t.id, t.document_id, t.generation, t.claim_no, request.owner, "claim")
            for t in claimed
            if t.id not in told
        ]
        task_sql.add_events(self._rows, events)
        return claimed

    def _end(self, endings: Sequence[Ending]) -> tuple[dict[Held, Ended], bool]:
        """Every transition out of RUNNING that executors asked for; a claim that no longer holds gets None.

        Also tells whether tasks wait to be published now."""
        if not endings:
            return {}, False
        tasks = task_sql.lock_tasks(self._rows, [e.held.task_id for e in endings])
        answers: dict[Held, Ended] = {}
        following: dict[str, str] = {}
        before: set[Held] = set()
        finished: list[tuple[TaskRow, Written]] = []
        flips: list[tuple[TaskRow, int]] = []
        events: list[Event] = []
        touched: set[str] = set()
        for ending in endings:
            if ending.held in answers:
                continue  # the same claim again: its first ending counts
            task = tasks.get(ending.held.task_id)
            if task is None or not task.is_held_by(ending.held):
                answers[ending.held] = _already(task, ending)
                before.add(ending.held)
                continue
            if isinstance(ending, FinishRange):
                finished.append((task, ending.written))
                events.append(task.event("done", detail=ending.stages))
                answers[ending.held] = TaskState.DONE
            elif isinstance(ending, FinishPrepare):
                # What was read in the same go has the digest of its range: the next parse of the file can reuse it.
                digest = ending.ranges[0].digest if ending.written and ending.ranges else ""
                finished.append((msgspec.structs.replace(task, digest=digest), ending.written or Written()))
                events.append(task.event("prepared", detail=ending.stages))
                following |= self._insert_ranges(task, ending)
                answers[ending.held] = TaskState.DONE
            elif isinstance(ending, FinishDocument):
                flips.append((task, ending.visible_seq))
                events.append(task.event("done"))
                answers[ending.held] = TaskState.DONE
            else:
                answers[ending.held] = self._back_or_fail(task, ending, events)
            touched.add(task.doc_id)
        # Datasets in order as well: their counts change here, and two batches must not wait for each other.
        for task, visible_seq in sorted(flips, key=lambda flip: flip[0].kb_id):
            document_sql.flip(self._rows, task.doc_id, task.generation, visible_seq, self._limits.keep_ms)
        task_sql.finish(self._rows, [*finished, *((task, Written()) for task, _ in flips)])
        self._count(finished, endings)
        self._tell(events, [written for _, written in finished])
        following |= self._end_ranges(touched)
        answers |= self._go_on(endings, answers, following, before)
        split = any(isinstance(e, FinishPrepare) and e.written is None for e in endings)
        return answers, bool(following) or split or TaskState.PENDING in answers.values()

    def _go_on(
        self,
        endings: Sequence[Ending],
        answers: Mapping[Held, Ended],
        following: dict[str, str],
        before: Collection[Held],
    ) -> dict[Held, Continued]:
        """Claim for those who ended a task what follows from it, by document in `following`; what is claimed leaves it.
        Those who ended theirs `before`, and only the reply was lost, may have taken it then, under the same token."""
        taken: dict[Held, Continued] = {}
        for ending in endings:
            go_on = ending.go_on if isinstance(ending, FinishRange | FinishPrepare) else None
            if go_on is None or ending.held in taken or answers[ending.held] is not TaskState.DONE:
                continue
            doc_id = ending.held.document_id
            if doc_id in following:
                ids = [following[doc_id]]
            else:
                ids = self._held_under(doc_id, go_on.token) if ending.held in before else []
            for task in self._claim(Claim(tuple(ids), go_on.owner, go_on.token)):
                taken[ending.held] = Continued(task)
                following.pop(doc_id, None)
        return taken

    def _held_under(self, doc_id: str, token: str) -> list[str]:
        found = self._rows.rows("SELECT id FROM task WHERE doc_id = ? AND claim_token = ?", (doc_id, token))
        return [str(row[0]) for row in found]

    def _insert_ranges(self, task: TaskRow, ending: FinishPrepare) -> dict[str, str]:
        """The first of them by document, where it has several."""
        document_sql.set_profile(self._rows, task.doc_id, task.generation, json.dumps(ending.profile))
        if ending.written is not None:
            # What it read is named like any other range: the next parse sees that nothing has changed.
            digest = ending.ranges[0].digest if ending.ranges else ""
            self._rows.execute("UPDATE task SET digest = ? WHERE id = ?", (digest, task.id))
            return {}
        key = document_sql.key_of(self._rows, task.doc_id)
        ids = task_sql.insert_tasks(self._rows, key, TaskType.RANGE, ending.ranges, self._rows.clock())
        task_control.pause_if_paused(self._rows, task.doc_id)
        document_sql.add_tasks(self._rows, task.doc_id, task.generation, len(ending.ranges))
        return {task.doc_id: ids[0]}

    def _count(self, finished: Sequence[tuple[TaskRow, Written]], endings: Sequence[Ending]) -> None:
        """Bring the documents' counters after the ranges that just ended, one UPDATE a document."""
        split = {e.held.task_id for e in endings if isinstance(e, FinishPrepare) and e.written is None}
        sums: dict[tuple[str, int], document_sql.Counted] = defaultdict(document_sql.Counted)
        for task, written in finished:
            counted = sums[task.doc_id, task.generation]
            counted.ended += 1
            counted.done += task.id not in split
            counted.chunks += written.chunk_count
            counted.tokens += written.token_count
            counted.failed_pages += sum(bad.last - bad.first for bad in written.failed)
            counted.reused += written.reused
            counted.units += written.units
            counted.index_seq = max(counted.index_seq, written.index_seq)
        for (doc_id, generation), counted in sums.items():
            document_sql.count_ended(self._rows, doc_id, generation, counted)

    def _back_or_fail(self, task: TaskRow, ending: GiveBack | Fail, events: list[Event]) -> TaskState:
        if isinstance(ending, Fail):
            return self._fail(task, ending.error_code, ending.message, events)
        losing = ending.transition == "lose"
        if losing and task.losses + 1 >= self._limits.max_losses:
            return self._fail(task, ending.error_code, self._losses_text(task, ending), events)
        return self._back(task, ending, events)

    def _losses_text(self, task: TaskRow, ending: GiveBack) -> str:
        """What was lost how often, and on what: "executor lost 5 times on pages 13-24"."""
        earlier = self._rows.rows(
            "SELECT error_code FROM task_event WHERE task_id = ? AND kind = 'lose' ORDER BY id DESC LIMIT ?",
            (task.id, task.losses),
        )
        by_executor = [code == EXECUTOR_LOST for code in (ending.error_code, *(row[0] for row in earlier))]
        times = f"lost {task.losses + 1} times{self._place_text(task)}"
        if all(by_executor):
            return f"executor {times}"
        what = "executor or parser process" if any(by_executor) else "parser process"
        return f"{what} {times}: {ending.message}"

    def _place_text(self, task: TaskRow) -> str:
        if task.task_type != TaskType.RANGE:
            return ""
        found = self._rows.rows("SELECT profile FROM document WHERE id = ? AND profile IS NOT NULL", (task.doc_id,))
        unit = Unit(json.loads(found[0][0])["unit"]) if found else Unit.WHOLE
        return "" if unit is Unit.WHOLE else f" on {range_text(unit, task.from_page, task.to_page)}"

    def _back(self, task: TaskRow, ending: GiveBack, events: list[Event]) -> TaskState:
        """RUNNING to PENDING, or to PAUSED where the document is paused; the claim's chunks become stale."""
        paused = document_sql.is_paused(self._rows, task.doc_id)
        transition = TASK_TRANSITIONS["park" if paused else ending.transition]
        now = self._rows.now_ms
        waiting = f"CASE WHEN waiting_since = 0 THEN {now} ELSE waiting_since END"
        # What is no fault of the task does not cost it its place in the line.
        due = f"{now} + {int(ending.delay_ms)}" if ending.delay_ms else "run_after"
        self._rows.execute(
            f"UPDATE task SET {set_state_sql(transition)}, claim_token = '', owner = '', lease_until = 0,"
            f" published_at = 0, progress = 0, progress_msg = '', run_after = {due}, attempt = attempt + ?,"
            f" losses = losses + ?, retry_count = retry_count + ?, error_code = ?, error_message = ?,"
            f" waiting_since = {waiting if ending.transition == 'wait' and ending.error_code else '0'}"
            f" WHERE id = ? AND claim_token = ? AND {from_states_sql(transition)}",
            (
                ending.transition == "retry",
                ending.transition == "lose",
                ending.transition != "drain",
                ending.error_code,
                ending.message,
                task.id,
                task.claim_token,
            ),
        )
        task_sql.mark_stale(self._rows, task)
        if ending.transition != "wait" or ending.error_code:  # "not ready yet" is no news
            events.append(task.event(ending.transition, ending.error_code, ending.message))
        return TaskState(transition.target)

    def _fail(self, task: TaskRow, code: str, message: str, events: list[Event]) -> TaskState:
        transition = TASK_TRANSITIONS["fail"]
        self._rows.execute(
            f"UPDATE task SET {set_state_sql(transition)}, end_at = {self._rows.now_ms}, error_code = ?,"
            f" error_message = ?, process_duration = ({self._rows.now_ms} - begin_at) / 1000.0"
            f" WHERE id = ? AND claim_token = ? AND {from_states_sql(transition)}",
            (code, message, task.id, task.claim_token),
        )
        task_sql.mark_stale(self._rows, task)
        if task.task_type == TaskType.FINISH:
            document_sql.fail(self._rows, task.doc_id, task.generation, code, message, self._limits.keep_ms)
        else:
            document_sql.count_failed(self._rows, task.doc_id, task.generation, code, message)
        events.append(task.event("fail", code, message))
        return TaskState.FAIL

    def _end_ranges(self, doc_ids: Iterable[str]) -> dict[str, str]:
        """Whoever ended a document's last open range inserts its finish task. Their ids by document."""
        inserted: dict[str, str] = {}
        for key in document_sql.all_ranges_ended(self._rows, sorted(doc_ids)):
            document_sql.close_ranges(self._rows, key.doc_id, key.generation)
            whole = [document_sql.WHOLE_DOCUMENT]
            (inserted[key.doc_id],) = task_sql.insert_tasks(self._rows, key, TaskType.FINISH, whole, self._rows.clock())
            task_control.pause_if_paused(self._rows, key.doc_id)
        return inserted

    def _lose(self, condition: str, params: Sequence[object], why: str) -> int:
        if not self._rows.read(self._find_running, condition, params):
            return 0  # the usual answer, without the write lock
        lost = self._rows.write(self._lose_where, condition, params, why)
        if lost:
            self._tasks_waiting()
        return lost

    def _find_running(self, condition: str, params: Sequence[object]) -> list[tuple[str, str]]:
        return [
            (str(task_id), str(doc_id))
            for task_id, doc_id in self._rows.rows(
                f"SELECT id, doc_id FROM task WHERE state = {int(TaskState.RUNNING)} AND {condition} LIMIT 500", params
            )
        ]

    def _lose_where(self, condition: str, params: Sequence[object], why: str) -> int:
        found = self._find_running(condition, params)
        if not found:
            return 0
        free = task_sql.lock_free_documents(self._rows, {row[1] for row in found})
        events: list[Event] = []
        touched: set[str] = set()
        ids = [row[0] for row in found if row[1] in free]
        if not ids:
            return 0
        still = self._rows.rows(
            f"SELECT id FROM task WHERE state = {int(TaskState.RUNNING)} AND id IN ({task_sql.marks(ids)})"
            f" AND {condition}{self._rows.for_update}",
            (*ids, *params),
        )
        for task in task_sql.lock_tasks(self._rows, [row[0] for row in still]).values() if still else ():
            message = f"executor {executor_name(task.owner)} was lost: {why}"
            held = Held(task.id, task.claim_token, task.doc_id)
            executor_registry.note_lost(self._rows, task.owner, task.id, task.claim_no)
            self._back_or_fail(task, GiveBack(held, "lose", 0, EXECUTOR_LOST, message), events)
            touched.add(task.doc_id)
        self._tell(events, ())
        self._end_ranges(touched)
        return len(still)

    def _tell(self, events: Sequence[Event], written: Sequence[Written]) -> None:
        """Of tasks that ended or went back: their timelines, and the minute's counts."""
        task_sql.add_events(self._rows, events)
        tally = Tally()
        for event in events:
            if event.kind in ("done", "prepared"):
                tally.done += 1
            elif event.kind == "fail":
                tally.failed += 1
            elif event.error_code == EXECUTOR_LOST:
                tally.lost += 1
            elif event.error_code:
                tally.retried += 1
        for one in written:
            tally.reused += one.reused
            tally.pages += 0 if one.reused else one.pages
            tally.reused_pages += one.pages if one.reused else 0
            tally.chunks += one.chunk_count
            tally.tokens += one.token_count
        tally_service.add(self._rows, tally)


def executor_name(owner: str) -> str:
    """An owner is an executor's name and its boot's nonce."""
    return owner.partition(":")[0]


def _already(task: TaskRow | None, ending: Ending) -> TaskState | None:
    """A finish whose commit went through though its reply was lost has won, and is not applied again."""
    finishing = isinstance(ending, FinishRange | FinishPrepare | FinishDocument)
    if finishing and task and task.state == TaskState.DONE and task.claim_token == ending.held.token:
        return TaskState.DONE
    return None
