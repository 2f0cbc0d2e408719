"""Answers of the routes that speak plain HTTP: a status that means what it says and, where something is wrong, a body
of application/problem+json (RFC 9457). A blueprint that is registered here has no other shape of error."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from flask import Blueprint, Flask, Response, current_app, g, jsonify, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound
from werkzeug.http import HTTP_STATUS_CODES

from api.apps.envelope import ApiError, http_answer
from api.apps.openapi.operation import Surface, operation_of
from common import errors

log = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"
_RETRY_AFTER_S = 2
_BACKLOG_RETRY_AFTER_S = 30
# The first that fits, from the special to the general.
_STATUSES: Sequence[tuple[type[errors.PagemillError], HTTPStatus]] = (
    (errors.Unauthorized, HTTPStatus.UNAUTHORIZED),
    (errors.NotFound, HTTPStatus.NOT_FOUND),
    (errors.Conflict, HTTPStatus.CONFLICT),
    (errors.KeyReused, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.Backlogged, HTTPStatus.TOO_MANY_REQUESTS),
    (errors.InvalidInput, HTTPStatus.BAD_REQUEST),
    (errors.DocumentError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.Outage, HTTPStatus.SERVICE_UNAVAILABLE),
)


@dataclass(frozen=True)
class FieldError:
    """A field of the request that is wrong: a form field or a parameter, with dots into what it holds."""

    field: str
    message: str


class Problem(Exception):
    """A refusal. `code` is for programs and stays the same; `detail` is for people."""

    def __init__(
        self,
        status: HTTPStatus,
        code: str,
        detail: str,
        fields: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.fields = fields
        self.headers = headers or {}


def wrong_fields(*fields: FieldError, status: HTTPStatus = HTTPStatus.UNPROCESSABLE_ENTITY) -> Problem:
    named = "; ".join(f"{one.field}: {one.message}" for one in fields)
    return Problem(status, "invalid_field", named, fields)


def register(blueprint: Blueprint) -> None:
    blueprint.register_error_handler(Problem, _answer)
    blueprint.register_error_handler(errors.PagemillError, _known)
    blueprint.register_error_handler(ApiError, _refused)
    blueprint.register_error_handler(HTTPException, _http)
    blueprint.register_error_handler(Exception, _uncaught)


def register_in_envelope(app: Flask) -> None:
    """For checks that stand before all routes: those which speak RAGFlow's envelope refuse in it, with the status."""
    app.register_error_handler(Problem, _in_envelope)
    app.register_error_handler(MethodNotAllowed, _no_method)


def _no_method(error: MethodNotAllowed) -> Response:
    """A wrong method comes to no route, and so to no blueprint: those which the address has tell its shape."""
    adapter = current_app.create_url_adapter(request)
    assert adapter is not None
    for method in error.valid_methods or ():
        rule, _ = adapter.match(method=method, return_rule=True)
        operation = operation_of(current_app.view_functions[rule.endpoint])
        if operation is not None:
            return _http(error) if operation.surface is Surface.PROBLEM else http_answer(error)
    return http_answer(error)


def no_route(error: NotFound) -> Response:
    """An address that is none has the shape of those which begin as it does, the longer the nearer."""
    near: dict[str, set[bool]] = {}
    for rule in current_app.url_map.iter_rules():
        operation = operation_of(current_app.view_functions[rule.endpoint])
        begin = rule.rule.partition("<")[0].removesuffix("/") + "/"
        if operation is not None and f"{request.path}/".startswith(begin):
            near.setdefault(begin, set()).add(operation.surface is Surface.PROBLEM)
    nearest = near[max(near, key=len)] if near else {False}
    return _http(error) if nearest == {True} else http_answer(error)


def _in_envelope(problem: Problem) -> Response:
    answer = jsonify({"code": int(problem.status), "message": problem.detail, "data": None})
    answer.status_code = int(problem.status)
    answer.headers.update(problem.headers)
    return answer


def _answer(problem: Problem) -> Response:
    body: dict[str, object] = {
        "type": f"urn:pagemill:problem:{problem.code}",
        "title": HTTP_STATUS_CODES[problem.status],  # not Python's own, which changes with its version
        "status": int(problem.status),
        "detail": problem.detail,
        "instance": request.path,
        "code": problem.code,
        "request_id": g.request_id,
    }
    if problem.fields:
        body["errors"] = [{"field": one.field, "message": one.message} for one in problem.fields]
    text = json.dumps(body, ensure_ascii=False)
    return Response(text, int(problem.status), dict(problem.headers), content_type=MEDIA_TYPE)


def problem_of(error: errors.PagemillError) -> Problem:
    status = next((s for kind, s in _STATUSES if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)
    headers = {}
    if isinstance(error, errors.Outage):
        headers["Retry-After"] = str(round(error.retry_after_s or _RETRY_AFTER_S))
    if isinstance(error, errors.Backlogged):
        headers["Retry-After"] = str(_BACKLOG_RETRY_AFTER_S)
    if isinstance(error, errors.Unauthorized):
        headers["WWW-Authenticate"] = "Bearer"
    return Problem(status, error.code, error.public_message, headers=headers)


def _known(error: errors.PagemillError) -> Response:
    if isinstance(error, errors.Outage):
        log.warning("request %s: %s: %s", g.request_id, error.code, error.public_message)
    return _answer(problem_of(error))


def _refused(error: ApiError) -> Response:
    """From a check that other routes share."""
    return _answer(Problem(HTTPStatus.BAD_REQUEST, "invalid_input", error.message))


def _http(error: HTTPException) -> Response:
    status = HTTPStatus(error.code or HTTPStatus.INTERNAL_SERVER_ERROR)
    headers = {name: value for name, value in error.get_headers() if name in ("Allow", "Retry-After")}
    code = HTTP_STATUS_CODES[status].lower().replace(" ", "_")
    return _answer(Problem(status, code, error.description or status.description, headers=headers))


def _uncaught(error: Exception) -> Response:
    """What went wrong is in the log under the request's id; a stranger learns the id only."""
    log.error("request %s failed", g.request_id, exc_info=error)
    detail = f"Internal error: the server's log has it under request {g.request_id}"
    return _answer(Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", detail))
