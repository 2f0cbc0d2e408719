"""Copies that a power cut may take. The index has adopted their chunks before their rows said DONE, but neither was on
the disk then, and a power cut may keep the one and lose the other. So each copy is listed by the transaction that makes
it DONE, and stays listed until the index has it on the disk; one that the index has lost is parsed anew.

Looked through by the web server before it answers anybody, and then by the reaper."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from api.db.database import Rows
from api.db.services.read_ranges import UNTOUCHED, read_ranges
from api.db.services.task_sql import DocumentKey, marks
from common.errors import IndexUnavailable
from rag.utils.doc_index import DocIndex, Scope

log = logging.getLogger(__name__)
_COLUMNS = ("doc_id", "generation", "tenant_id", "kb_id", "at_ms")
_AT_ONCE = 200
# By then the indexer has made them: who asks for a document's chunks before has to do it.
REST_MS = 15_000
# No transaction takes that long.
ORPHAN_MS = 600_000


@dataclass(frozen=True)
class _Fresh:
    doc_id: str
    generation: int
    tenant_id: str
    kb_id: str

    @property
    def scope(self) -> Scope:
        return Scope(self.tenant_id, self.kb_id, self.doc_id, self.generation)


def add(rows: Rows, key: DocumentKey, now_ms: int) -> None:
    """Within the transaction that makes the document DONE."""
    values = [(key.doc_id, key.generation, key.tenant_id, key.kb_id, now_ms)]
    rows.insert_many("fresh_copy", _COLUMNS, values, replace=True)


class FreshCopies:
    def __init__(self, rows: Rows, index: DocIndex, restart: Callable[[Sequence[str]], list[str]]) -> None:
        self._rows = rows
        self._index = index
        self._restart = restart

    def check_all(self) -> None:
        """Before anybody is answered. An index that is away answers nobody; the reaper goes on then."""
        try:
            while self.check(rest_ms=0):
                pass
        except IndexUnavailable as exc:
            log.warning("copies can't be checked now: %s", exc)

    def check(self, rest_ms: int = REST_MS) -> int:
        """Have those that were made so long ago on the disk, or parsed anew, a few at a time. Returns how many."""
        if not self._index.adopts:
            return 0
        found = self._rows.read(
            self._rows.rows,
            "SELECT doc_id, generation, tenant_id, kb_id FROM fresh_copy"
            f" WHERE at_ms <= {self._rows.now_ms} - ? LIMIT {_AT_ONCE}",
            (rest_ms,),
        )
        fresh = [_Fresh(*line) for line in found]
        if fresh:
            lost = [copy.doc_id for copy in fresh if self._is_lost(copy)]
            if lost:
                log.warning("%d documents lost their chunks in a power cut and are parsed anew", len(lost))
                self._restart(lost)
            self._index.make_adopted_durable()
            self._rows.write(self._forget, fresh)
        return len(fresh)

    def drop_orphans(self, rest_ms: int = ORPHAN_MS) -> int:
        """Delete copies whose documents never came to be: the transaction that made both was rolled back, or its
        process died. Those of documents that are there are known to the rows. Returns how many were deleted."""
        adopted = self._index.adopted(rest_ms) if self._index.adopts else []
        if not adopted:
            return 0
        known = self._rows.read(self._known, [each.scope.document_id for each in adopted])
        orphans = [each for each in adopted if each.scope.document_id not in known]
        for orphan in orphans:
            self._index.delete(orphan.scope)
        self._index.confirm_adopted(adopted)
        return len(orphans)

    def _known(self, doc_ids: Sequence[str | None]) -> set[str]:
        return {row[0] for row in self._rows.rows(f"SELECT id FROM document WHERE id IN ({marks(doc_ids)})", doc_ids)}

    def _is_lost(self, copy: _Fresh) -> bool:
        """Nothing of it is there, and nobody has changed anything: a copy is there as a whole or not at all."""
        return not any(self._index.tally(copy.scope)) and self._rows.read(self._has_chunks, copy)

    def _has_chunks(self, copy: _Fresh) -> bool:
        which = f"SELECT 1 FROM document WHERE id = ? AND generation = ? AND {UNTOUCHED}"
        if not self._rows.rows(which, (copy.doc_id, copy.generation)):
            return False
        read = read_ranges(self._rows, copy.doc_id, copy.generation) or []
        return any(one.chunks for one in read) and all(one.digest for one in read)

    def _forget(self, fresh: Sequence[_Fresh]) -> None:
        for copy in fresh:
            self._rows.execute(
                "DELETE FROM fresh_copy WHERE doc_id = ? AND generation = ?", (copy.doc_id, copy.generation)
            )
