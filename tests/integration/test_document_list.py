"""Lists of documents and jobs, long ones too: every filter, order and page gives what a plain look at the rows gives,
and is read from indexes that hold all it needs."""

from __future__ import annotations

import itertools
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from api.db.database import Rows
from api.db.models import Document
from api.db.services.account_service import Caller
from api.db.services.control_service import ControlService
from api.db.services.dataset_service import DatasetService
from api.db.services.document_list import DocumentFilter
from api.db.services.document_service import DocumentService
from api.db.services.job_service import JobFilter, JobService
from api.db.services.job_views import JobStatus
from api.db.services.parse_service import Doorbell, ParseService
from api.db.services.task_plan import ModelTraits
from bench.api_rows import SMALL_SIZE, Filled, fill, fill_documents
from common.errors import NotFound
from common.settings import TaskSettings
from common.task_state import DocumentRun
from tests.rest_world import new_caller

_DOCUMENTS = 400
_SMALL = 4
_MANY = 20_000
_COLUMNS = {"create_time": "create_ms", "update_time": "update_ms", "name": "name_key"}
_FILTERS = (
    DocumentFilter(),
    DocumentFilter(runs=(DocumentRun.DONE,)),
    DocumentFilter(runs=(DocumentRun.RUNNING, DocumentRun.FAIL)),
    DocumentFilter(runs=(DocumentRun.DONE, DocumentRun.CANCEL)),
    DocumentFilter(runs=tuple(DocumentRun)),
    DocumentFilter(keywords="INVOICE"),
    DocumentFilter(keywords="00012"),
    DocumentFilter(keywords="no such name"),
    DocumentFilter(suffixes=("PDF", "md")),
    DocumentFilter(types=("visual",)),
    DocumentFilter(types=("visual", "doc"), suffixes=("md",)),
    DocumentFilter(types=("doc",), keywords="report", runs=(DocumentRun.DONE,)),
)


class Lists:
    """The services over filled rows."""

    def __init__(self, rows: Rows, filled_by: Callable[[Rows, Caller], Filled]) -> None:
        self.rows = rows
        self.caller = new_caller(rows, "Ursula")
        self.filled = filled_by(rows, self.caller)
        settings, bell = TaskSettings(), Doorbell(lambda: None, lambda _: None)
        self.datasets, self.documents = DatasetService(rows, "m"), DocumentService(rows, settings)
        parsing = ParseService(rows, settings, ModelTraits(256), bell)
        self.jobs = JobService(rows, self.datasets, self.documents, parsing, settings)

    def page(self, wanted: DocumentFilter) -> tuple[int, list[str]]:
        found = self.documents.page(self.caller.tenant_id, self.filled.dataset_id, wanted)
        return found.total, [document.id for document in found.documents]

    def job_page(self, wanted: JobFilter) -> tuple[int, list[str]]:
        found = self.jobs.page(self.caller.tenant_id, wanted)
        return found.total, [job.id for job in found.jobs]


@pytest.fixture
def lists(rows: Rows) -> Lists:
    return Lists(rows, lambda rows, caller: fill(rows, caller, _DOCUMENTS, _SMALL))


def expected(documents: list[Document], wanted: DocumentFilter) -> list[str]:
    chosen = [
        d
        for d in documents
        if (not wanted.runs or d.run in wanted.runs)
        and wanted.keywords.casefold() in d.name_key
        and (not wanted.suffixes or d.suffix in [one.lower() for one in wanted.suffixes])
        and (not wanted.types or d.type in wanted.types)
        and (wanted.metadata_meets is None or wanted.metadata_meets(d.meta_fields))
    ]
    column = _COLUMNS[wanted.orderby]
    return [d.id for d in sorted(chosen, key=lambda d: (getattr(d, column), d.id), reverse=wanted.desc)]


def variants() -> Iterator[DocumentFilter]:
    for wanted, orderby, desc in itertools.product(_FILTERS, _COLUMNS, (True, False)):
        yield replace(wanted, orderby=orderby, desc=desc)


def test_every_page_of_every_list_is_what_the_rows_say(lists: Lists) -> None:
    documents = list(Document.select().where(Document.kb_id == lists.filled.dataset_id))
    for wanted in variants():
        ids = expected(documents, wanted)
        for page in (1, len(ids) // 90, len(ids) // 60, len(ids) // 40, len(ids) // 30, len(ids) // 30 + 1, 1000):
            part = ids[30 * (max(1, page) - 1) :][:30]
            assert lists.page(replace(wanted, page=max(1, page))) == (len(ids), part), (wanted, page)


def test_states_of_datasets_are_what_the_rows_say(lists: Lists) -> None:
    expected: dict[str, Counter[DocumentRun]] = defaultdict(Counter)
    for kb_id, run in Document.select(Document.kb_id, Document.run).tuples():
        expected[kb_id][DocumentRun(run)] += 1
    assert lists.datasets.run_counts(list(expected)) == expected
    assert lists.datasets.run_counts([]) == lists.datasets.run_counts(["unknown"]) == {}


def test_metadata_is_looked_at_too(lists: Lists) -> None:
    documents = list(Document.select().where(Document.kb_id == lists.filled.dataset_id))
    for orderby, desc in itertools.product(_COLUMNS, (True, False)):
        wanted = DocumentFilter(
            metadata_meets=lambda m: m.get("author") == "report", suffixes=("pdf",), orderby=orderby, desc=desc, page=1
        )
        ids = expected(documents, wanted)
        assert ids and lists.page(wanted) == (len(ids), ids[:30])
    counted = lists.documents.counts(lists.caller.tenant_id, lists.filled.dataset_id, DocumentFilter(suffixes=("pdf",)))
    chosen = [d for d in documents if d.suffix == "pdf"]
    assert (counted.total, counted.suffixes) == (len(chosen), {"pdf": len(chosen)})
    assert counted.runs == {DocumentRun(run): sum(d.run == run for d in chosen) for run in {d.run for d in chosen}}
    assert counted.without_metadata == sum(not d.meta_fields for d in chosen)
    assert counted.metadata["author"]["report"] == sum(d.meta_fields.get("author") == "report" for d in chosen)


def test_a_deleted_document_is_on_no_page(lists: Lists, rows: Rows) -> None:
    gone = lists.filled.done_id
    name = Document.get_by_id(gone).name
    assert lists.page(DocumentFilter(keywords=name)) == (1, [gone])
    ControlService(rows, TaskSettings(), Doorbell(lambda: None, lambda _: None)).delete([gone])
    assert lists.page(DocumentFilter(keywords=name)) == (0, [])
    assert lists.job_page(JobFilter())[0] == _DOCUMENTS + _SMALL * SMALL_SIZE - 1
    done = Document.select().where((Document.run == DocumentRun.DONE) & (Document.deleted_ms == 0)).count()
    assert lists.job_page(JobFilter(statuses=(JobStatus.DONE,)))[0] == done
    for orderby in _COLUMNS:
        total, _ = lists.page(DocumentFilter(orderby=orderby))
        pages = [lists.page(DocumentFilter(orderby=orderby, page=n, page_size=100))[1] for n in range(1, 6)]
        assert total == _DOCUMENTS - 1 == len({doc_id for page in pages for doc_id in page} - {gone})


def test_pages_of_jobs(lists: Lists) -> None:
    documents = sorted(Document.select(), key=lambda d: (d.create_ms, d.id), reverse=True)
    runs = {JobStatus.DONE: DocumentRun.DONE, JobStatus.FAILED: DocumentRun.FAIL, JobStatus.QUEUED: DocumentRun.RUNNING}
    assert lists.job_page(JobFilter())[0] == _DOCUMENTS + _SMALL * SMALL_SIZE
    for dataset_id in ("", lists.filled.dataset_id):
        own = [d for d in documents if not dataset_id or d.kb_id == dataset_id]
        for statuses in ((), *((status,) for status in runs), tuple(runs)):
            ids = [d.id for d in own if not statuses or d.run in [runs[status] for status in statuses]]
            for page in (1, 2, max(1, len(ids) // 30)):
                wanted = JobFilter(page=page, statuses=statuses, dataset_id=dataset_id)
                assert lists.job_page(wanted) == (len(ids), ids[30 * (page - 1) :][:30]), wanted
    stranger = new_caller(lists.rows, "Eve")
    assert lists.jobs.page(stranger.tenant_id, JobFilter(dataset_id=lists.filled.dataset_id)).total == 0
    with pytest.raises(NotFound):
        lists.documents.page(stranger.tenant_id, lists.filled.dataset_id, DocumentFilter())


def test_no_list_reads_a_row_that_it_does_not_show(lists: Lists, monkeypatch: pytest.MonkeyPatch) -> None:
    """What chooses a page, and what counts, finds every column in the index that it walks."""
    rows, seen = lists.rows, list[tuple[str, list[Any]]]()
    execute = rows.db.execute_sql

    def record(sql: str, params: Any = None) -> Any:
        seen.append((sql, list(params or ())))
        return execute(sql, params)

    monkeypatch.setattr(rows.db, "execute_sql", record)
    for wanted in variants():
        for page in (1, 4):
            lists.page(replace(wanted, page=page))
    for statuses in ((), (JobStatus.DONE,), (JobStatus.DONE, JobStatus.FAILED)):
        lists.job_page(JobFilter(statuses=statuses))
        lists.job_page(JobFilter(statuses=statuses, dataset_id=lists.filled.dataset_id))
    monkeypatch.undo()
    choosing = [(sql, params) for sql, params in seen if " document INDEXED BY " in sql or " FORCE INDEX " in sql]
    assert len(choosing) > 100
    explain = "EXPLAIN QUERY PLAN " if rows.is_sqlite else "EXPLAIN "
    for sql, params in choosing:
        plan = [str(row) for row in execute(explain + sql, params).fetchall()]
        # the id is fetched for those that are shown, after the skipping, or are few
        by_name = "INDEXED BY document_name" in sql
        assert by_name or any("COVERING INDEX" in line or "Using index" in line for line in plan), (sql, plan)


def test_twenty_thousand_documents_are_listed_at_once(sqlite_rows: Rows) -> None:
    lists = Lists(sqlite_rows, lambda rows, caller: fill_documents(rows, caller, _MANY, 0))
    for wanted in variants():
        for page in (1, _MANY // 60, _MANY // 30):
            begin_s = time.thread_time()
            lists.page(replace(wanted, page=page))
            assert time.thread_time() - begin_s < 0.2, (wanted, page)
