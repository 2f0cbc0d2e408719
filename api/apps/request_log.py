"""An id for every request, in its answer (X-Request-Id) and in the log, and the headers that every answer carries.

The log names the route, not the path: paths may hold a key. Every line that a request causes carries its id, and the id
of the document or the task that it is about."""

from __future__ import annotations

import logging
import re
import time

from flask import Flask, Response, g, request

from api.apps.envelope import API_PATHS
from common import logs
from common.ids import is_id, new_token

log = logging.getLogger("pagemill.access")

_ALLOWED_HEADERS = "*, Authorization, Content-Type, X-Request-Id, Idempotency-Key, Last-Event-ID"
_EXPOSED_HEADERS = "X-Request-Id, Authorization, Location, Retry-After"
_GIVEN = re.compile(r"[A-Za-z0-9._-]{1,64}")


def register(app: Flask) -> None:
    app.before_request(_begin)
    app.after_request(_end)
    app.teardown_request(_forget)


def _begin() -> None:
    given = request.headers.get("X-Request-Id", "")
    g.request_id = given if _GIVEN.fullmatch(given) else new_token()
    g.started_s = time.monotonic()
    logs.now_about(
        request_id=g.request_id,
        document_id=_in_path("document_id") or _in_path("job_id"),  # a job is a document's parse, and has its id
        task_id=_in_path("task_id"),
    )


def _in_path(name: str) -> str:
    """Only what looks like an id: the rest is whatever somebody typed."""
    given = str((request.view_args or {}).get(name, ""))
    return given if is_id(given) else ""


def _end(response: Response) -> Response:
    response.headers["X-Request-Id"] = g.request_id
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    if request.path.startswith(API_PATHS):
        response.headers["Access-Control-Allow-Origin"] = "*"
        response.headers["Access-Control-Allow-Headers"] = _ALLOWED_HEADERS
        response.headers["Access-Control-Allow-Methods"] = "GET, POST, PUT, PATCH, DELETE, OPTIONS"
        response.headers["Access-Control-Expose-Headers"] = _EXPOSED_HEADERS
    spent_ms = round((time.monotonic() - g.started_s) * 1000, 1)
    response.headers["Server-Timing"] = f"app;dur={spent_ms}"
    route = request.url_rule.rule if request.url_rule else "(no route)"
    fields = {"method": request.method, "route": route, "status": response.status_code, "spent_ms": spent_ms}
    log.info("%s %s -> %s in %s ms", *fields.values(), extra={"fields": fields})
    return response


def _forget(_: BaseException | None) -> None:
    """The thread answers others after this one."""
    logs.now_about()
