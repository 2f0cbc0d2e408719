"""The states of tasks and documents and the table of legal transitions, as data.

The SQL that changes a state, the tests and the diagram in docs/states.md are all made from these tables;
a change that is not in them can't be expressed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class TaskState(IntEnum):
    PENDING = 0
    RUNNING = 1
    PAUSED = 2
    CANCEL = 3
    DONE = 4
    FAIL = 5


class DocumentRun(IntEnum):
    """A document's state under the names that RAGFlow's REST shows."""

    UNSTART = 0
    RUNNING = 1
    CANCEL = 2
    DONE = 3
    FAIL = 4


class TaskType(StrEnum):
    PREPARE = "prepare"
    RANGE = "range"
    FINISH = "finish"


class Priority(IntEnum):
    BULK = 0
    NORMAL = 1
    URGENT = 2


@dataclass(frozen=True)
class Transition:
    name: str
    sources: tuple[IntEnum, ...]
    target: IntEnum
    who: str
    when: str


_T = TaskState
TASK_TRANSITIONS = {
    t.name: t
    for t in (
        Transition("claim", (_T.PENDING,), _T.RUNNING, "executor", "run_after is reached and the message came"),
        Transition("finish", (_T.RUNNING,), _T.DONE, "executor", "its work is written, the token still holds"),
        Transition("retry", (_T.RUNNING,), _T.PENDING, "executor", "its own error; attempt + 1, backoff"),
        Transition("wait", (_T.RUNNING,), _T.PENDING, "executor", "an outage, or not ready; no attempt used"),
        Transition("drain", (_T.RUNNING,), _T.PENDING, "executor", "the executor stops; nothing counted"),
        Transition("lose", (_T.RUNNING,), _T.PENDING, "reaper, supervisor, executor",
                   "the lease ran out, the executor or its parser process died; losses + 1"),
        Transition("fail", (_T.RUNNING,), _T.FAIL, "executor, reaper",
                   "a permanent error, the last attempt, or the losses limit"),
        Transition("cancel", (_T.PENDING, _T.RUNNING, _T.PAUSED), _T.CANCEL, "user", "stop or delete"),
        Transition("pause", (_T.PENDING,), _T.PAUSED, "user", "pause"),
        Transition("park", (_T.RUNNING,), _T.PAUSED, "executor, reaper",
                   "goes back while its document is paused"),
        Transition("resume", (_T.PAUSED,), _T.PENDING, "user", "resume"),
        Transition("replay", (_T.FAIL,), _T.PENDING, "user, admin", "counters start again"),
    )
}  # fmt: skip

_D = DocumentRun
DOCUMENT_TRANSITIONS = {
    t.name: t
    for t in (
        Transition("parse", (_D.UNSTART, _D.CANCEL, _D.DONE, _D.FAIL), _D.RUNNING, "user",
                   "a new generation begins"),
        Transition("flip", (_D.RUNNING,), _D.DONE, "executor", "every range is findable"),
        Transition("fail", (_D.RUNNING,), _D.FAIL, "executor, reaper", "no task is open and one failed"),
        Transition("cancel", (_D.RUNNING,), _D.CANCEL, "user", "stop or delete"),
        Transition("replay", (_D.FAIL,), _D.RUNNING, "user, admin", "its failed tasks run again"),
        Transition("reset", (_D.UNSTART, _D.CANCEL, _D.DONE, _D.FAIL), _D.UNSTART, "user", "another chunk method"),
    )
}  # fmt: skip

TERMINAL_TASK_STATES = (TaskState.CANCEL, TaskState.DONE, TaskState.FAIL)


def set_state_sql(transition: Transition, column: str = "state") -> str:
    """`state = <target>` of a conditional UPDATE."""
    return f"{column} = {int(transition.target)}"


def from_states_sql(transition: Transition, column: str = "state") -> str:
    """`state IN (<sources>)` of a conditional UPDATE."""
    if len(transition.sources) == 1:
        return f"{column} = {int(transition.sources[0])}"
    return f"{column} IN ({', '.join(str(int(s)) for s in transition.sources)})"


# A prepare task that reads its only range itself writes chunks under this number: it must not be taken for the
# range that starts at the same page.
PREPARE_TASK_NO = -2


def chunk_task_no(task_type: str, from_page: int) -> int:
    """The number that a task's chunks carry: unique among the tasks of a generation that write any."""
    return PREPARE_TASK_NO if task_type == TaskType.PREPARE else from_page
