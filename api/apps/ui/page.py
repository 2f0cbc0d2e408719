"""What all pages share: the blueprint that lets in only people who signed in, and leads others to the sign-in page.

A page is for reading; what is changed goes through the REST API, or through a form that shows the CSRF token."""

from __future__ import annotations

from flask import Blueprint, g, redirect, request, url_for
from werkzeug.exceptions import Forbidden
from werkzeug.wrappers import Response

from api.apps.browser_sessions import CSRF_FIELD, require_own_page, session_token
from api.apps.services import services
from api.apps.ui import error_pages
from common.errors import Unauthorized


def page_blueprint(name: str, section: str = "", *, for_admins: bool = False) -> Blueprint:
    """`section` is the key of the one in the head that its pages belong to."""
    bp = Blueprint(name, __name__)

    @bp.before_request
    def enter() -> Response | None:
        g.section = section
        return _require_person(for_admins=for_admins)

    error_pages.register_in(bp)
    return bp


def open_page_blueprint(name: str) -> Blueprint:
    """Of pages that are there for everybody."""
    bp = Blueprint(name, __name__)
    error_pages.register_in(bp)
    return bp


def own_path(given: str) -> str:
    """Where to go on after signing in: a path of this server, else the first page. No other address gets through."""
    is_path = given.startswith("/") and not given.startswith("//")
    return given if is_path and given.isascii() and given.isprintable() and "\\" not in given else "/"


def _require_person(*, for_admins: bool) -> Response | None:
    """Strangers are led to the sign-in page and back. Raises Forged for a form that is not ours."""
    token = session_token()
    try:
        if not token:
            raise Unauthorized("nobody is signed in")
        g.caller = services().sessions.caller_of(token)
        g.person = services().users.get(g.caller.user_id)
    except Unauthorized:
        wanted = request.full_path.rstrip("?") if request.method == "GET" else "/"
        return redirect(url_for("ui_sign_in.sign_in", next=None if wanted == "/" else wanted))
    if request.method == "POST":
        require_own_page(token, request.form.get(CSRF_FIELD, ""))
    if for_admins and not g.caller.is_superuser:
        raise Forbidden("This page is for administrators.")
    return None
