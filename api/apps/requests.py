"""What callers send, checked: JSON bodies and query strings, as schemas where RAGFlow validates and loosely where it
does not. Refusals have RAGFlow's texts: clients look for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from flask import g, request
from pydantic import BaseModel, Field, ValidationError
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge

from api.apps.envelope import ARGUMENT, DATA, UNCAUGHT, ApiError
from api.apps.openapi.operation import current_operation
from api.apps.sizes import max_json_bytes, max_page_size, require_count, require_sizes
from api.apps.unwritable import unwritable
from api.apps.wrong_fields import wrong_fields_of
from api.db.services.file_names import require_file_name
from common.errors import InvalidInput

M = TypeVar("M", bound=BaseModel)

_MAX_SHOWN = 128
MAX_IDS = 30_000
MAX_STRANGER_BYTES = 16 * 1024
MAX_NUMBER = 2**53
_MALFORMED = "Malformed JSON syntax: Missing commas/brackets or invalid encoding"


# Its maximum is a setting: the description has it (openapi/document.py), and those who use it hold it.
PageSize = Annotated[int, Field(ge=1)]


class Loose(BaseModel):
    """A body or a query that RAGFlow does not check as a whole. The model says which fields there are, for the
    description and for the handler, which gets no others; the handler checks each in RAGFlow's words."""


class Paged(Loose):
    """Of a page or a size that is no number or below 1 the default is taken, of a size that is too large the most."""

    page: Annotated[int, Field(ge=1)] = 1
    page_size: PageSize = 30


def schema_body(model: type[M]) -> M:
    """The JSON body as `model`, which the route declares. Raises ApiError 101 that names every field that is wrong."""
    _require_declared(current_operation().body, model)
    if not request.is_json:
        got = request.content_type
        raise ApiError(ARGUMENT, f"Unsupported content type: Expected application/json, got {got}")
    try:
        payload = _json() or {}
    except BadRequest as exc:
        raise ApiError(ARGUMENT, _MALFORMED) from exc
    if not isinstance(payload, dict):
        raise ApiError(ARGUMENT, f"Invalid request payload: expected object, got {type(payload).__name__}")
    require_sizes(payload)
    _require_writable(payload)
    return _validated(model, payload)


def query(model: type[M]) -> M:
    """The query string as `model`, which the route declares; list fields may be repeated or parted by commas."""
    _require_declared(current_operation().query, model)
    values: dict[str, Any] = {}
    for key, given in request.args.lists():
        field = model.model_fields.get(key)
        is_list = field is not None and "list" in str(field.annotation)
        values[key] = [part for one in given for part in one.split(",") if part] if is_list else given[0]
    return _validated(model, values)


def params() -> MultiDict[str, str]:
    """Those parameters of the query string that the route declares."""
    operation = current_operation()
    return MultiDict((key, value) for key, value in request.args.items(multi=True) if operation.takes(key))


def loose_body() -> dict[str, Any]:
    """The body of a route that RAGFlow does not validate: a JSON object, or a form; {} where there is none. Fields that
    the route does not declare are left out."""
    declared = current_operation().body
    known = declared.model_fields if declared is not None else {}
    return {key: value for key, value in payload().items() if key in known}


def payload() -> dict[str, Any]:
    """All of the body, for those who stand before the routes. A stranger's is no larger than a password needs: it is
    waited for without a thread then."""
    is_known = "caller" in g
    request.max_content_length = max_json_bytes() if is_known else MAX_STRANGER_BYTES
    try:
        given = request.get_data()
    except RequestEntityTooLarge as exc:
        if is_known:
            raise
        most = f"at most {MAX_STRANGER_BYTES} bytes"
        raise ApiError(ARGUMENT, f"`email`, `password` and all else that is sent here have {most} together") from exc
    if not given:
        return {}
    if request.is_json:
        payload = _json()
        if not isinstance(payload, dict):
            raise ApiError(UNCAUGHT, "JSON payload must be an object")
        require_sizes(payload)
        return payload
    if not request.form:
        raise ApiError(UNCAUGHT, "Request body is not a valid form payload")
    fields = {key: given if len(given) > 1 else given[0] for key, given in request.form.lists()}
    require_sizes(fields)
    return fields


def id_list(body: Mapping[str, Any], key: str) -> list[str]:
    """A list of ids that must be there and not be empty. Raises ApiError: 102, or 101 for too many."""
    given = body.get(key)
    if not given:
        raise ApiError(DATA, f"`{key}` is required")
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise ApiError(DATA, f"`{key}` should be a list of strings")
    require_count(key, given)
    return [text(one) for one in given]


def page_number() -> int:
    return _positive(params().get("page"), 1)


def page_size() -> int:
    return min(_positive(params().get("page_size"), 30), max_page_size())


def require_page_size(given: int) -> None:
    """For lists that refuse what is too large. Raises ApiError 101."""
    if given > max_page_size():
        text = f"Input should be less than or equal to {max_page_size()}"
        raise ApiError(ARGUMENT, f"Field: <page_size> - Message: <{text}> - Value: <{given}>")


def bounded(value: object, default: int, most: int = MAX_NUMBER) -> int:
    """A number that RAGFlow takes as it comes: the default where it is none or below 1."""
    return min(_positive(value, default), most)


def text(value: str) -> str:
    """Half a surrogate pair and a zero byte, which JSON can express, are no characters: not every store takes them."""
    return value.encode("utf-8", "replace").decode().replace("\0", "")


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
    """Strictly: NaN and Infinity are no JSON, and whoever is shown them later could not read the answer."""
    request.max_content_length = max_json_bytes()
    try:
        return json.loads(request.get_data(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as exc:
        raise BadRequest("the body is no JSON, or nested too deep") from exc


def _require_writable(payload: Mapping[str, Any]) -> None:
    found = unwritable(payload)
    if found is not None:
        raise ApiError(ARGUMENT, f"Field: <{shown(found.place)}> - Message: <{found.why}>")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _positive(value: object, default: int) -> int:
    try:
        number = int(str(value))
    except ValueError:
        return default
    return min(number, MAX_NUMBER) if number >= 1 else default


def validation_lines(error: ValidationError, under: str = "") -> str:
    """A line for each field that is wrong."""
    return "\n".join(
        f"Field: <{wrong.place}> - Message: <{wrong.message}> - Value: <{shown(wrong.given)}>"
        for wrong in wrong_fields_of(error, under)
    )


def _require_declared(declared: type[BaseModel] | None, used: type[BaseModel]) -> None:
    if declared is not used:
        raise LookupError(f"{request.endpoint} declares {declared}, and uses {used.__name__}")


def _validated(model: type[M], values: Mapping[str, Any]) -> M:
    try:
        return model.model_validate(values)
    except ValidationError as exc:
        raise ApiError(ARGUMENT, validation_lines(exc)) from exc
