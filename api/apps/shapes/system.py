"""The server, its models, users and keys as they are answered."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from api.apps.shapes.common import EpochMs, Id, LocalTime, Shape, Times

Light = Literal["ok", "nok"]


class PartChecked(Shape):
    elapsed: str
    error: str


class Health(Shape):
    model_config = ConfigDict(extra="allow")

    status: Light
    meta: dict[str, PartChecked] = Field(alias="_meta")


class PartStatus(Shape):
    status: Literal["green", "red"]
    elapsed: str
    error: str = ""


class ServerStatus(Shape):
    doc_engine: PartStatus
    storage: PartStatus
    database: PartStatus
    redis: PartStatus
    task_executor_heartbeats: dict[str, list[Any]]


class User(Times):
    id: Id
    nickname: str
    email: str
    avatar: None
    language: str
    timezone: None
    color_schema: str
    login_channel: str
    is_active: Literal["0", "1"]
    is_anonymous: Literal["0"]
    is_authenticated: Literal["1"]
    is_superuser: bool
    status: Literal["1"]


class Key(Shape):
    """`token` is the key itself where it is made, and its first and last characters where it is listed."""

    id: str = ""
    tenant_id: Id
    token: str
    beta: None
    name: str
    create_time: EpochMs
    create_date: LocalTime
    update_time: EpochMs | None
    update_date: LocalTime | None


class ServedModel(Shape):
    model_id: str
    name: str
    model_type: list[str]
    provider_id: str
    provider_name: str
    instance_id: str
    instance_name: str
    tenant_id: Id
    tenant_name: str
    rank: int


class DefaultModels(Shape):
    models: list[ServedModel]


class ListedModel(Shape):
    llm_name: str
    model_type: str
    fid: str
    available: bool
    status: str
