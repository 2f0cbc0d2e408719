"""The description of the API: as a document at /api/v1/openapi.json, and as a page at /api/docs."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

from flask import Blueprint, Response, current_app, g, jsonify

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


def api_document() -> dict[str, Any]:
    """Made once: the routes and the settings do not change while the server runs."""
    made = current_app.extensions.get(_KEY)
    if made is None:
        made = build(current_app, services().settings.server, services().version)
        current_app.extensions[_KEY] = made
    return cast(dict[str, Any], made)


@bp.get("/openapi.json")
@describe("System", "This document", surface=Surface.BARE, answer=dict[str, Any])
def document() -> Response:
    response = jsonify(api_document())
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
    described = api_document()
    return render_page(
        "api_docs.html",
        about=described["info"]["description"],
        groups=outline(described),
        limits=described["x-limits"],
        schemes=described["components"]["securitySchemes"],
    )
