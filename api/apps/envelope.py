"""The two shapes of an answer (plain and full), and the one place where errors become one.

Business errors are answered with HTTP 200 and a code, as RAGFlow's clients expect; an outage with HTTP 503."""

from __future__ import annotations

import logging
from typing import Any

from flask import Flask, Response, g, jsonify, request
from werkzeug.exceptions import HTTPException, NotFound, RequestTimeout, Unauthorized

from common import errors

log = logging.getLogger(__name__)

UNCAUGHT = 100
ARGUMENT = 101
DATA = 102
OPERATING = 103
CONNECTION = 105
AUTHENTICATION = 109
FORBIDDEN = 403
SERVER = 500
# Where RAGFlow's clients look: the API, and the routes of older versions.
API_PATHS = ("/api/", "/v1/")
_RETRY_AFTER_S = "2"
_BACKLOG_RETRY_AFTER_S = "30"


class ApiError(Exception):
    """A refusal with RAGFlow's code. `data`, if any, goes with it."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def plain(data: object = None, **beside: object) -> Response:
    """Success of datasets, documents, chunks and retrieval: no message, and no data where there is none."""
    body: dict[str, object] = {"code": 0} if data is None else {"code": 0, "data": data}
    return jsonify(body | beside)


def full(data: object) -> Response:
    return jsonify({"code": 0, "message": "success", "data": data})


def expect_full() -> None:
    """Make errors of the current request carry `data`, as the full shape does."""
    g.full_envelope = True


def register(app: Flask) -> None:
    app.register_error_handler(ApiError, _refused)
    app.register_error_handler(errors.PagemillError, _known)
    app.register_error_handler(HTTPException, http_answer)
    app.register_error_handler(Exception, _uncaught)


def _failure(code: int, message: str, data: object = None) -> Response:
    body: dict[str, object] = {"code": code, "message": message}
    if data is not None or g.get("full_envelope"):
        body["data"] = data
    return jsonify(body)


def _refused(error: ApiError) -> Response:
    return _failure(error.code, error.message, error.data)


def _known(error: errors.PagemillError) -> Response:
    if isinstance(error, errors.Unauthorized):
        return http_answer(Unauthorized())
    if isinstance(error, errors.Outage):
        log.warning("request %s: %s: %s", g.request_id, error.code, error.public_message)
        answer = _failure(CONNECTION, error.public_message)
        answer.status_code = 503
        answer.headers["Retry-After"] = _RETRY_AFTER_S
        return answer
    if isinstance(error, errors.KeyReused):
        return _with_status(_failure(422, error.public_message), 422)
    if isinstance(error, errors.Backlogged):
        answer = _with_status(_failure(429, error.public_message), 429)
        answer.headers["Retry-After"] = _BACKLOG_RETRY_AFTER_S
        return answer
    return _failure(DATA, error.public_message)


def _with_status(answer: Response, status: int) -> Response:
    answer.status_code = status
    return answer


def http_answer(error: HTTPException) -> Response:
    if isinstance(error, NotFound):
        body: dict[str, Any] = {"code": 404, "message": f"Not Found: {request.path}", "data": None}
        answer = jsonify(body | {"error": "Not Found"})
        answer.status_code = 404
        return answer
    if isinstance(error, Unauthorized):
        answer = jsonify({"code": 401, "message": repr(error), "data": None})
        answer.status_code = 401
        return answer
    if isinstance(error, RequestTimeout):
        return _with_status(_failure(408, str(error.description)), 408)
    return _failure(UNCAUGHT, repr(error))


def _uncaught(error: Exception) -> Response:
    """What went wrong is in the log under the request's id; a stranger learns the id only."""
    log.error("request %s failed", g.request_id, exc_info=error)
    answer = _failure(UNCAUGHT, f"Internal error: the server's log has it under request {g.request_id}")
    if not request.path.startswith(API_PATHS):
        answer.status_code = 500  # pages and probes go by the status; RAGFlow's clients by the code
    return answer
