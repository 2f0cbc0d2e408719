"""Failed tasks of all tenants, put together by their cause: for operators, who replay or discard a whole group.

A cause is the error's code and its message without the file's name and the numbers in it, which name pages and times.
Whether a task may run again is for control_service to say."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace

from api.db.database import Rows
from api.db.services.task_sql import marks
from common.task_state import TaskState

MOST_GROUPS = 50
_EXAMPLES = 3
# Different messages that are looked at, those that came last.
_MOST_MESSAGES = 2000
_FAILED = f"t.state = {int(TaskState.FAIL)} AND d.deleted_ms = 0"
_JOINED = "FROM task t JOIN document d ON d.id = t.doc_id"
# Every file has its own name: without it those that fail alike have the same message.
_MESSAGE = "REPLACE(t.error_message, d.name, 'the file')"
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True)
class FailedExample:
    task_id: str
    document_id: str
    document_name: str
    dataset_id: str
    tenant_id: str
    message: str
    end_ms: int


@dataclass(frozen=True)
class FailedGroup:
    """`current` of its `count` tasks belong to their document's newest parse: only these can run again."""

    id: str
    error_code: str
    message: str
    count: int
    current: int
    documents: int
    first_ms: int
    newest_ms: int
    messages: tuple[str, ...]
    examples: tuple[FailedExample, ...] = ()


class FailedGroups:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def look(self) -> list[FailedGroup]:
        """Those that came last first."""
        return self._rows.read(self._look)

    def task_ids(self, group_id: str, limit: int, after: str = "") -> list[str]:
        """Ids of a group's tasks in order, after this one. None where the group is gone meanwhile."""
        group = next((group for group in self._rows.read(self._groups) if group.id == group_id), None)
        if group is None:
            return []
        found = self._rows.read(
            self._rows.rows,
            f"SELECT t.id {_JOINED} WHERE {_FAILED} AND t.error_code = ? AND t.id > ?"
            f" AND {_MESSAGE} IN ({marks(group.messages)}) ORDER BY t.id LIMIT ?",
            (group.error_code, after, *group.messages, limit),
        )
        return [str(row[0]) for row in found]

    def _look(self) -> list[FailedGroup]:
        return [replace(group, examples=self._examples(group)) for group in self._groups()[:MOST_GROUPS]]

    def _groups(self) -> list[FailedGroup]:
        found = self._rows.rows(
            f"SELECT t.error_code, {_MESSAGE}, COUNT(*),"
            " SUM(CASE WHEN t.generation = d.generation THEN 1 ELSE 0 END), COUNT(DISTINCT t.doc_id), MIN(t.end_at),"
            f" MAX(t.end_at) {_JOINED} WHERE {_FAILED} GROUP BY t.error_code, {_MESSAGE}"
            f" ORDER BY MAX(t.end_at) DESC LIMIT {_MOST_MESSAGES}"
        )
        groups: dict[tuple[str, str], FailedGroup] = {}
        for code, message, *facts in found:
            cause = (str(code), cause_of(str(message)))
            count, current, documents, first_ms, newest_ms = map(int, facts)
            one = FailedGroup(
                _id(*cause), *cause, count, current, documents, first_ms, newest_ms, messages=(str(message),)
            )
            groups[cause] = _joined(groups[cause], one) if cause in groups else one
        return sorted(groups.values(), key=lambda group: -group.newest_ms)

    def _examples(self, group: FailedGroup) -> tuple[FailedExample, ...]:
        messages = group.messages[:_EXAMPLES]
        found = self._rows.rows(
            f"SELECT t.id, t.doc_id, d.name, t.kb_id, t.tenant_id, t.error_message, t.end_at {_JOINED} WHERE {_FAILED}"
            f" AND t.error_code = ? AND {_MESSAGE} IN ({marks(messages)}) ORDER BY t.end_at DESC, t.id"
            f" LIMIT {_EXAMPLES}",
            (group.error_code, *messages),
        )
        return tuple(FailedExample(*row) for row in found)


def cause_of(message: str) -> str:
    """The message with its numbers left out."""
    return _NUMBER.sub("…", message)


def _id(code: str, cause: str) -> str:
    return hashlib.sha256(f"{code}\0{cause}".encode()).hexdigest()[:16]


def _joined(one: FailedGroup, other: FailedGroup) -> FailedGroup:
    """`documents` may count one twice that failed with two messages."""
    return FailedGroup(
        one.id,
        one.error_code,
        one.message,
        one.count + other.count,
        one.current + other.current,
        one.documents + other.documents,
        min(one.first_ms, other.first_ms),
        max(one.newest_ms, other.newest_ms),
        (*one.messages, *other.messages),
    )
