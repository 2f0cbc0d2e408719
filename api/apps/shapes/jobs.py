"""Jobs, the pool, webhooks and their deliveries as they are answered."""

from __future__ import annotations

from typing import Any, Literal

from api.apps.shapes.common import Count, Id, Rfc3339, Shape

Status = Literal["unstarted", "queued", "running", "paused", "done", "failed", "cancelled", "deleted"]
Event = Literal["done", "failed", "cancelled"]


class JobRange(Shape):
    unit: str
    first: int
    last: int


class JobTasks(Shape):
    done: Count
    total: Count
    reused: Count


class JobUnits(Shape):
    unit: str
    done: Count
    total: Count


class Unread(Shape):
    first: int
    last: int
    reason: str


class JobResult(Shape):
    chunk_count: Count
    token_count: Count
    is_partial: bool
    unread: list[Unread]
    chunks: str


class JobError(Shape):
    code: str
    message: str
    is_permanent: bool


class JobLinks(Shape):
    self: str
    events: str
    websocket: str
    chunks: str


class Job(Shape):
    """A document and its parse by one id. `eta_s` is null where nobody knows, `result` and `error` before the end."""

    job_id: Id
    document_id: Id
    dataset_id: Id
    name: str
    status: Status
    progress: float
    step: str
    message: str
    is_final: bool
    ranges: list[JobRange]
    tasks: JobTasks
    units: JobUnits | None
    attempt: Count
    max_attempts: Count
    queue_position: int | None
    eta_s: float | None
    result: JobResult | None
    error: JobError | None
    priority: Literal["bulk", "normal", "urgent"]
    size_bytes: Count
    created_at: Rfc3339
    started_at: Rfc3339 | None
    ended_at: Rfc3339 | None
    links: JobLinks


class JobPage(Shape):
    total: Count
    page: int
    page_size: int
    jobs: list[Job]


class JobTimeline(Shape):
    """Units count from 1, and the last one is part of its range."""

    job_id: Id
    generation: int
    is_searched: bool
    is_unchanged: bool
    unit: str
    units: Count
    now: Rfc3339
    max_attempts: Count
    counts: dict[str, int]
    stages: dict[str, float]
    spans: list[dict[str, Any]]
    unread: list[dict[str, Any]]
    total: Count
    tasks: list[dict[str, Any]]


class Lane(Shape):
    waiting: Count
    oldest_waiting_s: float | None


class Executor(Shape):
    name: str
    slots: int
    slots_used: int
    parsers: int
    done: int
    failed: int
    retried: int
    is_draining: bool


class Pool(Shape):
    """Everybody's tasks in numbers, nobody's documents."""

    queue_size: Count
    active_tasks: Count
    paused_tasks: Count
    num_workers: Count
    slots: Count
    slots_used: Count
    oldest_waiting_s: float | None
    by_priority: dict[Literal["bulk", "normal", "urgent"], Lane]
    executors: list[Executor]


class WebhookLinks(Shape):
    self: str
    deliveries: str


class Webhook(Shape):
    webhook_id: Id
    url: str
    dataset_id: str | None
    events: list[Event]
    created_at: Rfc3339
    links: WebhookLinks


class NewWebhook(Webhook):
    """The secret is in this answer and in no other."""

    secret: str


class Webhooks(Shape):
    webhooks: list[Webhook]


class Delivery(Shape):
    delivery_id: Id
    event: Event
    job_id: Id
    document_id: Id
    dataset_id: Id
    generation: int
    state: Literal["waiting", "delivered", "given_up"]
    attempts: Count
    status: int | None
    error: str | None
    created_at: Rfc3339
    last_try_at: Rfc3339 | None
    next_try_at: Rfc3339 | None


class DeliveryPage(Shape):
    total: Count
    page: int
    page_size: int
    deliveries: list[Delivery]
