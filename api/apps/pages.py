"""What is neither the REST API nor a page for people: the checks that an orchestrator asks for."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify

from api.apps.health import check_parts
from api.apps.services import services

bp = Blueprint("pages", __name__)


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
