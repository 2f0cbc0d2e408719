"""How many documents a dataset or a tenant has, in all or in some states, by the counters that datasets keep. In a long
list most documents are done: those that are not are counted, and taken off. One statement sees both at one moment."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from api.db.database import Rows
from api.db.services.id_page import Count, counted
from api.db.services.task_sql import marks
from common.task_state import DocumentRun

_OF_DATASET = "SELECT COALESCE(MAX(document_count), 0) FROM knowledgebase WHERE id = ?"
# Of a deleted dataset too: its documents are deleted, and taken off, one after another.
_OF_TENANT = "SELECT COALESCE(SUM(document_count), 0) FROM knowledgebase WHERE tenant_id = ?"


@dataclass(frozen=True)
class Owned:
    """The documents of one dataset or tenant: `index` begins with the column that tells so, and has their states."""

    column: str
    owner_id: str
    index: str
    whole: str

    def count(self, rows: Rows, runs: Collection[DocumentRun] = ()) -> Count:
        """Those in one of these states; all of them where none is named."""
        others = [run for run in DocumentRun if run not in runs]
        if not runs or not others:
            return Count(self.whole, [self.owner_id])
        if DocumentRun.DONE not in runs:
            return counted(rows, self._in(runs), [self.owner_id], self.index)
        rest = counted(rows, self._in(others), [self.owner_id], self.index)
        return Count(f"SELECT ({self.whole}) - ({rest.sql})", [self.owner_id, *rest.params])

    def _in(self, runs: Collection[DocumentRun]) -> str:
        return f"{self.column} = ? AND deleted_ms = 0 AND run IN ({', '.join(str(int(run)) for run in sorted(runs))})"


def of_dataset(dataset_id: str) -> Owned:
    return Owned("kb_id", dataset_id, "document_run", _OF_DATASET)


def of_tenant(tenant_id: str) -> Owned:
    return Owned("tenant_id", tenant_id, "document_jobs", _OF_TENANT)


def run_counts(rows: Rows, dataset_ids: Sequence[str]) -> dict[str, dict[DocumentRun, int]]:
    """How many documents of each dataset are in each state; called within a read."""
    if not dataset_ids:
        return {}
    others = [run for run in DocumentRun if run is not DocumentRun.DONE]
    which = "d.kb_id = k.id AND d.deleted_ms = 0"
    number = f"SELECT COUNT(*) FROM document AS d{rows.using('document_run')} WHERE {which}"
    columns = ", ".join(f"({number} AND d.run = {int(run)})" for run in others)
    found = rows.rows(
        f"SELECT k.id, k.document_count, {columns} FROM knowledgebase k WHERE k.id IN ({marks(dataset_ids)})",
        dataset_ids,
    )
    return {dataset_id: _by_run(whole, dict(zip(others, rest, strict=True))) for dataset_id, whole, *rest in found}


def _by_run(whole: int, others: dict[DocumentRun, int]) -> dict[DocumentRun, int]:
    counts = others | {DocumentRun.DONE: max(0, whole - sum(others.values()))}
    return {run: count for run, count in counts.items() if count}
