"""Requests that carry an Idempotency-Key have their effect once: the key's row, with the answer, commits together with
the effect, and whoever comes second, or at the same time, gets the first one's answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import peewee

from api.db.database import Rows
from common.errors import InvalidInput, KeyReused

_MAX_KEY = 255


@dataclass(frozen=True)
class RequestKey:
    """`body` is whatever decides what the request does, as JSON."""

    tenant_id: str
    route: str
    key: str
    body: str

    def __post_init__(self) -> None:
        if len(self.key) > _MAX_KEY:
            raise InvalidInput(f"an Idempotency-Key has at most {_MAX_KEY} characters")

    @property
    def place(self) -> tuple[str, str, str]:
        return self.tenant_id, self.route, self.key

    @property
    def body_hash(self) -> str:
        return hashlib.sha256(self.body.encode("utf-8", "replace")).hexdigest()


class IdempotencyService:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def once(self, key: RequestKey, effect: Callable[[], Any]) -> Any:
        """The answer of `effect`, or the stored answer of the request that had this key before. `effect` runs inside
        the transaction; where it raises, nothing is kept and the key is free.

        Raises KeyReused where the same key came with another body."""
        try:
            return self._rows.write(self._first, key, effect)
        except peewee.IntegrityError:
            # The other one's row is there now, committed with its effect.
            stored = self._rows.read(self._stored, key)
            if stored is None:
                raise
            return stored[0]

    def _first(self, key: RequestKey, effect: Callable[[], Any]) -> Any:
        stored = self._stored(key)
        if stored is not None:
            return stored[0]
        self._rows.execute(
            "INSERT INTO idempotency (tenant_id, route, idempotency_key, body_hash, answer, create_ms)"
            f" VALUES (?, ?, ?, ?, 'null', {self._rows.now_ms})",
            (*key.place, key.body_hash),
        )
        answer = effect()
        self._rows.execute(
            "UPDATE idempotency SET answer = ? WHERE tenant_id = ? AND route = ? AND idempotency_key = ?",
            (json.dumps(answer), *key.place),
        )
        return answer

    def _stored(self, key: RequestKey) -> tuple[Any] | None:
        found = self._rows.rows(
            "SELECT body_hash, answer FROM idempotency WHERE tenant_id = ? AND route = ? AND idempotency_key = ?",
            key.place,
        )
        if not found:
            return None
        if found[0][0] != key.body_hash:
            raise KeyReused("this Idempotency-Key was used for another request")
        return (json.loads(found[0][1]),)
