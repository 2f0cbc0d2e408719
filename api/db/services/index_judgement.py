"""What is wrong with a document's chunks, judged from what the rows and the index say of it. Nothing is read here
(index_audit.py does that)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from api.db.services.chunk_counts import ADDED_CLAIM
from api.db.services.stale_service import Claim
from api.db.services.task_sql import WHOLE_GENERATION
from common.task_state import DocumentRun
from rag.utils.doc_index import Scope, Tally


class Wrong(StrEnum):
    MISSING = "missing"
    EXTRA = "extra"
    GENERATION = "wrong generation"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a document. `doomed` are chunks that nobody needs, `to_parse` tells that only a new
    parse helps, `ranges` are the pages (from 1) or rows whose chunks are not all there, as far as that is known."""

    wrong: Wrong
    document_id: str
    dataset_id: str
    tenant_id: str
    name: str
    expected: int
    found: int
    doomed: tuple[Scope, ...] = ()
    to_parse: bool = False
    ranges: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class DocumentRow:
    """What the rows say of a document. `stale` are its lines of chunks that wait to be swept."""

    id: str
    tenant_id: str
    dataset_id: str
    name: str
    run: int
    generation: int
    active_generation: int
    chunk_count: int
    deleted_ms: int
    stale: frozenset[Claim] = frozenset()

    def waits_for_the_sweeper(self, held: Tally) -> bool:
        lines = (
            (0, WHOLE_GENERATION, 0),
            (held.generation, WHOLE_GENERATION, 0),
            (held.generation, held.task_no, held.claim_no),
        )
        return not self.stale.isdisjoint(lines)

    @property
    def is_growing(self) -> bool:
        """Its first parse is at work: nobody can say yet how many chunks it should have."""
        return self.run == DocumentRun.RUNNING and self.active_generation == self.generation


@dataclass(frozen=True)
class FinishedRange:
    """What a finished task has written. Known until its row is forgotten."""

    task_no: int
    claim_no: int
    from_page: int
    to_page: int
    chunk_count: int


def judge(row: DocumentRow | None, tallies: Sequence[Tally], ranges: Sequence[FinishedRange]) -> list[Finding]:
    """What is wrong with a document, from what the rows and the index say of it."""
    if row is None:
        return [_nobodys(tallies)] if tallies else []
    due = [tally for tally in tallies if not row.waits_for_the_sweeper(tally)]
    active = [t for t in due if t.generation == row.active_generation]
    growing = row.generation if row.run == DocumentRun.RUNNING else None
    stray = [t for t in due if t not in active and t.generation != growing]
    findings = []
    if stray:
        found = sum(tally.count for tally in stray)
        findings.append(_finding(Wrong.GENERATION, row, 0, found, doomed=tuple(map(_scope_of, stray))))
    if not row.is_growing and not row.deleted_ms:
        findings += _compare(row, active, ranges)
    return findings


def _compare(row: DocumentRow, active: Sequence[Tally], ranges: Sequence[FinishedRange]) -> list[Finding]:
    """The active generation: as many chunks as the row says, and of claims that finished."""
    expected = row.chunk_count if row.active_generation else 0
    found = sum(tally.count for tally in active)
    if found == expected:
        return []
    held = {(tally.task_no, tally.claim_no): tally.count for tally in active}
    if found < expected:
        short = [r for r in ranges if held.get((r.task_no, r.claim_no), 0) < r.chunk_count]
        pages = tuple((r.from_page + 1, r.to_page) for r in short if r.to_page)
        return [_finding(Wrong.MISSING, row, expected, found, to_parse=True, ranges=tuple(sorted(pages)))]
    finished = {(r.task_no, r.claim_no) for r in ranges} | {ADDED_CLAIM}
    unfinished = [t for t in active if ranges and (t.task_no, t.claim_no) not in finished]
    enough = found - sum(t.count for t in unfinished) == expected
    doomed = tuple(map(_scope_of, unfinished)) if enough else ()
    return [_finding(Wrong.EXTRA, row, expected, found, doomed=doomed, to_parse=not enough)]


def _nobodys(tallies: Sequence[Tally]) -> Finding:
    """Of a document that is not there."""
    one = tallies[0]
    whole = Scope(one.tenant_id, one.dataset_id, one.document_id)
    found = sum(tally.count for tally in tallies)
    return Finding(Wrong.EXTRA, one.document_id, one.dataset_id, one.tenant_id, "", 0, found, doomed=(whole,))


def _finding(
    wrong: Wrong,
    row: DocumentRow,
    expected: int,
    found: int,
    *,
    doomed: tuple[Scope, ...] = (),
    to_parse: bool = False,
    ranges: tuple[tuple[int, int], ...] = (),
) -> Finding:
    place = (row.id, row.dataset_id, row.tenant_id, row.name)
    return Finding(wrong, *place, expected, found, doomed, to_parse, ranges)


def _scope_of(held: Tally) -> Scope:
    claim = (held.task_no, held.claim_no)
    return Scope(held.tenant_id, held.dataset_id, held.document_id, held.generation, claim)
