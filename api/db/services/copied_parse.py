"""A first parse of what another document of the tenant was made of already: the same file, settings, parser and model,
every range done and no chunk edited. The index gives the document that one's chunks at once, and no task runs.

The index can't share a transaction with the rows. So a generation is taken first, and noted as left behind, due to be
swept in an hour; then the index adopts; then one transaction takes the note away and makes the document DONE. Whoever
dies in between leaves a generation that nobody searches. No disk is waited for: the same transaction lists the copy
among those that a power cut may take (fresh_copies.py).

A job makes its document within the same transaction: where that is not committed, no note is there either, and the
index's own list of what it gave tells of chunks whose document never came to be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from api.db.database import Rows
from api.db.services import document_sql, fresh_copies, tally_service, task_sql
from api.db.services.known_file import known_file
from api.db.services.read_ranges import UNTOUCHED, ReadRange, read_ranges
from api.db.services.tally_service import Tally
from api.db.services.task_plan import ModelTraits
from api.db.services.task_sql import WHOLE_GENERATION, DocumentKey, marks
from common.errors import IndexUnavailable
from common.settings import TaskSettings
from common.task_state import DOCUMENT_TRANSITIONS, DocumentRun, set_state_sql
from rag.parser.blocks import Unit
from rag.utils.doc_index import Adoption, DocIndex, Scope

_KEEP_MS = 3_600_000
_CONFIRM_MS = 600_000
_CLAIM_NO = 1
_NOTE = f"doc_id = ? AND generation = ? AND task_no = {WHOLE_GENERATION}"
_FRESH = f"deleted_ms = 0 AND run = {int(DocumentRun.UNSTART)} AND active_generation = 0"


@dataclass(frozen=True)
class _Source:
    """The document whose chunks are wanted, and what each of its ranges brought."""

    document_id: str
    dataset_id: str
    generation: int
    visible_seq: int
    units: int
    read: tuple[ReadRange, ...]


@dataclass(frozen=True)
class _Copy:
    key: DocumentKey
    profile: str
    digests: frozenset[str]
    source: _Source


class CopiedParse:
    def __init__(self, rows: Rows, index: DocIndex, settings: TaskSettings, model: ModelTraits) -> None:
        self._rows = rows
        self._index = index
        self._settings = settings
        self._model = model
        self._keep_ms = int(settings.reuse_keep_h * 3_600_000)

    def settle(self, doc_ids: Sequence[str], /, *, are_new: bool = False) -> list[str]:
        """End the parse of those documents that another one was like. Returns their ids.

        Not within a transaction that may still be rolled back, since the generation it took would be free for other
        chunks again; but for documents that it makes itself, which nobody else can parse then."""
        if not self._index.adopts or (self._rows.is_writing and not are_new):
            return []
        found = [copy for doc_id in doc_ids if (copy := self._rows.read(self._find, doc_id))]
        return [copy.key.doc_id for copy in found if self._make(copy)]

    def _find(self, doc_id: str) -> _Copy | None:
        if not self._rows.rows(f"SELECT 1 FROM document WHERE id = ? AND {_FRESH}", (doc_id,)):
            return None
        file = known_file(self._rows, doc_id, self._model)
        digests = frozenset(one.digest for one in file.ranges(self._settings))
        source = self._source(file.key.tenant_id, digests) if digests else None
        if source is None or file.profile is None:
            return None
        return _Copy(file.key, file.profile, digests, source)

    def _source(self, tenant_id: str, digests: frozenset[str]) -> _Source | None:
        """The one document that was made of exactly these ranges, if it is as it was then."""
        wanted = sorted(digests)
        found = self._rows.rows(
            f"SELECT DISTINCT r.doc_id, r.kb_id, r.generation FROM range_result r WHERE r.tenant_id = ?"
            f" AND r.digest IN ({marks(wanted)})",
            (tenant_id, *wanted),
        )
        if len(found) != 1:
            return None
        doc_id, kb_id, generation = found[0]
        return self._whole(doc_id, kb_id, generation, digests)

    def _whole(self, doc_id: str, kb_id: str, generation: int, digests: frozenset[str]) -> _Source | None:
        found = self._rows.rows(
            "SELECT visible_seq, run_units FROM document"
            f" WHERE id = ? AND kb_id = ? AND generation = ? AND {UNTOUCHED}",
            (doc_id, kb_id, generation),
        )
        read = read_ranges(self._rows, doc_id, generation)
        if not found or read is None or {each.digest for each in read} != digests:
            return None
        visible_seq, units = found[0]
        return _Source(doc_id, kb_id, generation, visible_seq, units, tuple(read))

    def _make(self, copy: _Copy) -> bool:
        taken, now_ms = self._rows.write(self._take_generation, copy.key)
        if taken is None:
            return False
        try:
            adopted = self._index.adopt(_adoption(copy, taken, now_ms))
        except IndexUnavailable:
            return False  # waited for by tasks, not here
        return adopted and self._rows.write(self._end, replace(copy, key=taken), now_ms)

    def _take_generation(self, key: DocumentKey) -> tuple[DocumentKey | None, int]:
        """And the time at which it was taken."""
        won = self._rows.execute(
            f"UPDATE document SET generation = generation + 1 WHERE id = ? AND generation = ? AND {_FRESH}",
            (key.doc_id, key.generation),
        ).rowcount
        taken = replace(key, generation=key.generation + 1)
        if won:
            task_sql.mark_stale(self._rows, taken, _KEEP_MS)
        return taken if won else None, self._rows.clock()

    def _end(self, copy: _Copy, now_ms: int) -> bool:
        """The document may have been parsed or deleted, and the source edited, since they were looked at."""
        task_sql.lock_documents(self._rows, [copy.key.doc_id, copy.source.document_id])
        source, key = copy.source, copy.key
        if self._is_ended(key):
            return True  # by an earlier try, whose reply was lost
        still = self._whole(source.document_id, source.dataset_id, source.generation, copy.digests)
        if still != source or not self._is_noted(key) or not self._begin(copy, now_ms):
            return False
        self._rows.execute(f"DELETE FROM stale_chunks WHERE {_NOTE}", (key.doc_id, key.generation))
        tasks = task_sql.insert_read(self._rows, key, source.read, _CLAIM_NO, now_ms)
        text = "made of the chunks of a document that is the same"
        task_sql.add_events(
            self._rows, [task_sql.Event(tasks[0], key.doc_id, key.generation, _CLAIM_NO, "", "copied", "", text)]
        )
        tally_service.add(self._rows, _tally(copy))
        fresh_copies.add(self._rows, key, now_ms)
        document_sql.flip(self._rows, key.doc_id, key.generation, source.visible_seq, self._keep_ms)
        return True

    def _is_ended(self, key: DocumentKey) -> bool:
        which = f"SELECT 1 FROM document WHERE id = ? AND generation = ? AND run = {int(DocumentRun.DONE)}"
        return bool(self._rows.rows(which, (key.doc_id, key.generation)))

    def _is_noted(self, key: DocumentKey) -> bool:
        """And so lately that no sweeper can have it in hand."""
        lately = f"at_ms > {self._rows.now_ms} - {_CONFIRM_MS}"
        which = f"SELECT 1 FROM stale_chunks WHERE {_NOTE} AND {lately}"
        return bool(self._rows.rows(which, (key.doc_id, key.generation)))

    def _begin(self, copy: _Copy, now_ms: int) -> bool:
        """The parse that is over in the same transaction."""
        read = copy.source.read
        running = set_state_sql(DOCUMENT_TRANSITIONS["parse"], "run")
        won = self._rows.execute(
            f"UPDATE document SET {running}, active_generation = generation,"
            f" profile = ?, paused = 0, open_tasks = {document_sql.RANGES_CLOSED}, total_tasks = ?, done_tasks = ?,"
            f" failed_tasks = 0, failed_pages = 0, reused_tasks = ?, run_units = ?, run_chunks = ?, run_tokens = ?,"
            f" index_seq = ?, error_code = '', error_message = '', begin_ms = ?, end_ms = 0"
            f" WHERE id = ? AND generation = ? AND {_FRESH}",
            (
                copy.profile, len(read), len(read), len(read), copy.source.units, sum(one.chunks for one in read),
                sum(one.tokens for one in read), copy.source.visible_seq, now_ms, copy.key.doc_id, copy.key.generation,
            ),
        ).rowcount  # fmt: skip
        return bool(won)


def _tally(copy: _Copy) -> Tally:
    read, paged = copy.source.read, json.loads(copy.profile)["unit"] in (Unit.PAGE, Unit.SLIDE)
    return Tally(
        reused=len(read),
        reused_pages=copy.source.units if paged else 0,
        chunks=sum(one.chunks for one in read),
        tokens=sum(one.tokens for one in read),
    )


def _adoption(copy: _Copy, target: DocumentKey, now_ms: int) -> Adoption:
    source = copy.source
    return Adoption(
        source=Scope(target.tenant_id, source.dataset_id, source.document_id, source.generation),
        claims={one.claim: one.chunks for one in source.read if one.chunks},
        findable=source.visible_seq,
        dataset_id=target.kb_id,
        document_id=target.doc_id,
        generation=target.generation,
        claim_no=_CLAIM_NO,
        created_ms=now_ms,
    )
