"""Signing in with e-mail and password, and out. How often one may be wrong is limits.py's."""

from __future__ import annotations

from http import HTTPStatus

from flask import Response, redirect, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from api.apps import browser_sessions
from api.apps.browser_sessions import CSRF_FIELD, require_own_origin, require_own_page, session_token
from api.apps.limits import RateLimited
from api.apps.requests import text
from api.apps.services import services
from api.apps.ui.page import open_page_blueprint, own_path
from api.apps.ui.rendering import render_page
from common.errors import Unauthorized

bp = open_page_blueprint("ui_sign_in")

_MAX_CHARS = 1024


@bp.get("/sign-in")
@bp.post("/sign-in")
def sign_in() -> AnyResponse:
    if request.method == "GET":
        is_in = _is_signed_in()
        return redirect(own_path(request.args.get("next", ""))) if is_in else _form(request.args.get("next", ""))
    require_own_origin()
    wanted = request.form.get("next", "")
    email, password = _given("email"), _given("password")
    if not email.strip() or not password:
        return _form(wanted, email, "Give your e-mail and your password.", HTTPStatus.UNPROCESSABLE_ENTITY)
    try:
        person = services().accounts.sign_in(email, password)
    except Unauthorized:
        # The same words whoever it is: who has an account here is nobody's business.
        return _form(wanted, email, "E-mail and password do not match.", HTTPStatus.UNAUTHORIZED)
    response = redirect(own_path(wanted), HTTPStatus.SEE_OTHER)
    browser_sessions.begin(response, services().sessions.begin(person))
    return response


@bp.post("/sign-out")
def sign_out() -> AnyResponse:
    token = session_token()
    if token:
        require_own_page(token, request.form.get(CSRF_FIELD, ""))
        services().sessions.end(token)
    response = redirect(url_for("ui_sign_in.sign_in", left=1), HTTPStatus.SEE_OTHER)
    browser_sessions.end(response)
    return response


@bp.errorhandler(RateLimited)
def _too_often(error: RateLimited) -> Response:
    wait = f"Too many wrong passwords. Wait {error.headers['Retry-After']} seconds, then try again."
    response = _form(request.form.get("next", ""), _given("email"), wait, HTTPStatus.TOO_MANY_REQUESTS)
    response.headers.update(error.headers)
    return response


def _form(wanted: str, email: str = "", error: str = "", status: HTTPStatus = HTTPStatus.OK) -> Response:
    path = own_path(wanted)
    left = "left" in request.args and not error
    response = render_page("sign_in.html", next="" if path == "/" else path, email=email, error=error, left=left)
    response.status_code = status
    return response


def _is_signed_in() -> bool:
    token = session_token()
    try:
        return bool(token) and services().sessions.caller_of(token) is not None
    except Unauthorized:
        return False


def _given(key: str) -> str:
    return text(request.form.get(key, "")[:_MAX_CHARS])
