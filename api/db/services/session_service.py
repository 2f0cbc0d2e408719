"""Those who signed in with a password: a token of their own, which ends by signing out or after some weeks. Only its
SHA-256 is kept. API keys are account_service's."""

from __future__ import annotations

import hashlib
import secrets

from api.db.database import Rows
from api.db.models import User
from api.db.services.account_service import Caller
from common.errors import Unauthorized

_KEPT_MS = 30 * 24 * 3_600_000


class SessionService:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def begin(self, caller: Caller) -> str:
        """A new token. This is the only moment it can be read."""
        token = secrets.token_urlsafe(32)
        self._rows.write(self._begin, _digest(token), caller.user_id)
        return token

    def caller_of(self, token: str) -> Caller:
        """Raises Unauthorized for a token that is unknown, too old, or whose user is disabled."""
        found = self._rows.read(
            self._rows.rows,
            f"SELECT user_id FROM login_session WHERE token_hash = ? AND create_ms > {self._rows.now_ms} - {_KEPT_MS}",
            (_digest(token),),
        )
        user = self._rows.read(User.get_or_none, User.id == found[0][0]) if found else None
        if user is None or not user.is_active:
            raise Unauthorized("API key is invalid")
        return Caller(user.id, user.id, bool(user.is_superuser))

    def end(self, token: str) -> None:
        self._rows.write(self._rows.execute, "DELETE FROM login_session WHERE token_hash = ?", (_digest(token),))

    def _begin(self, digest: str, user_id: str) -> None:
        self._rows.execute(f"DELETE FROM login_session WHERE create_ms <= {self._rows.now_ms} - {_KEPT_MS}")
        self._rows.execute(
            f"REPLACE INTO login_session (token_hash, user_id, create_ms) VALUES (?, ?, {self._rows.now_ms})",
            (digest, user_id),
        )


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
