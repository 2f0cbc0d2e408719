"""The web app over real rows, store and index in a folder, with a stand-in executor that ingests by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient
from werkzeug.routing import Rule
from werkzeug.test import TestResponse

from api.apps import create_app
from api.apps.openapi.operation import Surface, operation_of
from api.apps.services import Services
from api.db.database import Rows, open_rows
from api.db.migrations import migrate
from api.db.models import Document, Task, Tenant, User
from api.db.services.account_service import AccountService, Caller
from api.db.services.chunk_service import ChunkService
from api.db.services.control_service import ControlService
from api.db.services.copied_parse import CopiedParse
from api.db.services.dataset_service import DatasetService
from api.db.services.document_service import DocumentService
from api.db.services.failed_service import FailedService
from api.db.services.idempotency_service import IdempotencyService
from api.db.services.parse_service import Doorbell, ParseService
from api.db.services.retrieval_service import RetrievalService
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
from api.db.services.unchanged_parse import UnchangedParse
from common.ids import new_id, new_token
from common.settings import EmbeddingSettings, IndexSettings, ServerSettings, Settings
from common.task_state import TaskState
from rag.svr.indexer import Config, Indexer
from rag.utils.doc_index import ChunkRecord
from rag.utils.embedded_index import EmbeddedIndex
from rag.utils.embedder import PackagedEmbedder
from rag.utils.folder_store import FolderStore
from rag.utils.redis_conn import Queue
from rag.utils.terms import analyse
from tests.described import require_described

API = "/api/v1"


@cache
def embedder() -> PackagedEmbedder:
    return PackagedEmbedder(EmbeddingSettings())


@dataclass
class RestWorld:
    rows: Rows
    store: FolderStore
    index: EmbeddedIndex
    indexer: Indexer
    services: Services
    tasks: TaskService
    client: FlaskClient
    caller: Caller
    key: str

    def call(self, method: str, path: str, *, key: str | None = None, **kwargs: Any) -> TestResponse:
        headers = {"Authorization": f"Bearer {key or self.key}"} | kwargs.pop("headers", {})
        response = self.client.open(f"{API}{path}", method=method, headers=headers, **kwargs)
        require_described(self.client.application, response)
        return response

    def ok(self, method: str, path: str, **kwargs: Any) -> Any:
        """The data of a call that must succeed."""
        answer = self.call(method, path, **kwargs).get_json()
        assert answer["code"] == 0, answer
        return answer.get("data")

    def refused(self, method: str, path: str, **kwargs: Any) -> tuple[int, str]:
        """Code and message of a call that must be refused, with HTTP 200."""
        response = self.call(method, path, **kwargs)
        answer = response.get_json()
        assert response.status_code == 200 and answer["code"] != 0, answer
        return answer["code"], answer["message"]

    def dataset(self, name: str = "d", **fields: Any) -> str:
        return str(self.ok("POST", "/datasets", json={"name": name} | fields)["id"])

    def upload(self, dataset_id: str, *files: tuple[str, bytes]) -> TestResponse:
        parts = (
            f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
            + content
            + b"\r\n"
            for name, content in files
        )
        return self.call(
            "POST",
            f"/datasets/{dataset_id}/documents",
            data=b"".join(parts) + b"--b--\r\n",
            content_type="multipart/form-data; boundary=b",
        )

    def document(self, dataset_id: str, name: str = "a.txt", content: bytes = b"hello") -> str:
        answer = self.upload(dataset_id, (name, content)).get_json()
        assert answer["code"] == 0, answer
        return str(answer["data"][0]["id"])

    def shown(self, dataset_id: str, document_id: str) -> Any:
        return self.ok("GET", f"/datasets/{dataset_id}/documents?id={document_id}")["docs"][0]

    def claim(self, document_id: str) -> list[ClaimedTask]:
        waiting = Task.select().where((Task.doc_id == document_id) & (Task.state == TaskState.PENDING))
        (claimed,) = self.tasks.apply([Claim(tuple(t.id for t in waiting), "e:boot", new_token())])
        assert isinstance(claimed, list)
        return sorted(claimed, key=lambda t: t.from_page)

    def split(self, document_id: str, ranges: int) -> list[ClaimedTask]:
        """Prepare a document that was started: its ranges of one page each, claimed."""
        (prepare,) = self.claim(document_id)
        profile = {"kind": "pdf", "unit": "page", "units": ranges}
        new = tuple(NewRange(n, n + 1, f"digest{n}") for n in range(ranges))
        self.tasks.apply([FinishPrepare(prepare.held, profile, new)])
        return self.claim(document_id)

    def write(self, task: ClaimedTask, texts: Sequence[str]) -> Written:
        """Put chunks into the index as the holder of this claim."""
        records = [
            ChunkRecord(
                id=f"{task.document_id[:12]}{task.generation:04x}{task.from_page:06x}{task.claim_no:04x}{n:06x}",
                tenant_id=task.tenant_id,
                dataset_id=task.dataset_id,
                document_id=task.document_id,
                generation=task.generation,
                task_no=task.task_no,
                claim_no=task.claim_no,
                ordinal=n,
                page=task.from_page + 1,
                text=text,
                terms=" ".join(analyse(text)),
                token_count=len(text.split()),
                positions=((task.from_page + 1, 1, 2, 3, 4 + n),),
                created_ms=1,
            )
            for n, text in enumerate(texts)
        ]
        sequence = self.index.upsert(records, embedder().embed(texts))
        units = task.to_page - task.from_page
        return Written(len(texts), sum(len(t.split()) for t in texts), sequence, units=units)

    def finish(self, task: ClaimedTask, texts: Sequence[str]) -> None:
        (state,) = self.tasks.apply([FinishRange(task.held, self.write(task, texts))])
        assert state == TaskState.DONE

    def flip(self, document_id: str) -> None:
        (finish,) = self.claim(document_id)
        self.catch_up()
        self.tasks.apply([FinishDocument(finish.held, finish.index_seq)])

    def catch_up(self) -> None:
        while self.indexer.run_once():
            pass

    def parse(self, dataset_id: str, document_id: str) -> str:
        """The state that the document is in right after the call."""
        self.ok("POST", f"/datasets/{dataset_id}/chunks", json={"document_ids": [document_id]})
        return str(self.shown(dataset_id, document_id)["run"])

    def parse_twice(self, dataset_id: str, document_id: str, texts: Sequence[str]) -> None:
        """So that the document has these chunks, made under the digests of today."""
        self.ingest(dataset_id, document_id, ["first"], ["second"])
        self.parse(dataset_id, document_id)
        (task,) = self.claim(document_id)
        self.finish(task, texts)
        self.flip(document_id)

    def ingest(self, dataset_id: str, document_id: str, *pages: Sequence[str]) -> None:
        """The whole way of a document, its pages having these chunks."""
        self.ok("POST", f"/datasets/{dataset_id}/chunks", json={"document_ids": [document_id]})
        for task, texts in zip(self.split(document_id, len(pages)), pages, strict=True):
            self.finish(task, texts)
        self.flip(document_id)

    def row(self, document_id: str) -> Document:
        return Document.get_by_id(document_id)


def speaks_ragflow(world: RestWorld, rule: Rule) -> bool:
    """Whether the route answers in RAGFlow's envelope. The others have statuses and errors of their own."""
    operation = operation_of(world.client.application.view_functions[rule.endpoint])
    return operation is not None and operation.surface is not Surface.PROBLEM


def new_caller(rows: Rows, nickname: str) -> Caller:
    """A user with a tenant of their own, without a password: hashing one would take most of a test's time."""
    user_id = new_id()

    def insert() -> None:
        Tenant.create(id=user_id, name=nickname, embedding_model=PackagedEmbedder.name, create_ms=1)
        User.create(id=user_id, email=nickname, nickname=nickname, password_hash="", create_ms=1)

    rows.write(insert)
    return Caller(user_id, user_id, False)


@contextmanager
def rest_world(folder: Path, server: ServerSettings | None = None, queue: Queue | None = None) -> Iterator[RestWorld]:
    """Without a queue, it is away."""
    settings = Settings(data_dir=folder, server=server or ServerSettings())
    rows = open_rows(settings.database_url)
    migrate(rows)
    store = FolderStore(settings.store_dir)
    index = EmbeddedIndex(settings.index_dir, IndexSettings())
    indexer = Indexer(Config(settings.index_dir))
    index.check()
    model = embedder()
    traits = ModelTraits.of(model)
    bell = Doorbell(lambda: None, lambda _: None)
    accounts = AccountService(rows, model.name)
    caller = new_caller(rows, "Ursula")
    services = Services(
        settings=settings,
        accounts=accounts,
        datasets=DatasetService(rows, model.name),
        documents=DocumentService(rows, settings.tasks),
        chunks=ChunkService(rows, index),
        retrieval=RetrievalService(rows, index, model),
        parsing=ParseService(
            rows,
            settings.tasks,
            traits,
            bell,
            UnchangedParse(rows, index, settings.tasks, traits),
            CopiedParse(rows, index, settings.tasks, traits),
        ),
        control=ControlService(rows, settings.tasks, bell),
        failed=FailedService(rows),
        answers=IdempotencyService(rows),
        store=store,
        index=index,
        health={"database": rows.check, "queue": lambda: None, "index": index.check, "store": store.check},
        executors_alive=lambda: 2,
        version="1.2.3",
        messages=queue or Queue(f"unix://{folder / 'no-queue.sock'}"),
    )
    app = create_app(services)
    tasks = TaskService(rows, Limits(60_000, 5), lambda: None)
    key = accounts.create_token(caller, "test")
    yield RestWorld(rows, store, index, indexer, services, tasks, app.test_client(), caller, key)
    indexer.close()
    index.close()
    rows.close_connection()
