"""Everything the blueprints need, in one frozen box. api/server.py fills it; nothing here opens a connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar, cast

from flask import Flask, current_app

from api.apps.health_watch import LIMIT_S, HealthWatch
from api.apps.kept import Kept
from api.apps.limited import Limited, Silent
from api.db.services.account_service import AccountService
from api.db.services.chunk_edits import ChunkEdits
from api.db.services.chunk_notes import ChunkNotes
from api.db.services.chunk_reading import ChunkReading
from api.db.services.chunk_service import ChunkService
from api.db.services.control_service import ControlService
from api.db.services.dataset_changes import DatasetChanges
from api.db.services.dataset_service import DatasetService
from api.db.services.document_changes import DocumentChanges
from api.db.services.document_service import DocumentService
from api.db.services.executor_orders import ExecutorOrders
from api.db.services.executor_view import ExecutorView
from api.db.services.failed_groups import FailedGroup, FailedGroups
from api.db.services.failed_service import FailedService
from api.db.services.idempotency_service import IdempotencyService
from api.db.services.metadata_service import MetadataService
from api.db.services.parse_service import ParseService
from api.db.services.queue_view import QueueRows, QueueView
from api.db.services.retrieval_service import RetrievalService
from api.db.services.session_service import SessionService
from api.db.services.tag_service import TagService
from api.db.services.tally_service import TallyService
from api.db.services.task_lookup import TaskLookup
from api.db.services.team_service import TeamService
from api.db.services.user_admin import UserAdmin
from api.db.services.user_service import UserService
from api.db.services.webhook_deliveries import WebhookDeliveries
from api.db.services.webhook_service import WebhookService
from common.errors import QueueUnavailable
from common.settings import Settings
from rag.flow.token_counter import token_counter
from rag.utils.doc_index import DocIndex
from rag.utils.embedder import load_tokenizer
from rag.utils.object_store import ObjectStore
from rag.utils.redis_conn import ExecutorBeat, Queue, StreamState

_KEY = "pagemill"
T = TypeVar("T")


@dataclass(frozen=True)
class Services:
    """`health` names the parts that must answer for this server to be ready: each check raises if its part is away.
    `executors_alive` counts those whose heartbeat is fresh, and `executor_beats` has what each of them said last, by
    name; both raise if the queue is away.

    What needs no more than the rows and what is here already makes itself when it is first asked for."""

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
    messages: Queue
    executor_beats: Callable[[], Mapping[str, list[Mapping[str, Any]]]] = dict

    @cached_property
    def chunk_edits(self) -> ChunkEdits:
        count_tokens = token_counter(load_tokenizer(self.settings.embedding))
        return ChunkEdits(self.datasets.rows, self.index, self.retrieval.embedder, count_tokens)

    @cached_property
    def chunk_notes(self) -> ChunkNotes:
        return ChunkNotes(self.datasets.rows)

    @cached_property
    def chunk_reading(self) -> ChunkReading:
        return ChunkReading(self.datasets.rows, self.index)

    @cached_property
    def dataset_changes(self) -> DatasetChanges:
        return DatasetChanges(self.datasets.rows, self.datasets.embedding_model)

    @cached_property
    def document_changes(self) -> DocumentChanges:
        return DocumentChanges(self.datasets.rows)

    @cached_property
    def metadata(self) -> MetadataService:
        return MetadataService(self.datasets.rows)

    @cached_property
    def sessions(self) -> SessionService:
        return SessionService(self.datasets.rows)

    @cached_property
    def tags(self) -> TagService:
        return TagService(self.datasets.rows, self.index)

    @cached_property
    def team(self) -> TeamService:
        return TeamService(self.datasets.rows)

    @cached_property
    def users(self) -> UserService:
        return UserService(self.datasets.rows)

    @cached_property
    def tasks(self) -> TaskLookup:
        return TaskLookup(self.datasets.rows)

    @cached_property
    def health_watch(self) -> HealthWatch:
        return HealthWatch(self.health)

    @cached_property
    def executor_view(self) -> ExecutorView:
        return ExecutorView(self.datasets.rows, partial(_in_time, self._beats))

    @cached_property
    def _beats(self) -> Limited[list[ExecutorBeat]]:
        return Limited("heartbeats", self.messages.executors, LIMIT_S, QueueUnavailable)

    def streams(self) -> list[StreamState]:
        """Raises QueueUnavailable, also where Redis takes too long."""
        return _in_time(self._streams)

    @cached_property
    def _streams(self) -> Limited[list[StreamState]]:
        return Limited("streams", self.messages.states, LIMIT_S, QueueUnavailable)

    @cached_property
    def executor_orders(self) -> ExecutorOrders:
        return ExecutorOrders(self.datasets.rows)

    @cached_property
    def queue_view(self) -> QueueView:
        return QueueView(self.datasets.rows)

    @cached_property
    def failed_groups(self) -> FailedGroups:
        return FailedGroups(self.datasets.rows)

    @cached_property
    def queue_kept(self) -> Kept[QueueRows]:
        """For those who look again and again: however many they are, and however long the queue."""
        return Kept(self.queue_view.look, 1.0)

    @cached_property
    def failed_kept(self) -> Kept[list[FailedGroup]]:
        return Kept(self.failed_groups.look, 2.0)

    @cached_property
    def tallies(self) -> TallyService:
        return TallyService(self.datasets.rows)

    @cached_property
    def user_admin(self) -> UserAdmin:
        return UserAdmin(self.datasets.rows)

    @cached_property
    def webhooks(self) -> WebhookService:
        return WebhookService(self.datasets.rows)

    @cached_property
    def webhook_deliveries(self) -> WebhookDeliveries:
        return WebhookDeliveries(self.datasets.rows)


def _in_time(limited: Limited[T]) -> T:
    try:
        return limited.get()
    except Silent as exc:
        raise QueueUnavailable(f"the queue does not answer: {exc}") from exc


def provide(app: Flask, box: Services) -> None:
    app.extensions[_KEY] = box


def services() -> Services:
    """The services of the app that answers the current request."""
    return cast(Services, current_app.extensions[_KEY])
