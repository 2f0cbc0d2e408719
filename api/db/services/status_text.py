"""One sentence that says why a document is where it is and what comes next, made from its row and its open tasks.
Pure. What is said of one that is on its way is in running_text.py."""

from __future__ import annotations

from api.db.services.running_text import running_text, tasks_done
from api.db.services.spoken import count_text
from api.db.services.status_facts import StatusFacts
from common.errors import BY_CODE, Verdict
from common.task_state import DocumentRun, TaskState, TaskType
from rag.flow.split import range_text
from rag.parser.blocks import Unit

_BAD_PAGES_NAMED = 3


def status_text(facts: StatusFacts) -> str:
    match facts.run:
        case DocumentRun.UNSTART:
            return ""
        case DocumentRun.CANCEL:
            return _stopped(facts)
        case DocumentRun.DONE:
            return _done(facts)
        case DocumentRun.FAIL:
            return _failed(facts)
        case DocumentRun.RUNNING:
            return running_text(facts)


def progress_of(facts: StatusFacts) -> float:
    """0 before and after a stop, 1 when done, -1 when failed; below 1 as long as something is left to do."""
    match facts.run:
        case DocumentRun.DONE:
            return 1.0
        case DocumentRun.FAIL:
            return -1.0
        case DocumentRun.RUNNING if facts.total_tasks:
            part = sum(
                t.progress for t in facts.tasks if t.state == TaskState.RUNNING and t.task_type != TaskType.FINISH
            )
            return round(min((facts.done_tasks + part) / facts.total_tasks, 0.99), 4)
        case _:
            return 0.0


def _done(facts: StatusFacts) -> str:
    if not facts.chunk_count and facts.run_chunks:
        return "done, but all of its chunks were deleted; parse it again to get them back"
    if not facts.chunk_count and not facts.bad_pages:
        return f"done: no text was found in {_size(facts)}; scans are read unless `layout_recognize` is Plain Text"
    text = f"done: {count_text(facts.chunk_count, 'chunk')} from {_size(facts)} in {facts.duration_s:.1f} s"
    if facts.reused_tasks:
        text += f"; {facts.reused_tasks} of {count_text(facts.total_tasks, 'task')} reused"
    if not facts.bad_pages:
        return text
    named = "; ".join(
        f"{range_text(facts.unit, first, last)} could not be read: {reason}"
        for first, last, reason in facts.bad_pages[:_BAD_PAGES_NAMED]
    )
    more = len(facts.bad_pages) - _BAD_PAGES_NAMED
    return f"{text}; but {named}" + (f"; and {more} more" if more > 0 else "")


def _stopped(facts: StatusFacts) -> str:
    done = f" with {tasks_done(facts)}" if facts.done_tasks else ""
    return f"stopped by the user{done}{_former(facts)}; parse it again to go on"


def _failed(facts: StatusFacts) -> str:
    text = f"failed: {facts.error_message}"
    if facts.is_searchable_run and facts.chunk_count:
        text += f"; {count_text(facts.chunk_count, 'chunk')} of the rest can be found"
    text += _former(facts)
    known = BY_CODE.get(facts.error_code)
    if known is not None and known.verdict is Verdict.PERMANENT:
        return text  # the file itself is the cause: another try would end the same
    return f"{text}; replay its failed tasks, or parse it again"


def _former(facts: StatusFacts) -> str:
    if not facts.former_chunks:
        return ""
    return f"; {count_text(facts.former_chunks, 'chunk')} of the parse before can still be found"


def _size(facts: StatusFacts) -> str:
    return "the file" if facts.unit is Unit.WHOLE else count_text(facts.units, facts.unit.value)
