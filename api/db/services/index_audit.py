"""The index compared with the rows, document by document: which chunks are missing, and which should not be there.

Nothing is changed here (index_repair.py does that), and what is at work is left alone: a document that seems wrong is
looked at again, until its row is the same before and after the look."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from api.db.database import Rows
from api.db.services.index_judgement import DocumentRow, Finding, FinishedRange, judge
from api.db.services.task_sql import marks
from common.task_state import TaskState, chunk_task_no
from rag.utils.doc_index import DocIndex, Scope, Tally

_SLICE = 500
_LOOKS = 5
_DOCUMENT = (
    "SELECT id, tenant_id, kb_id, name, run, generation, active_generation, chunk_count, deleted_ms FROM document"
)


@dataclass(frozen=True)
class Audit:
    documents: int
    chunks: int
    findings: list[Finding]
    damage: str = ""

    @property
    def is_sound(self) -> bool:
        return not self.findings and not self.damage


@dataclass
class _Held:
    """The claims of one document in the index."""

    tenant_id: str
    dataset_id: str
    document_id: str
    tallies: list[Tally] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str, str]:
        return self.tenant_id, self.dataset_id, self.document_id

    @property
    def scope(self) -> Scope:
        return Scope(*self.key)


class AuditService:
    def __init__(self, rows: Rows, index: DocIndex) -> None:
        self._rows = rows
        self._index = index

    def run(self) -> Audit:
        """Raises IndexUnavailable."""
        seen: set[tuple[str, str, str]] = set()
        chunks = 0
        suspects: list[_Held] = []
        for part in _slices(_by_document(self._index.tally())):
            documents = self._read([held.document_id for held in part])
            suspects += [held for held in part if judge(_row_of(held, documents), held.tallies, ())]
            seen |= {held.key for held in part}
            chunks += sum(tally.count for held in part for tally in held.tallies)
        due = (_Held(row.tenant_id, row.dataset_id, row.id) for row in self._with_chunks())
        unseen = [held for held in due if held.key not in seen]
        suspects += unseen
        findings = [finding for held in suspects for finding in self._confirmed(held)]
        found = self._without_strangers(findings)
        return Audit(len(seen) + len(unseen), chunks, found, self._index.damage())

    def _confirmed(self, held: _Held) -> list[Finding]:
        for _ in range(_LOOKS):
            before = _row_of(held, self._read([held.document_id]))
            tallies = list(self._index.tally(held.scope))
            ranges = self._finished(before) if before is not None else []
            if _row_of(held, self._read([held.document_id])) == before:
                return judge(before, tallies, ranges)
        return []  # it changes all the time: it is being worked on

    def _without_strangers(self, findings: Iterable[Finding]) -> list[Finding]:
        """Chunks of tenants that this database does not know may be another instance's: they are told, not doomed."""
        known = {row[0] for row in self._rows.read(self._rows.rows, "SELECT id FROM tenant")}
        return [f if f.tenant_id in known else replace(f, doomed=()) for f in findings]

    def _read(self, document_ids: Collection[str]) -> dict[str, DocumentRow]:
        return self._rows.read(self._read_now, sorted(document_ids))

    def _read_now(self, ids: Sequence[str]) -> dict[str, DocumentRow]:
        lines = self._rows.rows(
            f"SELECT doc_id, generation, task_no, claim_no FROM stale_chunks WHERE doc_id IN ({marks(ids)})", ids
        )
        found = self._rows.rows(f"{_DOCUMENT} WHERE id IN ({marks(ids)})", ids)
        stale = {id_: frozenset(line[1:] for line in lines if line[0] == id_) for id_ in {line[0] for line in lines}}
        return {row[0]: replace(DocumentRow(*row), stale=stale.get(row[0], frozenset())) for row in found}

    def _with_chunks(self) -> Iterator[DocumentRow]:
        """Documents that should have chunks, in order of their ids."""
        last = ""
        while True:
            found = self._rows.read(
                self._rows.rows,
                f"{_DOCUMENT} WHERE id > ? AND deleted_ms = 0 AND active_generation > 0 AND chunk_count > 0"
                f" ORDER BY id LIMIT {_SLICE}",
                (last,),
            )
            yield from (DocumentRow(*row) for row in found)
            if len(found) < _SLICE:
                return
            last = found[-1][0]

    def _finished(self, row: DocumentRow) -> list[FinishedRange]:
        found = self._rows.read(
            self._rows.rows,
            f"SELECT task_type, claim_no, from_page, to_page, chunk_count FROM task"
            f" WHERE doc_id = ? AND generation = ? AND state = {int(TaskState.DONE)} AND chunk_count > 0",
            (row.id, row.active_generation),
        )
        return [FinishedRange(chunk_task_no(kind, first), claim, first, *rest) for kind, claim, first, *rest in found]


def _row_of(held: _Held, documents: Mapping[str, DocumentRow]) -> DocumentRow | None:
    """Its own: chunks that stand under another tenant or dataset are nobody's."""
    row = documents.get(held.document_id)
    return row if row and (row.tenant_id, row.dataset_id) == (held.tenant_id, held.dataset_id) else None


def _by_document(tallies: Iterable[Tally]) -> Iterator[_Held]:
    for key, group in groupby(tallies, key=lambda tally: (tally.tenant_id, tally.dataset_id, tally.document_id)):
        yield _Held(*key, list(group))


def _slices(held: Iterable[_Held]) -> Iterator[list[_Held]]:
    part: list[_Held] = []
    for one in held:
        part.append(one)
        if len(part) == _SLICE:
            yield part
            part = []
    if part:
        yield part
