"""What operators are told. Figures of executors and queues are as their own modules make them."""

from __future__ import annotations

from typing import Any

from api.apps.shapes.common import Count, Id, Shape


class Overview(Shape):
    now_ms: int
    version: str
    health: list[dict[str, Any]]
    executors: dict[str, Any]
    queue: dict[str, Any]
    failed: list[dict[str, Any]]


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
