"""The person's own account: name, password and API keys. Keys are made and revoked by the REST API."""

from __future__ import annotations

from http import HTTPStatus

from flask import Response, g, redirect, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from api.apps import browser_sessions, limits
from api.apps.auth import caller
from api.apps.requests import text
from api.apps.services import services
from api.apps.ui.page import page_blueprint
from api.apps.ui.rendering import render_page
from common.errors import Unauthorized

bp = page_blueprint("ui_account", "account")

_LEAST_PASSWORD = 8
_MAX_PASSWORD = 1024
_MAX_NAME = 128


@bp.get("/account")
def show() -> Response:
    return _page()


@bp.post("/account/name")
def rename() -> AnyResponse:
    name = text(request.form.get("nickname", "")).strip()
    if not name or len(name) > _MAX_NAME:
        return _page(errors={"nickname": f"A name has 1 to {_MAX_NAME} characters."})
    services().users.rename(caller().user_id, name)
    return redirect(url_for("ui_account.show", done="name"), HTTPStatus.SEE_OTHER)


@bp.post("/account/password")
def change_password() -> AnyResponse:
    """All sessions end, and this browser gets a new one."""
    old, new = (text(request.form.get(key, "")[:_MAX_PASSWORD]) for key in ("old_password", "new_password"))
    if len(new) < _LEAST_PASSWORD:
        return _page(errors={"new_password": f"It needs at least {_LEAST_PASSWORD} characters."})
    limits.require_room_for(g.person.email)
    try:
        services().accounts.change_password(caller(), old, new)
    except Unauthorized:
        limits.wrong_password_of(g.person.email)
        return _page(errors={"old_password": "This is not your password."})
    response = redirect(url_for("ui_account.show", done="password"), HTTPStatus.SEE_OTHER)
    browser_sessions.begin(response, services().sessions.begin(caller()))
    return response


def _page(errors: dict[str, str] | None = None) -> Response:
    response = render_page(
        "account.html",
        keys=services().accounts.tokens(caller()),
        errors=errors or {},
        done=request.args.get("done", ""),
        least_password=_LEAST_PASSWORD,
    )
    if errors:
        response.status_code = HTTPStatus.UNPROCESSABLE_ENTITY
    return response
