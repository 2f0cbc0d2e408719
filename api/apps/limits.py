"""How often callers may ask: each API key or login so many requests a minute, each address and e-mail so many wrong
keys and passwords. A gate before all routes, which know nothing of it; in this process only, and never in the rows.

Keys that were right lately pass whatever else comes from their address: nobody can lock out a working client."""

from __future__ import annotations

import hashlib
import ipaddress
import math
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

from flask import Flask, Response, current_app, g, request
from werkzeug.exceptions import HTTPException

from api.apps.auth import given_key
from api.apps.browser_sessions import session_token
from api.apps.envelope import ApiError
from api.apps.problems import Problem
from api.apps.requests import payload
from api.apps.token_buckets import Clock, TokenBuckets
from common.settings import ServerSettings

KEY = "pagemill.limits"
_LOGINS = ("sign_in.login", "older_open.login")
_LOGIN_FORM = "ui_sign_in.sign_in"
_ASSETS = ("static", "ui_assets.asset")
# Whose routes take a key as the parameter `token`.
_KEY_IN_QUERY = ("job_events", "job_sockets")


class RateLimited(Problem):
    """As a problem where the route speaks so; everywhere else in RAGFlow's envelope."""

    def __init__(self, code: str, detail: str, wait_s: float) -> None:
        headers = {"Retry-After": str(math.ceil(round(wait_s, 3)))}
        super().__init__(HTTPStatus.TOO_MANY_REQUESTS, code, detail, headers=headers)


@dataclass(frozen=True)
class Shown:
    """What a request shows of its caller, as digests: a key, or the e-mail of a password. A browser whose
    session has ended guesses at nothing, and its failure is not counted."""

    key: str = ""
    email: str = ""
    is_session: bool = False

    @property
    def name(self) -> str:
        return self.key or self.email


class Limits:
    def __init__(self, server: ServerSettings, clock: Clock = time.monotonic) -> None:
        failures = server.failed_logins_per_minute
        self.per_minute = server.requests_per_minute
        self.requests = TokenBuckets(server.requests_per_minute, server.request_burst, clock)
        self.failed_by_address = TokenBuckets(failures, failures, clock)
        self.failed_by_email = TokenBuckets(failures, failures, clock)

    def require_room(self, shown: Shown, address: str) -> None:
        """Raises RateLimited; before any row is read, and before a password is looked at."""
        if self.requests.knows(shown.name):
            wait_s = self.requests.take(shown.name)
            if wait_s:
                detail = f"more than {self.per_minute} requests a minute came from this caller: come back later"
                raise RateLimited("rate_limited", detail, wait_s)
            if shown.key:
                return
        if shown.is_session:
            return
        wait_s = max(self.failed_by_address.wait_s(address), self.failed_by_email.wait_s(shown.email))
        if wait_s:
            detail = "too many wrong keys or passwords came from this address or for this e-mail: come back later"
            raise RateLimited("too_many_failed_logins", detail, wait_s)

    def passed(self, shown: Shown) -> None:
        """It was right: from now on its requests are counted."""
        if not self.requests.knows(shown.name):
            self.requests.take(shown.name)

    def failed(self, shown: Shown, address: str) -> None:
        if not shown.is_session:
            self.failed_by_address.owe(address)
        if shown.key:
            self.requests.forget(shown.key)
        else:
            self.failed_by_email.owe(shown.email)


def register(app: Flask, server: ServerSettings) -> None:
    app.extensions[KEY] = Limits(server)
    app.before_request(_enter)
    app.after_request(_leave)


def require_room_for(email: str) -> None:
    """For a password that is asked within a session. Raises RateLimited before it is looked at."""
    _limits().require_room(Shown(email=_email_digest(email)), _address())


def wrong_password_of(email: str) -> None:
    _limits().failed(Shown(email=_email_digest(email)), _address())


def _limits() -> Limits:
    return cast(Limits, current_app.extensions[KEY])


def _enter() -> None:
    shown = None if request.method == "OPTIONS" else _shown()
    if shown is None:
        return
    g.shown = shown
    g.is_known = bool(shown.key) and _limits().requests.knows(shown.key)
    _limits().require_room(shown, _address())


def _leave(response: Response) -> Response:
    shown = g.get("shown")
    if shown is not None:
        if _has_failed(response):
            _limits().failed(shown, _address())
        elif "caller" in g:
            _limits().passed(shown)
    return response


def _has_failed(response: Response) -> bool:
    if request.endpoint in _LOGINS:
        return response.status_code == HTTPStatus.OK and "Authorization" not in response.headers
    return response.status_code == HTTPStatus.UNAUTHORIZED or "is_refused" in g


def _shown() -> Shown | None:
    """None for those who show nothing, which no route lets in that needs a caller."""
    if request.endpoint in _LOGINS or (request.endpoint == _LOGIN_FORM and request.method == "POST"):
        email = _login_email()
        return None if email is None else Shown(email=_email_digest(email))
    basic = request.authorization
    if basic is not None and basic.type == "basic":
        return Shown(email=_email_digest(basic.username or ""))
    key = given_key()
    if not key and request.blueprint in _KEY_IN_QUERY:
        key = request.args.get("token", "")
    if key:
        return Shown(key=_digest(key))
    token = session_token()
    return Shown(key=_digest(token), is_session=True) if token and request.endpoint not in _ASSETS else None


def _login_email() -> str | None:
    try:
        given = payload().get("email")
    except (ApiError, HTTPException):
        return None  # the route refuses such a body in its own words
    return given if isinstance(given, str) else None


def _email_digest(email: str) -> str:
    return _digest(email.strip().lower())


def _digest(text: str) -> str:
    """Of one length whatever is sent, and no secret."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _address() -> str:
    """Of IPv6 the first half: the other is the caller's to choose."""
    given = request.remote_addr or ""
    try:
        address = ipaddress.ip_address(given)
    except ValueError:
        return given
    if isinstance(address, ipaddress.IPv4Address):
        return given
    return str(address.ipv4_mapped) if address.ipv4_mapped else f"{int(address) >> 64:x}::/64"
