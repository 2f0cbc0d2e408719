"""Every adapter and service put together from settings: for the web server and the commands that ingest and search."""

from __future__ import annotations

import logging
from dataclasses import replace

from api.apps.services import Services
from api.db.services.account_service import AccountService
from api.db.services.chunk_service import ChunkService
from api.db.services.control_service import ControlService
from api.db.services.copied_parse import CopiedParse
from api.db.services.dataset_service import DatasetService
from api.db.services.document_service import DocumentService
from api.db.services.failed_service import FailedService
from api.db.services.fresh_copies import FreshCopies
from api.db.services.idempotency_service import IdempotencyService
from api.db.services.parse_service import ParseService
from api.db.services.retrieval_service import RetrievalService
from api.db.services.task_plan import ModelTraits
from api.db.services.unchanged_parse import UnchangedParse
from api.instance import open_existing_rows, open_queue, quiet_doorbell
from common.settings import Settings
from common.version import VERSION
from rag.utils.bell_ringer import BellRinger
from rag.utils.doc_indexes import open_index
from rag.utils.embedders import open_embedder
from rag.utils.folder_store import FolderStore
from rag.utils.reranker import open_reranker

log = logging.getLogger(__name__)


def connect(settings: Settings, *, rings_aside: bool = False) -> Services:
    """Every service on the adapters that the settings name. The rows must exist. With `rings_aside` nobody waits until
    the relay is rung; for a process that stays."""
    rows = open_existing_rows(settings)
    messages = open_queue(settings)
    index = open_index(settings)
    store = FolderStore(settings.store_dir)
    embedder = open_embedder(settings.embedding)
    bell = quiet_doorbell(messages)
    if rings_aside:
        bell = replace(bell, tasks_waiting=BellRinger(bell.tasks_waiting))
    model = ModelTraits.of(embedder)
    parsing = ParseService(
        rows,
        settings.tasks,
        model,
        bell,
        UnchangedParse(rows, index, settings.tasks, model),
        CopiedParse(rows, index, settings.tasks, model),
    )
    FreshCopies(rows, index, parsing.restart).check_all()
    return Services(
        settings=settings,
        accounts=AccountService(rows, embedder.name),
        datasets=DatasetService(rows, embedder.name),
        documents=DocumentService(rows, settings.tasks),
        chunks=ChunkService(rows, index),
        retrieval=RetrievalService(rows, index, embedder, open_reranker(settings.rerank)),
        parsing=parsing,
        control=ControlService(rows, settings.tasks, bell),
        failed=FailedService(rows),
        answers=IdempotencyService(rows),
        store=store,
        index=index,
        health={"database": rows.check, "queue": messages.check, "index": index.check, "store": store.check},
        executors_alive=lambda: sum(beat.is_alive for beat in messages.executors()),
        version=VERSION,
        messages=messages,
        executor_beats=lambda: {beat.name: [beat.said] for beat in messages.executors() if beat.is_alive},
    )
