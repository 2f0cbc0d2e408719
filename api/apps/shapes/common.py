"""Shapes that many answers share: RAGFlow's failures, problems, times."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Id = Annotated[str, Field(pattern="^[0-9a-f]{32}$", examples=["6f0c2a1e5b3d4c7f8a9b0c1d2e3f4a5b"])]
EpochMs = Annotated[int, Field(description="Milliseconds since 1970", examples=[1763323200000])]
LocalTime = Annotated[str, Field(description="The server's local time", examples=["2026-11-16T20:00:00"])]
Rfc3339 = Annotated[str, Field(description="RFC 3339, in UTC", examples=["2026-11-16T20:00:00.000Z"])]
Count = Annotated[int, Field(ge=0)]


class Shape(BaseModel):
    """Nothing but what is named."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class Failure(Shape):
    """A refusal, with HTTP 200 where nothing else is said. `code`: 100 the body can't be read, or an error inside; 101
    an argument is wrong; 102 not there, not the caller's, or not in a state that allows this; 103, 109, 403
    registration, login and access; 105 a server is away; 422, 429, 500 as the same statuses of HTTP."""

    code: Annotated[int, Field(json_schema_extra={"not": {"const": 0}}, examples=[102])]
    message: Annotated[str, Field(examples=["You don't own the dataset 6f0c2a1e5b3d4c7f8a9b0c1d2e3f4a5b."])]
    data: Any = None


class Unknown(Shape):
    code: Literal[401]
    message: Annotated[str, Field(examples=["<Unauthorized '401: Unauthorized'>"])]
    data: None


class Missing(Shape):
    """No such address."""

    code: Literal[404]
    message: Annotated[str, Field(examples=["Not Found: /api/v1/nothing"])]
    data: None
    error: str


class WrongField(Shape):
    field: Annotated[str, Field(examples=["parser_config.chunk_token_num"])]
    message: str


class Problem(Shape):
    """RFC 9457. `code` is for programs and stays the same; `detail` is for people."""

    type: Annotated[str, Field(examples=["urn:pagemill:problem:not_found"])]
    title: str
    status: int
    detail: str
    instance: str
    code: Annotated[str, Field(examples=["not_found"])]
    request_id: str
    errors: list[WrongField] = Field(default_factory=list)


class Times(Shape):
    create_time: EpochMs
    create_date: LocalTime
    update_time: EpochMs
    update_date: LocalTime
