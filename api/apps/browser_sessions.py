"""A person's session in a browser: the cookie that holds it, and the proof that a request comes from our own pages.

The cookie goes with every request, also one that another site makes the browser send. So an unsafe request counts only
with the session's CSRF token, which other sites can't read, and from our own origin. Whose session it is, is auth's."""

from __future__ import annotations

import hashlib
import hmac
from http import HTTPStatus
from urllib.parse import urlsplit

from flask import request
from werkzeug.wrappers import Response

from api.apps.problems import Problem

COOKIE = "pagemill_session"
CSRF_HEADER = "X-CSRF-Token"
CSRF_FIELD = "csrf_token"
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_KEPT_S = 30 * 24 * 3600
_MAX_TOKEN_CHARS = 200


class Forged(Problem):
    """A request with a session's cookie that our own pages have not sent."""

    def __init__(self, detail: str) -> None:
        super().__init__(HTTPStatus.FORBIDDEN, "forged_request", detail)


def session_token() -> str:
    """ "" where there is none. A WebSocket shows a key: its handshake can carry no CSRF token."""
    if request.headers.get("Upgrade", "").lower() == "websocket":
        return ""
    return request.cookies.get(COOKIE, "")[:_MAX_TOKEN_CHARS]


def csrf_token(token: str) -> str:
    """The session's own, computed: nothing more has to be stored. The session can't be told from it."""
    return hmac.new(token.encode("utf-8", "surrogateescape"), b"pagemill csrf", hashlib.sha256).hexdigest()


def require_own_page(token: str, given: str) -> None:
    """Raises Forged for an unsafe request of another origin, or without the session's CSRF token."""
    if request.method in _SAFE_METHODS:
        return
    require_own_origin()
    if not hmac.compare_digest(csrf_token(token).encode(), given.encode("utf-8", "replace")):
        raise Forged(f"the request lacks this session's {CSRF_HEADER}: load the page again")


def require_own_origin() -> None:
    """By what browsers say of themselves; a client that says nothing is no browser, and no victim of another site."""
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    origin = request.headers.get("Origin")
    if site not in ("same-origin", "none") or (origin is not None and _host_of(origin) != request.host.lower()):
        raise Forged("the request comes from another site")


def _host_of(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def begin(response: Response, token: str) -> None:
    response.set_cookie(
        COOKIE, token, max_age=_KEPT_S, path="/", httponly=True, samesite="Lax", secure=request.is_secure
    )


def end(response: Response) -> None:
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="Lax", secure=request.is_secure)
