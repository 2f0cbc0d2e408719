"""What callers send, checked: JSON bodies and query strings, as schemas where RAGFlow validates and loosely where it
does not. Refusals have RAGFlow's texts: clients look for them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from flask import request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import PydanticCustomError
from werkzeug.exceptions import BadRequest

from api.apps.envelope import ARGUMENT, DATA, UNCAUGHT, ApiError
from api.apps.parser_config import MAX_CHARS, ParserConfig, Strict
from api.db.services.file_names import has_control_characters, require_file_name
from common.errors import InvalidInput

M = TypeVar("M", bound=BaseModel)

_MAX_JSON_BYTES = 32 * 1024 * 1024
_MAX_SHOWN = 128
_MAX_PAGE_SIZE = 100
_MAX_NUMBER = 2**53
_MALFORMED = "Malformed JSON syntax: Missing commas/brackets or invalid encoding"
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


class CreateDataset(Strict):
    name: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=128), AfterValidator(_printable)
    ]
    avatar: Annotated[str, Field(max_length=MAX_CHARS), AfterValidator(_avatar)] | None = None
    description: Annotated[str, Field(max_length=MAX_CHARS)] | None = None
    embedding_model: (
        Annotated[str, StringConstraints(strip_whitespace=True, max_length=255), AfterValidator(_model)] | None
    ) = None
    permission: Literal["me", "team"] = "me"
    chunk_method: Literal[
        "naive", "book", "email", "laws", "manual", "one", "paper", "picture", "presentation", "qa", "resume", "table",
        "tag",
    ] = "naive"  # fmt: skip
    parser_config: ParserConfig | None = None

    def given_parser_config(self) -> dict[str, Any] | None:
        """With every default of the schema filled in; None where nothing was given."""
        if self.parser_config is None or not self.parser_config.model_fields_set:
            return None
        given = self.parser_config.model_dump()
        if given["password"] is None:
            del given["password"]
        return given


class ListDatasets(BaseModel):
    model_config = ConfigDict(extra="forbid")

    page: Annotated[int, Field(ge=1, le=_MAX_NUMBER)] = 1
    page_size: Annotated[int, Field(ge=1, le=_MAX_PAGE_SIZE)] = 30
    orderby: Literal["create_time", "update_time"] = "create_time"
    desc: bool = True
    id: Annotated[str, AfterValidator(as_uuid)] | None = None
    name: str | None = None
    ids: Annotated[list[Annotated[str, AfterValidator(as_uuid)]], Field(max_length=100)] | None = None
    include_parsing_status: bool = False


def schema_body(model: type[M]) -> M:
    """The JSON body as `model`. Raises ApiError 101 that names every field that is wrong."""
    if not request.is_json:
        got = request.content_type
        raise ApiError(ARGUMENT, f"Unsupported content type: Expected application/json, got {got}")
    try:
        payload = _json() or {}
    except BadRequest as exc:
        raise ApiError(ARGUMENT, _MALFORMED) from exc
    if not isinstance(payload, dict):
        raise ApiError(ARGUMENT, f"Invalid request payload: expected object, got {type(payload).__name__}")
    return _validated(model, payload)


def query(model: type[M]) -> M:
    """The query string as `model`; list fields may be repeated or parted by commas."""
    values: dict[str, Any] = {}
    for key, given in request.args.lists():
        field = model.model_fields.get(key)
        is_list = field is not None and "list" in str(field.annotation)
        values[key] = [part for one in given for part in one.split(",") if part] if is_list else given[0]
    return _validated(model, values)


def loose_body() -> dict[str, Any]:
    """The body of a route that RAGFlow does not validate: a JSON object, or a form; {} where there is none."""
    request.max_content_length = _MAX_JSON_BYTES
    if not request.get_data():
        return {}
    if request.is_json:
        payload = _json()
        if not isinstance(payload, dict):
            raise ApiError(UNCAUGHT, "JSON payload must be an object")
        return payload
    if not request.form:
        raise ApiError(UNCAUGHT, "Request body is not a valid form payload")
    return {key: given if len(given) > 1 else given[0] for key, given in request.form.lists()}


def id_list(body: Mapping[str, Any], key: str) -> list[str]:
    """A list of ids that must be there and not be empty. Raises ApiError 102."""
    given = body.get(key)
    if not given:
        raise ApiError(DATA, f"`{key}` is required")
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise ApiError(DATA, f"`{key}` should be a list of strings")
    return [text(one) for one in given]


def page_number() -> int:
    return _positive(request.args.get("page"), 1)


def page_size() -> int:
    return min(_positive(request.args.get("page_size"), 30), _MAX_PAGE_SIZE)


def bounded(value: object, default: int, most: int = _MAX_NUMBER) -> int:
    """A number that RAGFlow takes as it comes: the default where it is none or below 1."""
    return min(_positive(value, default), most)


def text(value: str) -> str:
    """Half a surrogate pair, which JSON can express, is no character: no store takes it."""
    return value.encode("utf-8", "replace").decode()


def file_name(name: str) -> str:
    """A file's name as it is kept. Raises ApiError 101 for one that can't be."""
    try:
        require_file_name(name)
    except InvalidInput as exc:
        raise ApiError(ARGUMENT, exc.public_message) from exc
    return name


def shown(value: object) -> str:
    """What a caller sent, short enough to be sent back."""
    words = str(value).encode("utf-8", "replace").decode()
    return words if len(words) <= _MAX_SHOWN else words[: _MAX_SHOWN - 3] + "..."


def _json() -> Any:
    request.max_content_length = _MAX_JSON_BYTES
    try:
        return request.get_json()
    except RecursionError as exc:
        raise BadRequest("the body is nested too deep") from exc


def _positive(value: object, default: int) -> int:
    try:
        number = int(str(value))
    except ValueError:
        return default
    return min(number, _MAX_NUMBER) if number >= 1 else default


def _validated(model: type[M], values: Mapping[str, Any]) -> M:
    try:
        return model.model_validate(values)
    except ValidationError as exc:
        lines = [
            f"Field: <{'.'.join(map(str, e['loc']))}> - Message: <{e['msg']}> - Value: <{shown(e['input'])}>"
            for e in exc.errors()
        ]
        raise ApiError(ARGUMENT, "\n".join(lines)) from exc
