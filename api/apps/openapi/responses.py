"""Every answer that a route may give: its own, and those that all routes of its surface share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from api.apps.openapi.operation import Operation, Surface
from api.apps.openapi.schemas import Schema, Schemas
from api.apps.shapes.common import Failure, Missing, Problem, Unknown

_JSON = "application/json"
_PROBLEM = "application/problem+json"
_ENVELOPES = (Surface.PLAIN, Surface.FULL)
_TEXTS = {
    101: "The connection speaks WebSocket from here on",
    200: "Done, or refused with a code other than 0",
    201: "Made",
    202: "Accepted",
    204: "Done; there is nothing to tell",
    206: "The part that `Range` asks for",
    304: "As the caller has it already",
    400: "A parameter is wrong, or the body can't be read",
    401: "No key, or an unknown one",
    403: "Not this caller's to do",
    404: "No such thing, or not the caller's",
    405: "The address has no such method",
    408: "The request did not become whole in time, or its body comes too slowly",
    409: "Not in a state that allows this",
    412: "The file is not the one that `If-Match` names",
    413: "The body is too large",
    415: "The body has another content type than expected, or a Content-Encoding",
    416: "The file ends before the part that `Range` asks for",
    422: "A field is wrong, or the Idempotency-Key came before with another request",
    426: "The address speaks WebSocket only",
    429: "Too many requests, or too much is waiting",
    500: "An error inside: the server's log has it under the request's id",
    501: "This web server can't keep a connection open",
    503: "A server that is needed is away",
}
_RETRY_AFTER = {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer"}}}
_REQUEST_ID = {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}}


@dataclass(frozen=True)
class Guards:
    """What a request meets before its handler. An unsafe one with a session's cookie has to come from our own pages."""

    needs_key: bool
    has_path: bool
    is_unsafe: bool


def responses(operation: Operation, schemas: Schemas, guards: Guards) -> dict[str, Schema]:
    found = {str(operation.status): _success(operation, schemas)}
    if operation.surface is not Surface.PROBLEM and operation.status != 200:
        raise ValueError(f"{operation.summary}: RAGFlow's clients know success as HTTP 200")
    for status in _statuses(operation, guards):
        if str(status) not in found:
            found[str(status)] = _other(operation, schemas, status)
    return dict(sorted(found.items()))


def _statuses(operation: Operation, guards: Guards) -> set[int]:
    """429 and 503 may come from every route; of what is wrong inside, RAGFlow's surface tells with HTTP 200."""
    statuses = {429, 503, *operation.statuses}
    if guards.needs_key:
        statuses |= {401, 403} if guards.is_unsafe else {401}
    if guards.is_unsafe:
        statuses |= {408, 415}
    if guards.has_path:
        statuses.add(404)
    if operation.is_once:
        statuses.add(422)
    if operation.surface is Surface.PROBLEM:
        statuses.add(500)
        if operation.body or operation.form:
            statuses |= {400, 413, 422}
    return statuses


def _success(operation: Operation, schemas: Schemas) -> Schema:
    answer: Schema = {"description": _TEXTS[operation.status], "headers": _REQUEST_ID}
    content: Schema = {}
    if operation.surface in _ENVELOPES or operation.media:
        content[_JSON] = {"schema": _enveloped(operation, schemas)}
    elif operation.answer is not None:
        content[_JSON] = {"schema": schemas.of(operation.answer)}
        if operation.surface is Surface.BARE:
            content[_JSON]["schema"] = {"anyOf": [content[_JSON]["schema"], schemas.of(Failure)]}
    if operation.media and operation.surface in (Surface.PROBLEM, Surface.BARE):
        del content[_JSON]
    for media in operation.media:
        content[media] = {"schema": {"type": "string"} if media.startswith("text/") else {}}
    return answer | ({"content": content} if content else {})


def _enveloped(operation: Operation, schemas: Schemas) -> Schema:
    if operation.media:
        return schemas.of(Failure)
    properties: dict[str, Any] = {"code": {"const": 0}}
    required = ["code"]
    if operation.surface is Surface.FULL:
        properties["message"] = {"type": "string"}
        required.append("message")
    if operation.answer is not None:
        properties["data"] = schemas.of(operation.answer)
        if type(None) not in get_args(operation.answer):
            required.append("data")
    for name, kind in operation.beside.items():
        properties[name] = schemas.of(kind)
    success = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"anyOf": [success, schemas.of(Failure)]}


def _other(operation: Operation, schemas: Schemas, status: int) -> Schema:
    answer: Schema = {"description": _TEXTS[status], "headers": dict(_REQUEST_ID)}
    if status in (429, 503):
        answer["headers"] |= _RETRY_AFTER
    if status < 400:
        return answer | ({"content": {media: {} for media in operation.media}} if status == 206 else {})
    if operation.surface is Surface.PROBLEM:
        content = {_PROBLEM: {"schema": schemas.of(Problem)}}
        if status == 408:  # of half a request the web server does not know which route it is for
            content[_JSON] = {"schema": schemas.of(Failure)}
        return schemas.shared(f"Problem{status}", answer | {"content": content})
    if status == 500:
        return answer | {"content": {_JSON: {"schema": schemas.of(operation.answer)}}}
    kind = {401: Unknown, 404: Missing}.get(status, Failure)
    return schemas.shared(f"Refusal{status}", answer | {"content": {_JSON: {"schema": schemas.of(kind)}}})
