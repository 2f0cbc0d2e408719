"""What operators are told."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from api.apps.shapes.common import Count, EpochMs, Id, Shape


class PartHealth(Shape):
    """`error` is empty where the part answers."""

    part: Annotated[str, Field(examples=["database", "queue", "index", "store"])]
    ok: bool
    error: str
    latency_ms: float


class InWork(Shape):
    """A task that an executor works on."""

    id: str
    document_id: str
    document_name: str
    dataset_id: str
    tenant_id: str
    task_type: str
    from_page: int = 0
    to_page: int = 0
    stage: str
    age_s: float


class OrderOf(Shape):
    wanted: Literal["drain", "restart"]
    by: str
    at_ms: EpochMs


class RunningExecutor(Shape):
    """What it said last, `age_s` ago; null where that is not known."""

    name: str
    owner: str
    life: Literal["alive", "silent", "unknown"]
    age_s: float
    boot_ms: EpochMs
    host: str | None
    pid: int | None
    version: str | None
    slots: int | None
    slots_used: int | None
    parsers: int | None
    draining: bool | None
    drained: bool | None
    done: int | None
    failed: int | None
    retried: int | None
    cancelled: int | None
    rss_bytes: int | None
    cpu_percent: float | None
    embedding_cache_hits: int | None
    embedding_cache_misses: int | None
    current: list[InWork]
    order: OrderOf | None


FateWord = Literal["held", "waiting", "running", "done", "failed", "cancelled", "paused", "gone"]


class LostTask(Shape):
    """A task that an executor held when it was lost: what it is now, and by whom."""

    task_id: str
    fate: FateWord
    by: str
    document_id: str
    document_name: str
    dataset_id: str
    tenant_id: str
    task_type: str
    from_page: int
    to_page: int
    error_code: str


class EndedExecutor(Shape):
    """`fates` counts all tasks that it held, `lost` are the first of them."""

    name: str
    owner: str
    ended: Literal["left", "dead", "silent"]
    reason: str
    boot_ms: EpochMs
    end_ms: EpochMs
    host: str | None
    pid: int | None
    version: str | None
    done: int | None
    failed: int | None
    retried: int | None
    cancelled: int | None
    fates: dict[FateWord, Count]
    lost: list[LostTask]


class Executors(Shape):
    """`heartbeat_error` says why heartbeats can't be read; what is told is from the rows then."""

    heartbeat_error: str
    running: list[RunningExecutor]
    ended: list[EndedExecutor]


class TaskLine(Shape):
    """Tasks that have not ended; `oldest_s` is for how long the oldest that waits has been due."""

    waiting: Count
    put_off: Count
    published: Count
    running: Count
    paused: Count
    oldest_s: float


class StreamFacts(Shape):
    """`lag` messages were read by nobody, `pending` are not acknowledged."""

    length: Count
    lag: Count
    pending: Count
    oldest_s: float


class PriorityLine(TaskLine):
    name: Literal["urgent", "normal", "bulk"]
    stream: StreamFacts | None


class TenantLine(TaskLine):
    id: str
    name: str


class OtherTenants(TaskLine):
    count: Count


class QueueFacts(Shape):
    """Streams are null, and `error` says why, while Redis is away."""

    error: str
    total: TaskLine
    priorities: list[PriorityLine]
    express: StreamFacts | None
    tenants: list[TenantLine]
    other_tenants: OtherTenants


class FailedExample(Shape):
    task_id: str
    document_id: str
    document_name: str
    dataset_id: str
    tenant_id: str
    message: str
    end_ms: EpochMs


class FailedGroup(Shape):
    """Failed tasks of one cause; `current` of them can run again."""

    id: str
    error_code: str
    message: str
    count: Count
    current: Count
    documents: Count
    first_ms: EpochMs
    newest_ms: EpochMs
    examples: list[FailedExample]


class Overview(Shape):
    now_ms: EpochMs
    version: str
    health: list[PartHealth]
    executors: Executors
    queue: QueueFacts
    failed: list[FailedGroup]


class History(Shape):
    """Columns by the minute, oldest first."""

    span: str
    now_ms: int
    minutes: list[int]
    done: list[int]
    failed: list[int]
    retried: list[int]
    lost: list[int]
    pages: list[int]
    reused_pages: list[int]
    chunks: list[int]


class Setting(Shape):
    key: str
    value: Any
    source: str


class Ordered(Shape):
    name: str
    wanted: str


class GroupActed(Shape):
    """`next` is to be sent as `after`; null when all was looked at."""

    done: Count
    refused: Count
    next: str | None


class UserFacts(Shape):
    id: Id
    email: str
    nickname: str
    is_superuser: bool
    is_active: bool
    create_ms: int
    datasets: Count
    documents: Count
    keys: Count
    last_used_ms: int


class NewUser(UserFacts):
    """`password` where none was given; it can't be read again."""

    password: str = ""


class NewPassword(Shape):
    password: str
