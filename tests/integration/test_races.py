"""Many processes over the same thousand tasks at once, on SQLite and on MariaDB: exactly one winner each.

Claimers race for tasks and end what they won, or vanish with it and come back for it too late; others take tasks back,
stop, pause and resume documents, and mark and unmark what is published. Whatever the order was, what every process was
told agrees with the rows. The seed is printed; RACE_SEED=N deals the same hands again, the order is the machine's."""

from __future__ import annotations

import multiprocessing
import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.synchronize import Barrier
from typing import TypeVar

import pytest

from api.db.database import Rows, open_rows
from api.db.models import Document, Knowledgebase, StaleChunks, Task, TaskEvent
from api.db.services.control_service import ControlService
from api.db.services.document_sql import RANGES_CLOSED
from api.db.services.parse_service import Doorbell, ParseService
from api.db.services.publish_service import PublishService
from api.db.services.task_plan import ModelTraits
from api.db.services.task_requests import Claim, ClaimedTask, Ending, FinishDocument, FinishRange, GiveBack, Written
from api.db.services.task_service import Limits, TaskService
from api.db.services.task_sql import WHOLE_GENERATION
from common.errors import RowsUnavailable
from common.ids import new_token
from common.settings import TaskSettings
from common.task_state import DocumentRun, TaskState, TaskType
from tests.waiting import wait_until
from tests.world import World

pytestmark = pytest.mark.timeout(600)
DOCUMENTS = 50
RANGES = 20
STOPPED = 15
CLAIMERS = 8
STOPPERS = 2
# Of the oldest so many waiting tasks everybody takes a few: most are wanted by several at once.
WANTED = 40
MOST_AT_ONCE = 12
LONG_LEASE_MS = 600_000
NEVER_GIVEN_UP = 1_000_000
START_S = 120.0
END_S = 200.0
T = TypeVar("T")


@dataclass(frozen=True)
class Seat:
    """What a process is given; with its number and the seed it always draws the same lots."""

    url: str
    seed: int
    number: int


@dataclass(frozen=True)
class Ended:
    """A claim that was won, and the answer to what its winner said of it in the end."""

    task: ClaimedTask
    chunks: int
    answer: TaskState | None


@dataclass
class Stops:
    """What a stopper was told, and what it saw: the state of every task that it once saw ended."""

    won: list[str] = field(default_factory=list)
    ended: dict[str, int] = field(default_factory=dict)
    changed_later: list[tuple[str, int, int]] = field(default_factory=list)


# Made by the parent and handed to each process once: nobody starts before all are there.
_start: Barrier


def _sit_down(start: Barrier) -> None:
    global _start
    _start = start


@contextmanager
def seated(seat: Seat) -> Iterator[tuple[Rows, random.Random]]:
    rows = open_rows(seat.url)
    _start.wait(START_S)
    try:
        yield rows, random.Random(seat.seed * 1000 + seat.number)
    finally:
        rows.close_connection()


def insist(act: Callable[[], T]) -> T:
    """Ask again while the database has too much to do, as executors do; the last refusal counts."""
    for _ in range(20):
        try:
            return act()
        except RowsUnavailable:
            continue
    return act()


def task_service(rows: Rows, lease_ms: int = LONG_LEASE_MS) -> TaskService:
    return TaskService(rows, Limits(lease_ms, NEVER_GIVEN_UP), lambda: None)


def bell() -> Doorbell:
    return Doorbell(lambda: None, lambda _: None)


def is_over(rows: Rows) -> bool:
    running = int(DocumentRun.RUNNING)
    return not rows.read(rows.rows, f"SELECT 1 FROM document WHERE run = {running} LIMIT 1")


def dead_owner(number: int) -> str:
    return f"dead{number}:boot"


class Claimer:
    """One executor, as the rows see it. What it won it ends in its next turn, together with the next claim, but for
    what it won under the name of a dead one: for that it comes back at some time, often after it was handed on."""

    def __init__(self, seat: Seat, rows: Rows, dice: random.Random) -> None:
        self._rows = rows
        self._dice = dice
        self._owner = f"e{seat.number}:boot"
        self._dead_owner = dead_owner(seat.number)
        self._steady = task_service(rows)
        # Its leases are over as soon as they begin: the reaper may take what it has at any moment.
        self._late = task_service(rows, lease_ms=-1)
        self._in_hand: list[ClaimedTask] = []
        self._left: list[ClaimedTask] = []
        self.ended: list[Ended] = []

    def turn(self) -> bool:
        """True once every document has ended."""
        if is_over(self._rows):
            return True
        if self._left and self._dice.random() < 0.2:
            self._come_back(self._left.pop(self._dice.randrange(len(self._left))))
        dies = self._dice.random() < 0.15
        service = self._late if self._dice.random() < 0.2 else self._steady
        in_hand, self._in_hand = self._in_hand, []
        won = self._end_and_claim(service, in_hand, self._choose(), self._dead_owner if dies else self._owner)
        (self._left if dies else self._in_hand).extend(won)
        return False

    def end_all(self) -> None:
        for task in (*self._in_hand, *self._left):
            self._come_back(task)

    def _come_back(self, task: ClaimedTask) -> None:
        """Alone: who vanished with a task is in no batch with whoever has it now."""
        self._end_and_claim(self._steady, [task], (), self._owner)

    def _choose(self) -> tuple[str, ...]:
        found = self._rows.read(
            self._rows.rows,
            f"SELECT id FROM task WHERE state = {int(TaskState.PENDING)} ORDER BY id LIMIT {WANTED}",
        )
        waiting = [str(row[0]) for row in found]
        return tuple(self._dice.sample(waiting, min(len(waiting), self._dice.randint(1, MOST_AT_ONCE))))

    def _end_and_claim(
        self, service: TaskService, ending: Sequence[ClaimedTask], wanted: tuple[str, ...], owner: str
    ) -> list[ClaimedTask]:
        if not ending and not wanted:
            return []
        chunks = [self._dice.randint(1, 9) for _ in ending]
        requests = [self._ending(task, count) for task, count in zip(ending, chunks, strict=True)]
        token = new_token()
        *answers, won = insist(lambda: service.apply([*requests, Claim(wanted, owner, token)]))
        for task, count, answer in zip(ending, chunks, answers, strict=True):
            assert answer is None or isinstance(answer, TaskState)
            self.ended.append(Ended(task, count, answer))
        assert isinstance(won, list)
        assert all(task.token == token and task.id in wanted for task in won)
        return won

    def _ending(self, task: ClaimedTask, chunks: int) -> Ending:
        if self._dice.random() < 0.05:
            return GiveBack(task.held, "drain")
        if task.task_type is TaskType.FINISH:
            return FinishDocument(task.held, task.index_seq)
        return FinishRange(task.held, Written(chunks, chunks * 10, 1))


def claim_and_end(seat: Seat) -> list[Ended]:
    with seated(seat) as (rows, dice):
        claimer = Claimer(seat, rows, dice)
        wait_until(claimer.turn, END_S, "the end of all documents", look_s=0.001)
        claimer.end_all()
        return claimer.ended


def hand_back(seat: Seat) -> int:
    """Take back what dead executors held. Returns how many tasks that were."""
    with seated(seat) as (rows, _):
        tasks = task_service(rows)
        dead = [dead_owner(number) for number in range(CLAIMERS)]
        lost = 0

        def look() -> bool:
            nonlocal lost
            lost += sum(insist(partial(tasks.hand_back, owner, "it died")) for owner in dead)
            return is_over(rows)

        wait_until(look, END_S, look_s=0.05)
        return lost


def reap(seat: Seat) -> int:
    """Take back what is leased no longer. Returns how many tasks that were."""
    with seated(seat) as (rows, _):
        tasks = task_service(rows)
        lost = 0

        def look() -> bool:
            nonlocal lost
            lost += insist(tasks.reap)
            return is_over(rows)

        wait_until(look, END_S, look_s=0.02)
        return lost


def stop(seat: Seat, doc_ids: Sequence[str]) -> Stops:
    """Stop documents, each when about so many tasks have ended; then watch that nothing that ended changes."""
    seen = Stops()
    with seated(seat) as (rows, _):
        parsing = ParseService(rows, TaskSettings(), ModelTraits(256), bell())
        # Not this seat's own lots: all stoppers want the same document at the same time.
        at = sorted(random.Random(seat.seed).sample(range(DOCUMENTS * RANGES * 2 // 3), len(doc_ids)))

        def watch() -> int:
            found = rows.read(
                rows.rows,
                f"SELECT id, state FROM task WHERE state IN ({int(TaskState.CANCEL)}, {int(TaskState.DONE)})"
                f" AND task_type != '{TaskType.PREPARE}'",
            )
            now = dict(found)
            for task_id, state in seen.ended.items():
                if now.get(task_id) != state:
                    seen.changed_later.append((task_id, state, now.get(task_id, -1)))
            seen.ended.update(now)
            return len(now)

        def its_time(least: int) -> bool:
            return watch() >= least or is_over(rows)

        for doc_id, least in zip(doc_ids, at, strict=True):
            wait_until(partial(its_time, least), END_S, look_s=0.02)
            seen.won += insist(partial(parsing.stop, [doc_id]))
        wait_until(lambda: watch() and is_over(rows), END_S, look_s=0.1)
        watch()
    return seen


def pause_and_resume(seat: Seat) -> int:
    """Pause a document for a moment, again and again. Returns how many times one was resumed."""
    with seated(seat) as (rows, dice):
        control = ControlService(rows, TaskSettings(), bell())
        resumed = 0

        def look() -> bool:
            nonlocal resumed
            found = rows.read(rows.rows, f"SELECT id FROM document WHERE run = {int(DocumentRun.RUNNING)} ORDER BY id")
            if found:
                doc_id = str(dice.choice(found)[0])
                insist(lambda: control.pause([doc_id]))
                resumed += len(insist(lambda: control.resume([doc_id])))
            return is_over(rows)

        wait_until(look, END_S, look_s=0.05)
        return resumed


def publish(seat: Seat) -> int:
    """Mark tasks as published, and some of them as not. Returns how many were marked."""
    with seated(seat) as (rows, dice):
        publishing = PublishService(rows)
        marked = 0

        def look() -> bool:
            nonlocal marked
            chosen = [c.task_id for c in insist(lambda: publishing.mark_next(WANTED))]
            marked += len(chosen)
            insist(lambda: publishing.unmark(dice.sample(chosen, len(chosen) // 2)))
            return is_over(rows)

        wait_until(look, END_S, look_s=0.02)
        return marked


@dataclass
class Outcome:
    """What all processes were told."""

    ended: list[list[Ended]]
    stops: list[Stops]
    lost: int
    paused: int

    @property
    def claims(self) -> list[Ended]:
        return [one for of_one in self.ended for one in of_one]


def race(url: str, seed: int, stopped: Sequence[str]) -> Outcome:
    context = multiprocessing.get_context("spawn")
    count = CLAIMERS + STOPPERS + 4
    seats = iter(Seat(url, seed, number) for number in range(count))
    with ProcessPoolExecutor(count, context, _sit_down, (context.Barrier(count),)) as pool:
        claiming = [pool.submit(claim_and_end, next(seats)) for _ in range(CLAIMERS)]
        stopping = [pool.submit(stop, next(seats), stopped) for _ in range(STOPPERS)]
        losing: list[Future[int]] = [pool.submit(act, next(seats)) for act in (hand_back, reap)]
        pausing = pool.submit(pause_and_resume, next(seats))
        publishing = pool.submit(publish, next(seats))
        # Who fails first is the cause: without it the others may never come to an end.
        ended = wait((*claiming, *stopping, *losing, pausing, publishing), return_when=FIRST_EXCEPTION)
        for failure in [one.exception() for one in ended.done if one.exception() is not None]:
            raise failure
        assert publishing.result() > 0
        return Outcome(
            [one.result() for one in claiming],
            [one.result() for one in stopping],
            sum(one.result() for one in losing),
            pausing.result(),
        )


def test_a_thousand_tasks_have_one_winner_each(rows: Rows, database_url: str) -> None:
    seed = int(os.environ.get("RACE_SEED", random.SystemRandom().randrange(1_000_000)))
    print(f"RACE_SEED={seed}")
    world = World(rows)
    doc_ids = [world.started(RANGES)[0] for _ in range(DOCUMENTS)]
    stopped = random.Random(seed).sample(doc_ids, STOPPED)
    outcome = race(database_url, seed, stopped)
    tasks = {task.id: task for task in Task.select().where(Task.task_type != TaskType.PREPARE)}
    print(
        f"{len(outcome.claims)} claims of {len(tasks)} tasks, {outcome.lost} lost, {outcome.paused} pauses,"
        f" {sum(one.answer is None for one in outcome.claims)} came too late"
    )
    check_claims(outcome, tasks)
    check_endings(outcome, tasks)
    check_stops(outcome, tasks, stopped)
    check_documents(world, doc_ids, tasks)
    check_timelines(tasks)
    check_lost_claims(outcome, tasks)
    check_latecomers(world, outcome)


def check_claims(outcome: Outcome, tasks: dict[str, Task]) -> None:
    """Every claim of a task had one winner, and their numbers leave none out."""
    numbers = defaultdict(list)
    for one in outcome.claims:
        numbers[one.task.id].append(one.task.claim_no)
    for task_id, task in tasks.items():
        assert sorted(numbers[task_id]) == list(range(1, task.claim_no + 1)), task_id
    assert set(numbers) <= set(tasks)
    assert outcome.lost == sum(task.losses for task in tasks.values())


def check_endings(outcome: Outcome, tasks: dict[str, Task]) -> None:
    """DONE was said once, to the holder of the last claim, and what it wrote is what counts; nobody else was heard."""
    done = Counter(one.task.id for one in outcome.claims if one.answer is TaskState.DONE)
    assert done == Counter(task_id for task_id, task in tasks.items() if task.state == TaskState.DONE)
    for one in outcome.claims:
        task = tasks[one.task.id]
        is_last = one.task.claim_no == task.claim_no
        if one.answer is TaskState.DONE:
            assert is_last
            assert task.claim_token == one.task.token
            assert task.chunk_count == (0 if task.task_type == TaskType.FINISH else one.chunks)
        elif one.answer is None:
            assert not is_last or task.state == TaskState.CANCEL
        else:
            assert one.answer in (TaskState.PENDING, TaskState.PAUSED)
            assert not is_last or task.state == TaskState.CANCEL


def check_stops(outcome: Outcome, tasks: dict[str, Task], asked: Sequence[str]) -> None:
    """A stop has one winner or came too late; what ended stayed as it was from then on."""
    won = Counter(doc_id for seen in outcome.stops for doc_id in seen.won)
    cancelled = Document.select().where(Document.run == DocumentRun.CANCEL)
    assert won == Counter(doc.id for doc in cancelled)
    assert set(won) <= set(asked)
    for seen in outcome.stops:
        assert seen.changed_later == []
        assert seen.ended == {task_id: task.state for task_id, task in tasks.items()}


def check_documents(world: World, doc_ids: Sequence[str], tasks: dict[str, Task]) -> None:
    """Counters agree with the tasks; what was not stopped is DONE, by one finish task."""
    of_document = defaultdict(list)
    for task in tasks.values():
        of_document[task.doc_id].append(task)
    chunks = 0
    for doc_id in doc_ids:
        doc = world.doc(doc_id)
        ranges = [t for t in of_document[doc_id] if t.task_type == TaskType.RANGE]
        finishing = [t for t in of_document[doc_id] if t.task_type == TaskType.FINISH]
        done = [t for t in ranges if t.state == TaskState.DONE]
        assert (len(ranges), doc.total_tasks, doc.generation) == (RANGES, RANGES, 1)
        assert (doc.done_tasks, doc.failed_tasks) == (len(done), 0)
        assert doc.run_chunks == sum(t.chunk_count for t in done)
        assert doc.run_tokens == sum(t.token_count for t in done) == doc.run_chunks * 10
        if doc.run == DocumentRun.DONE:
            assert [t.state for t in finishing] == [TaskState.DONE]
            assert (len(done), doc.open_tasks, doc.active_generation) == (RANGES, RANGES_CLOSED, 1)
            assert (doc.chunk_count, doc.token_count) == (doc.run_chunks, doc.run_tokens)
            chunks += doc.run_chunks
        else:
            assert doc.run == DocumentRun.CANCEL
            assert [t.state for t in finishing] == [TaskState.CANCEL] * (len(done) == RANGES)
            assert {t.state for t in ranges} <= {TaskState.DONE, TaskState.CANCEL}
            assert (doc.open_tasks, doc.active_generation, doc.chunk_count) == (0, 0, 0)
    dataset = Knowledgebase.get_by_id(world.kb_id)
    assert (dataset.chunk_count, dataset.token_count) == (chunks, chunks * 10)


def check_timelines(tasks: dict[str, Task]) -> None:
    """One line a claim, and one for each task that is done."""
    lines = Counter((e.task_id, e.kind, e.claim_no) for e in TaskEvent.select() if e.task_id in tasks)
    expected = Counter((t.id, "claim", n) for t in tasks.values() for n in range(1, t.claim_no + 1))
    expected += Counter((t.id, "done", t.claim_no) for t in tasks.values() if t.state == TaskState.DONE)
    assert Counter({line: n for line, n in lines.items() if line[1] in ("claim", "done")}) == expected


def check_lost_claims(outcome: Outcome, tasks: dict[str, Task]) -> None:
    """Chunks of every claim but a task's last are never answered; of a stopped document none at all."""
    stale = {(s.doc_id, s.task_no, s.claim_no) for s in StaleChunks.select()}
    whole = {doc_id for doc_id, task_no, _ in stale if task_no == WHOLE_GENERATION}
    assert whole == {doc.id for doc in Document.select().where(Document.run == DocumentRun.CANCEL)}
    for one in outcome.claims:
        task = tasks[one.task.id]
        if task.task_type == TaskType.FINISH:
            continue
        is_stale = (task.doc_id, one.task.task_no, one.task.claim_no) in stale
        if one.task.claim_no < task.claim_no:
            assert is_stale
        elif task.state == TaskState.DONE:
            assert not is_stale


def check_latecomers(world: World, outcome: Outcome) -> None:
    """Who lost is refused for ever, and who won may say it again; neither changes anything."""
    before = everything(world.rows)
    for one in outcome.claims[:: max(1, len(outcome.claims) // 100)]:
        if one.task.task_type is TaskType.FINISH:
            again: Ending = FinishDocument(one.task.held, 1)
        else:
            again = FinishRange(one.task.held, Written(99, 990, 99))
        expected = TaskState.DONE if one.answer is TaskState.DONE else None
        assert world.tasks.apply([again]) == [expected]
    assert world.claim(*(one.task.id for one in outcome.claims[:500])) == []
    assert everything(world.rows) == before


def everything(rows: Rows) -> list[list[tuple[object, ...]]]:
    return [
        rows.rows("SELECT id, state, claim_no, claim_token, chunk_count FROM task ORDER BY id"),
        rows.rows("SELECT id, run, open_tasks, done_tasks, run_chunks, chunk_count FROM document ORDER BY id"),
    ]
