"""The Idempotency-Key of a request: with one, its effect happens once, and a repetition gets the first answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import request

from api.apps.auth import caller
from api.apps.services import services
from api.db.services.idempotency_service import RequestKey

_HEADER = "Idempotency-Key"


def once(route: str, body: str, effect: Callable[[], Any]) -> Any:
    """The answer of `effect`, which must be JSON. `body` is what decides what the request does."""
    key = request.headers.get(_HEADER, "").strip()
    if not key:
        return effect()
    return services().answers.once(RequestKey(caller().tenant_id, route, key, body), effect)
