"""The description of the API: as a document at /api/v1/openapi.json, and as a page at /api/docs."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from flask import Blueprint, Response, current_app, g

from api.apps.browser_sessions import session_token
from api.apps.openapi.document import build
from api.apps.openapi.operation import Surface, describe
from api.apps.openapi.outline import outline
from api.apps.services import services
from api.apps.ui.page import open_page_blueprint
from api.apps.ui.rendering import render_page
from common.errors import Unauthorized

bp = Blueprint("api_docs", __name__)
page_bp = open_page_blueprint("ui_api_docs")

_KEY = "pagemill.openapi"


class _Description:
    """Made and written once, which takes a second: routes and settings do not change while the server runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: tuple[dict[str, Any], bytes] | None = None

    def get(self) -> tuple[dict[str, Any], bytes]:
        """The document, and the text of it. Who comes while it is made waits for it."""
        with self._lock:
            if self._made is None:
                document = build(current_app, services().settings.server, services().version)
                self._made = document, f"{current_app.json.dumps(document)}\n".encode()
            return self._made


def _description() -> tuple[dict[str, Any], bytes]:
    kept: _Description = current_app.extensions.setdefault(_KEY, _Description())
    return kept.get()


@bp.get("/openapi.json")
@describe("System", "This document", surface=Surface.BARE, answer=dict[str, Any])
def document() -> Response:
    response = Response(_description()[1], mimetype="application/json")
    response.headers["Cache-Control"] = "public, max-age=300"
    return response


@page_bp.before_request
def _greet() -> None:
    """The page is there for everybody; who is signed in finds the way to the others."""
    token = session_token()
    if token:
        with suppress(Unauthorized):
            g.person = services().users.get(services().sessions.caller_of(token).user_id)


@page_bp.get("/api/docs")
def page() -> Response:
    described, _ = _description()
    return render_page(
        "api_docs.html",
        about=described["info"]["description"],
        groups=outline(described),
        limits=described["x-limits"],
        schemes=described["components"]["securitySchemes"],
    )
