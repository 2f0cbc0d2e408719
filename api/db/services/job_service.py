"""Jobs: a file in, its parse begun, in one step; and what becomes of it. A job is a document under its own id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.db.database import Rows
from api.db.models import Document, Knowledgebase
from api.db.records import fetch
from api.db.services.account_service import Caller
from api.db.services.dataset_service import DatasetService, NewDataset
from api.db.services.document_changes import DocumentChange, DocumentChanges
from api.db.services.document_service import DocumentService, NewDocument
from api.db.services.document_totals import of_dataset, of_tenant
from api.db.services.id_page import IdList, counted
from api.db.services.job_filter import deciding_runs, job_condition
from api.db.services.job_views import JobStatus, JobView, job_views
from api.db.services.naming import name_key
from api.db.services.parse_service import ParseService
from api.db.services.task_sql import marks
from common.errors import Conflict, NotFound
from common.settings import TaskSettings
from common.task_state import Priority

DATASET_NAME = "Jobs"


@dataclass(frozen=True)
class NewJob:
    """`dataset_id` "" is the dataset of this name, which is made where it is missing."""

    file: NewDocument
    dataset_id: str = ""
    chunk_method: str | None = None
    parser_config: Mapping[str, Any] | None = None
    priority: Priority = Priority.NORMAL


@dataclass(frozen=True)
class JobFilter:
    page: int = 1
    page_size: int = 30
    statuses: tuple[JobStatus, ...] = ()
    dataset_id: str = ""


@dataclass(frozen=True)
class JobPage:
    total: int
    jobs: list[JobView]


class JobService:
    def __init__(
        self,
        rows: Rows,
        datasets: DatasetService,
        documents: DocumentService,
        parsing: ParseService,
        settings: TaskSettings,
    ) -> None:
        self._rows = rows
        self._datasets = datasets
        self._documents = documents
        self._parsing = parsing
        self._changes = DocumentChanges(rows)
        self._max_attempts = settings.max_attempts

    def create(self, caller: Caller, new: NewJob) -> str:
        """All of it or nothing; returns the job's id. Raises NotFound for an unknown dataset, and Backlogged."""
        self._parsing.require_room()  # to count may take a while, and no writer is to wait for it
        return self._rows.write(self._create, caller, new, [])

    def get(self, tenant_id: str, job_id: str) -> JobView:
        """Raises NotFound for a job that is unknown, deleted, or another tenant's."""
        which = "WHERE id = ? AND tenant_id = ? AND deleted_ms = 0"
        found = self._rows.read(self._views, which, (job_id, tenant_id))
        if not found:
            raise NotFound(f"there is no job {job_id}")
        return found[0]

    def page(self, tenant_id: str, wanted: JobFilter) -> JobPage:
        """The newest first."""
        return self._rows.read(self._page, tenant_id, wanted)

    def cancel(self, tenant_id: str, job_id: str) -> JobView:
        """Raises NotFound, and Conflict where there is nothing to cancel any more."""
        before = self.get(tenant_id, job_id)
        if not self._parsing.stop([job_id]):
            now = self.get(tenant_id, job_id) if not before.is_final else before
            raise Conflict(f"the job can't be cancelled: it is {now.status}")
        return self.get(tenant_id, job_id)

    def _create(self, caller: Caller, new: NewJob, made: list[str]) -> str:
        """`made` outlives a transaction that is run again: where that document is there, the commit went through and
        only its reply was lost."""
        if made and Document.get_or_none(Document.id == made[-1]) is not None:
            return made[-1]
        dataset_id = new.dataset_id or self._own_dataset(caller)
        (document,) = self._documents.add(caller, dataset_id, [new.file])
        made.append(document.id)
        if new.chunk_method is not None or new.parser_config is not None:
            change = DocumentChange(chunk_method=new.chunk_method, parser_config=new.parser_config)
            self._changes.update(document.id, change)
        if new.priority is not Priority.NORMAL:
            self._rows.execute("UPDATE document SET priority = ? WHERE id = ?", (int(new.priority), document.id))
        self._parsing.start([document.id], are_new=True)
        return document.id

    def _own_dataset(self, caller: Caller) -> str:
        """The tenant's row is locked: of two first jobs, one makes the dataset."""
        self._rows.rows(f"SELECT id FROM tenant WHERE id = ?{self._rows.for_update}", (caller.tenant_id,))
        of_tenant = (Knowledgebase.tenant_id == caller.tenant_id) & (Knowledgebase.deleted_ms == 0)
        found = Knowledgebase.get_or_none(of_tenant & (Knowledgebase.name_key == name_key(DATASET_NAME)))
        return found.id if found else self._datasets.create(caller, NewDataset(DATASET_NAME)).id

    def _page(self, tenant_id: str, wanted: JobFilter) -> JobPage:
        if wanted.dataset_id and not self._is_of_tenant(wanted.dataset_id, tenant_id):
            return JobPage(0, [])
        total, ids = self._listed(tenant_id, wanted).page(self._rows, wanted.page, wanted.page_size)
        found = {job.id: job for job in self._views(f"WHERE id IN ({marks(ids)})", ids)} if ids else {}
        return JobPage(total, [found[job_id] for job_id in ids if job_id in found])

    def _is_of_tenant(self, dataset_id: str, tenant_id: str) -> bool:
        which = "SELECT 1 FROM knowledgebase WHERE id = ? AND tenant_id = ?"
        return bool(self._rows.rows(which, (dataset_id, tenant_id)))

    def _listed(self, tenant_id: str, wanted: JobFilter) -> IdList:
        """A tenant's jobs, or a dataset's, by indexes that tell which these are and, as far as `run` decides, their
        states."""
        owned = of_dataset(wanted.dataset_id) if wanted.dataset_id else of_tenant(tenant_id)
        which, params = f"{owned.column} = ? AND deleted_ms = 0", [owned.owner_id]
        if wanted.statuses:
            which += f" AND {job_condition(wanted.statuses)}"
        runs = deciding_runs(wanted.statuses)
        of_all = "document_jobs" if wanted.statuses else "document_of_tenant"
        return IdList(
            which=which,
            params=params,
            order=("create_ms", "id"),
            desc=True,
            total=counted(self._rows, which, params, owned.index) if runs is None else owned.count(self._rows, runs),
            index="document_page" if wanted.dataset_id else of_all,
            back_cost=self._rows.back_cost,
        )

    def _views(self, which: str, params: Sequence[object]) -> list[JobView]:
        return job_views(self._rows, fetch(self._rows, Document, which, params), self._max_attempts)
