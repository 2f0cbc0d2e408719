"""Who a request speaks for: `Authorization: Bearer <key>`, the scheme in any case or left out, with an API key or the
token of a login; or, to make a first key without a shell on the host, `Basic` with e-mail and password; or the cookie
of a session in a browser (browser_sessions.py), where no such header is sent."""

from __future__ import annotations

from typing import cast

from flask import g, request

from api.apps.browser_sessions import CSRF_HEADER, require_own_page, session_token
from api.apps.services import services
from api.db.services.account_service import KEY_PREFIX, Caller
from common.errors import Unauthorized


def require_caller() -> None:
    """A blueprint's before_request. Raises Unauthorized; a preflight needs no key."""
    if request.method == "OPTIONS":
        return
    basic = request.authorization
    if basic is not None and basic.type == "basic":
        g.caller = services().accounts.sign_in(basic.username or "", basic.password or "")
        return
    key = given_key()
    if key:
        sign_in_by(key)
        return
    token = session_token()
    if not token:
        raise Unauthorized("no API key was given")
    g.caller = services().sessions.caller_of(token)
    require_own_page(token, request.headers.get(CSRF_HEADER, ""))


def sign_in_by(key: str) -> None:
    """Raises Unauthorized, and leaves a note of it for the count of wrong keys: a WebSocket is told by no status."""
    known = services().accounts if key.startswith(KEY_PREFIX) else services().sessions
    try:
        g.caller = known.caller_of(key)
    except Unauthorized:
        g.is_refused = True
        raise


def given_key() -> str:
    """The key or token of the request; "" where there is none."""
    scheme, _, key = request.headers.get("Authorization", "").strip().partition(" ")
    key = key.strip() if key and scheme.lower() == "bearer" else scheme
    return "" if key.lower() == "bearer" else key


def caller() -> Caller:
    return cast(Caller, g.caller)
