"""A small world of rows for tests of the task engine: a tenant, a dataset, documents, and the services on them."""

from __future__ import annotations

from dataclasses import dataclass, field

from api.db.database import Rows
from api.db.models import Document, Knowledgebase, Task
from api.db.services.control_service import ControlService
from api.db.services.parse_service import Doorbell, ParseService
from api.db.services.publish_service import PublishService
from api.db.services.task_plan import ModelTraits
from api.db.services.task_requests import (
    Claim,
    ClaimedTask,
    FinishDocument,
    FinishPrepare,
    FinishRange,
    NewRange,
    Written,
)
from api.db.services.task_service import Limits, TaskService
from common.ids import new_id, new_token
from common.settings import TaskSettings
from common.task_state import TaskState

PROFILE = {"kind": "pdf", "unit": "page", "units": 24}


@dataclass
class World:
    rows: Rows
    lease_ms: int = 15_000
    rings: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tenant_id = new_id()
        self.kb_id = self.dataset(self.tenant_id)
        self.tasks = TaskService(self.rows, Limits(self.lease_ms, 5), lambda: self.rings.append("ring"))
        self.publishing = PublishService(self.rows)
        bell = Doorbell(lambda: self.rings.append("ring"), self.cancelled.extend)
        self.parsing = ParseService(self.rows, TaskSettings(), ModelTraits(256), bell)
        self.control = ControlService(self.rows, TaskSettings(), bell)

    def dataset(self, tenant_id: str) -> str:
        kb_id = new_id()
        self.rows.write(
            Knowledgebase.create,
            id=kb_id,
            tenant_id=tenant_id,
            created_by=tenant_id,
            name=kb_id,
            name_key=kb_id,
            embedding_model="m",
            parser_config={},
            create_ms=1,
            update_ms=1,
        )
        return kb_id

    def document(self, *, tenant_id: str | None = None, kb_id: str | None = None, priority: int = 1) -> str:
        doc_id = new_id()
        self.rows.write(
            self.rows.execute,
            "UPDATE knowledgebase SET document_count = document_count + 1 WHERE id = ?",
            (kb_id or self.kb_id,),
        )
        self.rows.write(
            Document.create,
            id=doc_id,
            tenant_id=tenant_id or self.tenant_id,
            kb_id=kb_id or self.kb_id,
            created_by=self.tenant_id,
            name=f"{doc_id}.pdf",
            name_key=doc_id,
            file_digest=new_token() * 2,
            size_bytes=1,
            suffix="pdf",
            type="pdf",
            chunk_method="naive",
            parser_config={},
            meta_fields={},
            priority=priority,
            create_ms=1,
            update_ms=1,
        )
        return doc_id

    def doc(self, doc_id: str) -> Document:
        return Document.get_by_id(doc_id)

    def tasks_of(self, doc_id: str) -> list[Task]:
        query = Task.select().where(Task.doc_id == doc_id).order_by(Task.create_ms, Task.task_type, Task.from_page)
        return list(query)

    def pending(self, doc_id: str) -> list[str]:
        return [t.id for t in self.tasks_of(doc_id) if t.state == TaskState.PENDING]

    def claim(self, *task_ids: str, owner: str = "e1:boot") -> list[ClaimedTask]:
        (claimed,) = self.tasks.apply([Claim(task_ids, owner, new_token())])
        assert isinstance(claimed, list)
        return sorted(claimed, key=lambda t: t.from_page)

    def claim_all(self, doc_id: str, owner: str = "e1:boot") -> list[ClaimedTask]:
        return self.claim(*self.pending(doc_id), owner=owner)

    def started(self, ranges: int = 2) -> tuple[str, list[str]]:
        """A document that is prepared: its id and its range tasks, all pending."""
        doc_id = self.document()
        assert self.parsing.start([doc_id]) == [doc_id]
        (prepare,) = self.claim_all(doc_id)
        new = tuple(NewRange(12 * n, 12 * n + 12, f"digest{n}") for n in range(ranges))
        assert self.tasks.apply([FinishPrepare(prepare.held, PROFILE, new)]) == [TaskState.DONE]
        return doc_id, self.pending(doc_id)

    def finish(self, task: ClaimedTask, chunks: int = 3, seq: int = 7) -> object:
        (answer,) = self.tasks.apply([FinishRange(task.held, Written(chunks, chunks * 10, seq))])
        return answer

    def flip(self, doc_id: str) -> object:
        (finish,) = self.claim_all(doc_id)
        (answer,) = self.tasks.apply([FinishDocument(finish.held, finish.index_seq)])
        return answer
