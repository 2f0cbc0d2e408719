"""A parse of which nothing has changed since the last one: the same file, settings, parser and model, and every chunk
still in the index. It is answered by the rows: no task is made, and the generation that is searched stays.

What a generation was made of is in its tasks. A range whose chunks somebody edited has no digest there any more, and so
is read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from api.db.database import Rows
from api.db.services import task_sql
from api.db.services.known_file import known_file
from api.db.services.read_ranges import UNTOUCHED, read_ranges
from api.db.services.task_plan import ModelTraits
from api.db.services.task_sql import DocumentKey
from api.db.services.webhook_outcomes import Outcome, record
from common.errors import IndexUnavailable
from common.settings import TaskSettings
from rag.utils.doc_index import DocIndex, Scope

_Claims = dict[tuple[int, int], int]


@dataclass(frozen=True)
class _Whole:
    """A document that is as another parse would make it, if its chunks are there: how many each claim wrote."""

    key: DocumentKey
    first_task: str
    claims: _Claims


class UnchangedParse:
    def __init__(self, rows: Rows, index: DocIndex, settings: TaskSettings, model: ModelTraits) -> None:
        self._rows = rows
        self._index = index
        self._settings = settings
        self._model = model

    def settle(self, doc_ids: Sequence[str], /, *, are_new: bool = False) -> list[str]:
        """End the parse of those documents of which nothing has changed. Returns their ids."""
        if are_new:
            return []
        whole = [found for doc_id in doc_ids if (found := self._rows.read(self._find_whole, doc_id))]
        there = [document for document in whole if self._is_there(document)]
        return self._rows.write(self._end_all, there, self._rows.read(self._rows.clock)) if there else []

    def _find_whole(self, doc_id: str) -> _Whole | None:
        if not self._rows.rows(f"SELECT 1 FROM document WHERE id = ? AND {UNTOUCHED}", (doc_id,)):
            return None
        file = known_file(self._rows, doc_id, self._model)
        wanted = {one.digest for one in file.ranges(self._settings)}
        read = read_ranges(self._rows, doc_id, file.key.generation)
        if not wanted or read is None or {one.digest for one in read} != wanted:
            return None
        return _Whole(file.key, read[0].task_id, {one.claim: one.chunks for one in read if one.chunks})

    def _is_there(self, document: _Whole) -> bool:
        """Every chunk of every claim, and no other. An index that is away is waited for by tasks, not here."""
        key = document.key
        try:
            found = list(self._index.tally(Scope(key.tenant_id, key.kb_id, key.doc_id, key.generation)))
        except IndexUnavailable:
            return False
        return {(tally.task_no, tally.claim_no): tally.count for tally in found} == document.claims

    def _end_all(self, documents: Sequence[_Whole], now_ms: int) -> list[str]:
        """`now_ms` outlives a transaction that is run again: a parse that has ended then has ended by this call."""
        task_sql.lock_documents(self._rows, [document.key.doc_id for document in documents])
        return [document.key.doc_id for document in documents if self._end(document, now_ms)]

    def _end(self, document: _Whole, now_ms: int) -> bool:
        """The document may have been stopped, deleted or parsed by somebody else since it was looked at."""
        doc_id, generation = document.key.doc_id, document.key.generation
        won = self._rows.execute(
            f"UPDATE document SET begin_ms = ?, end_ms = ?, update_ms = {self._rows.now_ms}, reused_tasks = total_tasks"
            f" WHERE id = ? AND generation = ? AND end_ms < ? AND {UNTOUCHED}",
            (now_ms, now_ms, doc_id, generation, now_ms),
        ).rowcount
        if won:
            task_sql.add_events(self._rows, [self._event(document)])
            record(self._rows, doc_id, Outcome.DONE)
            return True
        which = f"SELECT 1 FROM document WHERE id = ? AND generation = ? AND end_ms = ? AND {UNTOUCHED}"
        return bool(self._rows.rows(which, (doc_id, generation, now_ms)))

    def _event(self, document: _Whole) -> task_sql.Event:
        key = document.key
        return task_sql.Event(
            document.first_task, key.doc_id, key.generation, 0, "", "unchanged", "", "parsed again: nothing had changed"
        )
