"""The fields that datasets are made and changed with, each with its checks in RAGFlow's texts."""

from __future__ import annotations

import re
import uuid
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from api.apps.parser_config import MAX_CHARS, Strict
from api.db.services.file_names import has_control_characters

HEX32 = re.compile(r"[0-9a-f]{32}")
_AVATAR = re.compile(r"data:(?P<mime>[^;,]+);base64$")


def _avatar(value: str) -> str:
    if not value:
        return value
    prefix, comma, _ = value.partition(",")
    if not comma:
        raise PydanticCustomError("avatar", "Missing MIME prefix. Expected format: data:<mime>;base64,<data>")
    found = _AVATAR.match(prefix)
    if found is None:
        raise PydanticCustomError("avatar", "Invalid MIME prefix format. Must start with 'data:'")
    if found["mime"] not in ("image/jpeg", "image/png"):
        raise PydanticCustomError("avatar", "Unsupported MIME type. Allowed: ['image/jpeg', 'image/png']")
    return value


def _model(value: str) -> str:
    if HEX32.fullmatch(value):
        return value
    if "@" not in value:
        raise PydanticCustomError("model", "Embedding model identifier must follow <model_name>@<provider> format")
    if any(not part.strip() for part in value.split("@")):
        raise PydanticCustomError(
            "model", "Both model_name and provider must be non-empty strings, not whitespace-only"
        )
    return value


def _printable(value: str) -> str:
    if has_control_characters(value):
        raise PydanticCustomError("name", "Control characters are not allowed")
    return value


def as_uuid(value: str) -> str:
    try:
        return uuid.UUID(value).hex
    except ValueError as exc:
        raise PydanticCustomError("uuid", "Invalid UUID format") from exc


DatasetName = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=128), AfterValidator(_printable)
]
Avatar = Annotated[str, Field(max_length=MAX_CHARS), AfterValidator(_avatar)]
LongText = Annotated[str, Field(max_length=MAX_CHARS)]
ModelName = Annotated[str, StringConstraints(strip_whitespace=True, max_length=255), AfterValidator(_model)]
Permission = Literal["me", "team"]
ChunkMethod = Literal[
    "naive", "book", "email", "laws", "manual", "one", "paper", "picture", "presentation", "qa", "resume", "table",
    "tag",
]  # fmt: skip


class MetadataFields(Strict):
    """What a chat model is to find out about each document. It is kept and shown; this server has no such model."""

    metadata: list[dict[str, Any]] = Field(default_factory=list)
    built_in_metadata: list[dict[str, Any]] = Field(default_factory=list)
