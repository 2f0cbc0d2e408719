"""The list of chunks that are never answered and wait to be swept: lost claims and left generations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from api.db.database import Rows
from api.db.services.task_sql import WHOLE_GENERATION, marks
from rag.utils.doc_index import Scope

Claim = tuple[int, int, int]  # generation, task_no, claim_no


@dataclass(frozen=True)
class StaleLine:
    scope: Scope
    key: tuple[str, int, int, int]
    age_ms: int


class StaleService:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def due(self, count: int) -> list[StaleLine]:
        """Lines that may be swept by now, oldest first."""
        found = self._rows.read(
            self._rows.rows,
            f"SELECT doc_id, generation, task_no, claim_no, tenant_id, kb_id, {self._rows.now_ms} - at_ms"
            f" FROM stale_chunks WHERE sweep_ms <= {self._rows.now_ms} ORDER BY sweep_ms LIMIT ?",
            (count,),
        )
        return [
            StaleLine(_scope(tenant, kb, doc, gen, task, claim), (doc, gen, task, claim), int(age))
            for doc, gen, task, claim, tenant, kb, age in found
        ]

    def forget(self, line: StaleLine) -> None:
        """Nothing is left of these chunks. Where they were a whole generation's, its results are no source for reuse
        any more."""
        self._rows.write(self._forget, line.key)

    def _forget(self, key: tuple[str, int, int, int]) -> None:
        self._rows.execute(
            "DELETE FROM stale_chunks WHERE doc_id = ? AND generation = ? AND task_no = ? AND claim_no = ?", key
        )
        if key[2] == WHOLE_GENERATION:
            self._rows.execute("DELETE FROM range_result WHERE doc_id = ? AND generation = ?", key[:2])

    def lost_claims(self, doc_ids: Sequence[str]) -> dict[str, set[Claim]]:
        """Of each document, the claims whose chunks a search must not answer."""
        lost: dict[str, set[Claim]] = defaultdict(set)
        for start in range(0, len(doc_ids), 500):
            part = doc_ids[start : start + 500]
            found = self._rows.read(
                self._rows.rows,
                f"SELECT doc_id, generation, task_no, claim_no FROM stale_chunks"
                f" WHERE doc_id IN ({marks(part)}) AND task_no != {WHOLE_GENERATION}",
                part,
            )
            for doc_id, generation, task_no, claim_no in found:
                lost[doc_id].add((generation, task_no, claim_no))
        return lost


def _scope(tenant: str, kb: str, doc: str, generation: int, task_no: int, claim_no: int) -> Scope:
    claim = None if task_no == WHOLE_GENERATION else (task_no, claim_no)
    return Scope(tenant, kb, doc, generation or None, claim)
