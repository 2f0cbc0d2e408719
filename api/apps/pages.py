"""What is not under /api/v1: the page at `/`, and the checks that an orchestrator asks for."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify, make_response, render_template, request

from api.apps.health import check_parts
from api.apps.services import services
from common.errors import QueueUnavailable

bp = Blueprint("pages", __name__)

_CSP = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@bp.get("/")
def index() -> Response:
    page = render_template(
        "index.html",
        version=services().version,
        parts=check_parts(services().health),
        address=request.host_url.rstrip("/"),
        executors=_executors(),
        model=services().settings.embedding.model,
    )
    response = make_response(page)
    response.headers["Content-Security-Policy"] = _CSP
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


def _executors() -> str:
    try:
        count = services().executors_alive()
    except QueueUnavailable:
        return "unknown while the queue is away"
    return f"{count} running" if count else "none is running: nothing is being parsed"


@bp.get("/healthz")
def healthz() -> Response:
    """The process is alive, whatever the state of the parts it needs."""
    return jsonify({"status": "ok"})


@bp.get("/readyz")
def readyz() -> tuple[Response, int]:
    states = check_parts(services().health)
    ready = all(state.is_ok for state in states)
    body = {
        "status": "ready" if ready else "not ready",
        "parts": {state.part: "ok" if state.is_ok else state.error for state in states},
    }
    return jsonify(body), 200 if ready else 503
