"""The fields of a chunk as callers send them, checked one by one: RAGFlow names each that is wrong."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from api.apps.envelope import DATA, UNCAUGHT, ApiError
from api.apps.requests import Loose, shown, text
from api.db.services.chunk_edits import Position

ChunkBody = Mapping[str, Any]
_MAX_COORDINATE = 1_000_000
_Coordinate = Annotated[int, Field(ge=-_MAX_COORDINATE, le=_MAX_COORDINATE)]
_Place = Annotated[list[_Coordinate], Field(min_length=5, max_length=5)]
_FIVE = "five whole numbers each: page (from 1), left, right, top, bottom"


class ChunkFields(Loose):
    important_keywords: list[str] | None = None
    questions: list[str] | None = None
    tag_kwd: list[str] | None = None
    tag_feas: Annotated[dict[str, float], Field(description="A weight for each tag")] | None = None
    image_base64: Annotated[str, Field(description="Not available")] | None = None


class AddChunk(ChunkFields):
    content: Annotated[str, Field(min_length=1)]


class UpdateChunk(ChunkFields):
    content: Annotated[str, Field(min_length=1)] | None = None
    available: bool | Annotated[int, Field(ge=0, le=1)] | None = None
    positions: Annotated[list[_Place], Field(description="page from 1, left, right, top, bottom")] | None = None


class SwitchChunks(Loose):
    """One of the two switches must be there."""

    chunk_ids: Annotated[list[str], Field(min_length=1)]
    available_int: Annotated[int, Field(ge=0, le=1)] | None = None
    available: bool | None = None


class DeleteChunks(Loose):
    chunk_ids: list[str] | None = None
    delete_all: bool = False


def text_or_none(body: ChunkBody, key: str) -> str | None:
    given = body.get(key)
    if given is None:
        return None
    if not isinstance(given, str):
        raise ApiError(UNCAUGHT, f"`{key}` should be a string, not {type(given).__name__}")
    return text(given)


def keyword_list(body: ChunkBody, key: str) -> tuple[str, ...] | None:
    """None where nothing is sent."""
    given = body.get(key)
    if given is None:
        return None
    if not isinstance(given, list):
        raise ApiError(DATA, f"`{key}` is required to be a list: it should be a list")
    if not all(isinstance(one, str) for one in given):
        raise ApiError(DATA, f"`{key}` must be a list of strings")
    return tuple(text(one) for one in given)


def question_list(body: ChunkBody) -> tuple[str, ...] | None:
    """Blank ones are left out."""
    given = keyword_list(body, "questions")
    return None if given is None else tuple(one.strip() for one in given if one.strip())


def tag_weights(body: ChunkBody) -> dict[str, float] | None:
    given = body.get("tag_feas")
    if given is None:
        return None
    if not isinstance(given, dict):
        raise ApiError(DATA, "`tag_feas` must be an object of tags and numbers")
    for tag, weight in given.items():
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not _is_finite(weight):
            raise ApiError(DATA, f"`tag_feas` {shown(tag)}: the weight must be a number")
    return {text(tag): weight for tag, weight in given.items()}


def switch(body: ChunkBody, key: str) -> bool | None:
    given = body.get(key)
    if given is None:
        return None
    if given not in (True, False, 0, 1):
        raise ApiError(DATA, f"`{key}` should be true or false, 1 or 0")
    return bool(given)


def positions(body: ChunkBody) -> tuple[Position, ...] | None:
    """[page from 1, left, right, top, bottom] of each place."""
    given = body.get("positions")
    if given is None:
        return None
    if not isinstance(given, list):
        raise ApiError(DATA, "`positions` should be a list")
    return tuple(_position(one) for one in given)


def _position(given: object) -> Position:
    if not isinstance(given, list) or len(given) != 5 or not all(_is_coordinate(one) for one in given) or given[0] < 1:
        raise ApiError(DATA, f"`positions` should be a list of {_FIVE}")
    page, left, right, top, bottom = given
    return page, left, right, top, bottom


def _is_coordinate(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MAX_COORDINATE


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def refuse_image(body: ChunkBody) -> None:
    given = body.get("image_base64")
    if not given:
        return
    try:
        base64.b64decode(given, validate=True)
    except (TypeError, ValueError, binascii.Error) as exc:
        raise ApiError(DATA, "Invalid `image_base64`") from exc
    raise ApiError(DATA, "`image_base64` is not available: pictures of chunks come out of their document")
