"""The server itself: ping, version, health, status, and the caller's API keys."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from flask import Blueprint, Response, jsonify
from pydantic import Field

from api.apps.auth import caller, require_caller
from api.apps.envelope import ARGUMENT, ApiError, expect_full, full
from api.apps.health import check_parts
from api.apps.openapi.operation import Surface, describe
from api.apps.requests import Loose, loose_body, params, text
from api.apps.services import services
from api.apps.shapes.system import Health, Key, ServerStatus
from api.apps.views import date_text
from common.errors import QueueUnavailable

bp = Blueprint("system", __name__)
tokens_bp = Blueprint("tokens", __name__)
tokens_bp.before_request(expect_full)
tokens_bp.before_request(require_caller)

# Parts as RAGFlow's health check names them.
_PART_NAMES = {"database": "db", "queue": "redis", "index": "doc_engine", "store": "storage"}
_STATUS_NAMES = {"database": "database", "queue": "redis", "index": "doc_engine", "store": "storage"}


class KeyName(Loose):
    name: Annotated[str, Field(min_length=1, max_length=128)] = "API key"


@bp.get("/system/ping")
@describe("System", "Whether it answers", surface=Surface.BARE, media=("text/plain",))
def ping() -> Response:
    return Response("pong", mimetype="text/plain")


@bp.get("/system/version")
@describe("System", "The version", surface=Surface.FULL, answer=str)
def version() -> Response:
    return full(services().version)


@bp.get("/system/healthz")
@describe("System", "Whether every part answers", surface=Surface.BARE, answer=Health, statuses=(500,))
def healthz() -> tuple[Response, int]:
    states = check_parts(services().health)
    body: dict[str, Any] = {_PART_NAMES.get(s.part, s.part): "ok" if s.is_ok else "nok" for s in states}
    healthy = all(state.is_ok for state in states)
    body["status"] = "ok" if healthy else "nok"
    body["_meta"] = {
        _PART_NAMES.get(s.part, s.part): {"elapsed": f"{s.elapsed_ms:.1f}", "error": s.error} for s in states
    }
    return jsonify(body), 200 if healthy else 500


@tokens_bp.get("/system/status")
@describe("System", "The parts and the executors", surface=Surface.FULL, answer=ServerStatus)
def status() -> Response:
    states = {_STATUS_NAMES.get(s.part, s.part): s for s in check_parts(services().health)}
    body: dict[str, Any] = {
        name: {"status": "green" if state.is_ok else "red", "elapsed": f"{state.elapsed_ms:.1f}"}
        | ({} if state.is_ok else {"error": state.error})
        for name, state in states.items()
    }
    try:
        body["task_executor_heartbeats"] = dict(services().executor_beats())
    except QueueUnavailable as exc:
        body["task_executor_heartbeats"] = {}
        body["redis"] = {"status": "red", "elapsed": "0.0", "error": exc.public_message}
    return full(body)


@tokens_bp.post("/system/tokens")
@describe(
    "Users",
    "Make an API key",
    note="This is the only moment it can be read.",
    surface=Surface.FULL,
    query=KeyName,
    body=KeyName,
    needs_body=False,
    answer=Key,
)
def create_token() -> Response:
    name = loose_body().get("name") or params().get("name") or "API key"
    if not isinstance(name, str):
        raise ApiError(ARGUMENT, "`name` should be a string")
    key = services().accounts.create_token(caller(), text(name))
    now_ms = int(time.time() * 1000)
    return full(
        {
            "tenant_id": caller().tenant_id,
            "token": key,
            "beta": None,
            "name": text(name),
            "create_time": now_ms,
            "create_date": date_text(now_ms),
            "update_time": None,
            "update_date": None,
        }
    )


@tokens_bp.get("/system/tokens")
@describe("Users", "List the API keys", surface=Surface.FULL, answer=list[Key])
def list_tokens() -> Response:
    """The keys themselves can't be shown again: `token` has their first and last characters."""
    return full(
        [
            {
                "id": token.id,
                "tenant_id": caller().tenant_id,
                "token": token.hint,
                "beta": None,
                "name": token.name,
                "create_time": token.create_ms,
                "create_date": date_text(token.create_ms),
                "update_time": token.last_used_ms or None,
                "update_date": date_text(token.last_used_ms) if token.last_used_ms else None,
            }
            for token in services().accounts.tokens(caller())
        ]
    )


@tokens_bp.delete("/system/tokens/<path:token>")
@describe(
    "Users", "Revoke an API key", note="By itself, its id, hint or name.", surface=Surface.FULL, answer=Literal[True]
)
def revoke_token(token: str) -> Response:
    """True also for a key that is unknown."""
    services().accounts.revoke_token(caller(), token)
    return full(True)
