"""The documents of a dataset as a table: a page of them by state, type and name, in any order, with how many there are
of each. Any number of documents costs a fixed number of queries; each row is told as a job (job_views.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from peewee import fn

from api.db.database import Rows
from api.db.models import Document
from api.db.services.id_page import MAX_OFFSET
from api.db.services.job_views import JobView, job_views
from common.settings import TaskSettings
from common.task_state import DocumentRun


class TableState(StrEnum):
    """As people part documents: what waits and what is at work are both on their way."""

    UNSTARTED = "unstarted"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TableOrder(StrEnum):
    CREATED = "created"
    NAME = "name"
    SIZE = "size"
    CHUNKS = "chunks"
    STATE = "state"


_RUNS = {
    TableState.UNSTARTED: DocumentRun.UNSTART,
    TableState.RUNNING: DocumentRun.RUNNING,
    TableState.PAUSED: DocumentRun.RUNNING,
    TableState.DONE: DocumentRun.DONE,
    TableState.FAILED: DocumentRun.FAIL,
    TableState.CANCELLED: DocumentRun.CANCEL,
}
_STATES = {run: state for state, run in _RUNS.items() if state is not TableState.PAUSED}


@dataclass(frozen=True)
class TableFilter:
    """Empty tuples and "" ask for everything."""

    page: int = 1
    page_size: int = 50
    order: TableOrder = TableOrder.CREATED
    desc: bool = True
    keywords: str = ""
    states: tuple[TableState, ...] = ()
    suffixes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableRow:
    job: JobView
    suffix: str
    chunk_method: str
    is_enabled: bool


@dataclass(frozen=True)
class TablePage:
    """`total` is of what the filter lets through; `states` and `suffixes` count the whole dataset, `size_bytes` too."""

    total: int
    rows: Sequence[TableRow]
    states: Mapping[TableState, int]
    suffixes: Mapping[str, int]
    size_bytes: int


class DocumentTable:
    def __init__(self, rows: Rows, settings: TaskSettings) -> None:
        self._rows = rows
        self._max_attempts = settings.max_attempts

    def page(self, tenant_id: str, dataset_id: str, wanted: TableFilter) -> TablePage:
        return self._rows.read(self._page, tenant_id, dataset_id, wanted)

    def ids(self, tenant_id: str, dataset_id: str, wanted: TableFilter, most: int) -> list[str]:
        """Of all that the filter lets through, whatever the page; at most so many."""
        query = _filtered(tenant_id, dataset_id, wanted).select(Document.id)
        found = self._rows.read(list, _ordered(query, wanted).limit(most).tuples())
        return [str(document_id) for (document_id,) in found]

    def _page(self, tenant_id: str, dataset_id: str, wanted: TableFilter) -> TablePage:
        query = _filtered(tenant_id, dataset_id, wanted)
        offset = min((wanted.page - 1) * wanted.page_size, MAX_OFFSET)
        # Rows are large: they are put in order by their ids, and only the page's are read.
        place = _ordered(query.select(Document.id), wanted).limit(wanted.page_size).offset(offset).tuples()
        ids = [str(document_id) for (document_id,) in place]
        by_id = {row.id: row for row in Document.select().where(Document.id.in_(ids))}
        found = [by_id[document_id] for document_id in ids]
        jobs = job_views(self._rows, found, self._max_attempts)
        states, suffixes, size_bytes = _counts(tenant_id, dataset_id)
        return TablePage(
            total=query.count(),
            rows=[_row(job, row) for job, row in zip(jobs, found, strict=True)],
            states=states,
            suffixes=suffixes,
            size_bytes=size_bytes,
        )


def _row(job: JobView, row: Document) -> TableRow:
    return TableRow(job, row.suffix, row.chunk_method, bool(row.status))


def _filtered(tenant_id: str, dataset_id: str, wanted: TableFilter) -> Any:
    query: Any = Document.select().where(_alive(tenant_id, dataset_id))
    if wanted.keywords:
        query = query.where(Document.name_key.contains(wanted.keywords.casefold()))
    if wanted.suffixes:
        query = query.where(Document.suffix.in_(list(wanted.suffixes)))
    if wanted.states:
        query = query.where(_any_of([_in_state(state) for state in wanted.states]))
    return query


def _alive(tenant_id: str, dataset_id: str) -> Any:
    return (Document.tenant_id == tenant_id) & (Document.kb_id == dataset_id) & (Document.deleted_ms == 0)


def _in_state(state: TableState) -> Any:
    runs = Document.run == int(_RUNS[state])
    if state in (TableState.RUNNING, TableState.PAUSED):
        return runs & (Document.paused == int(state is TableState.PAUSED))
    return runs


def _any_of(conditions: Sequence[Any]) -> Any:
    found = conditions[0]
    for one in conditions[1:]:
        found = found | one
    return found


def _ordered(query: Any, wanted: TableFilter) -> Any:
    columns: dict[TableOrder, Any] = {
        TableOrder.CREATED: Document.create_ms,
        TableOrder.NAME: Document.name_key,
        TableOrder.SIZE: Document.size_bytes,
        TableOrder.CHUNKS: Document.chunk_count,
        TableOrder.STATE: Document.run,
    }
    column = columns[wanted.order]
    return query.order_by(column.desc() if wanted.desc else column.asc(), Document.name_key, Document.id)


def _counts(tenant_id: str, dataset_id: str) -> tuple[dict[TableState, int], dict[str, int], int]:
    states: dict[TableState, int] = {}
    suffixes: dict[str, int] = {}
    size_bytes = 0
    columns: Any = (Document.run, Document.paused, Document.suffix, fn.COUNT(Document.id), fn.SUM(Document.size_bytes))
    query: Any = Document.select(*columns).where(_alive(tenant_id, dataset_id))
    for run, paused, suffix, count, size in query.group_by(*columns[:3]).tuples():
        is_paused = paused and run == DocumentRun.RUNNING
        state = TableState.PAUSED if is_paused else _STATES[DocumentRun(run)]
        states[state] = states.get(state, 0) + count
        suffixes[suffix] = suffixes.get(suffix, 0) + count
        size_bytes += int(size or 0)
    return states, suffixes, size_bytes
