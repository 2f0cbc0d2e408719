"""An id for every request, in its answer (X-Request-Id) and in the log, and the headers that every answer carries.

The log names the route, not the path: paths may hold a key."""

from __future__ import annotations

import logging
import re
import time

from flask import Flask, Response, g, request

from api.apps.envelope import API_PATHS
from common.ids import new_token

log = logging.getLogger("pagemill.access")

_ALLOWED_HEADERS = "Authorization, Content-Type, X-Request-Id, Idempotency-Key, Last-Event-ID"
_GIVEN = re.compile(r"[A-Za-z0-9._-]{1,64}")


def register(app: Flask) -> None:
    app.before_request(_begin)
    app.after_request(_end)


def _begin() -> None:
    given = request.headers.get("X-Request-Id", "")
    g.request_id = given if _GIVEN.fullmatch(given) else new_token()
    g.started_s = time.monotonic()


def _end(response: Response) -> Response:
    response.headers["X-Request-Id"] = g.request_id
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    if request.path.startswith(API_PATHS):
        response.headers["Access-Control-Allow-Origin"] = "*"
        response.headers["Access-Control-Allow-Headers"] = _ALLOWED_HEADERS
        response.headers["Access-Control-Allow-Methods"] = "GET, POST, PUT, PATCH, DELETE, OPTIONS"
        response.headers["Access-Control-Expose-Headers"] = "X-Request-Id, Authorization, Location"
    spent_ms = (time.monotonic() - g.started_s) * 1000
    route = request.url_rule.rule if request.url_rule else "(no route)"
    log.info("%s %s %s -> %s in %.1f ms", g.request_id, request.method, route, response.status_code, spent_ms)
    return response
