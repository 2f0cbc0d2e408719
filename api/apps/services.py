"""Everything the blueprints need, in one frozen box. api/server.py fills it; nothing here opens a connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from flask import Flask, current_app

from api.db.services.account_service import AccountService
from api.db.services.chunk_service import ChunkService
from api.db.services.control_service import ControlService
from api.db.services.dataset_service import DatasetService
from api.db.services.document_service import DocumentService
from api.db.services.failed_service import FailedService
from api.db.services.idempotency_service import IdempotencyService
from api.db.services.parse_service import ParseService
from api.db.services.retrieval_service import RetrievalService
from common.settings import Settings
from rag.utils.doc_index import DocIndex
from rag.utils.object_store import ObjectStore

_KEY = "pagemill"


@dataclass(frozen=True)
class Services:
    """`health` names the parts that must answer for this server to be ready: each check raises if its part is away.
    `executors_alive` counts those whose heartbeat is fresh; it raises if the queue is away."""

    settings: Settings
    accounts: AccountService
    datasets: DatasetService
    documents: DocumentService
    chunks: ChunkService
    retrieval: RetrievalService
    parsing: ParseService
    control: ControlService
    failed: FailedService
    answers: IdempotencyService
    store: ObjectStore
    index: DocIndex
    health: Mapping[str, Callable[[], None]]
    executors_alive: Callable[[], int]
    version: str


def provide(app: Flask, box: Services) -> None:
    app.extensions[_KEY] = box


def services() -> Services:
    """The services of the app that answers the current request."""
    return cast(Services, current_app.extensions[_KEY])
