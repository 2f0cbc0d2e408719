"""The webhooks of a tenant: where outcomes are told, which ones, and the secret that signs them. What is told is in
webhook_outcomes.py, and how it went in webhook_deliveries.py."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from api.db.database import Rows
from api.db.services.task_sql import marks
from api.db.services.webhook_outcomes import Outcome
from common.errors import Conflict, NotFound
from common.ids import new_id

# Every outcome is kept once for each of them.
MOST_WEBHOOKS = 20
SECRET_PREFIX = "whsec_"
_SLICE = 500
_COLUMNS = "id, url, kb_id, on_done, on_failed, on_cancelled, create_ms"


@dataclass(frozen=True)
class NewWebhook:
    """Without a dataset it hears of all; without a secret one is made."""

    url: str
    events: Collection[Outcome]
    dataset_id: str = ""
    secret: str = ""


@dataclass(frozen=True)
class Webhook:
    """As it is shown: without its secret."""

    id: str
    url: str
    dataset_id: str
    events: tuple[Outcome, ...]
    create_ms: int


class WebhookService:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def create(self, tenant_id: str, new: NewWebhook) -> tuple[Webhook, str]:
        """The webhook and its secret: this is the only moment that can be read. Raises Conflict for one too many."""
        webhook_id, secret = new_id(), new.secret or SECRET_PREFIX + secrets.token_urlsafe(32)
        self._rows.write(self._create, tenant_id, webhook_id, new, secret)
        return self.get(tenant_id, webhook_id), secret

    def list_all(self, tenant_id: str) -> list[Webhook]:
        """The oldest first."""
        return self._rows.read(self._find, "tenant_id = ? ORDER BY create_ms, id", tenant_id)

    def get(self, tenant_id: str, webhook_id: str) -> Webhook:
        """Raises NotFound for one that is unknown, deleted, or another tenant's."""
        found = self._rows.read(self._find, "tenant_id = ? AND id = ?", tenant_id, webhook_id)
        if not found:
            raise NotFound(f"there is no webhook {webhook_id}")
        return found[0]

    def delete(self, tenant_id: str, webhook_id: str) -> None:
        """With its deliveries, in slices: renewals wait for the same lock. Raises NotFound."""
        self.get(tenant_id, webhook_id)
        while self._rows.write(self._delete_slice, webhook_id) == _SLICE:
            pass
        self._rows.write(self._rows.execute, "DELETE FROM webhook WHERE id = ?", (webhook_id,))
        self._rows.write(self._delete_slice, webhook_id)

    def _create(self, tenant_id: str, webhook_id: str, new: NewWebhook, secret: str) -> None:
        """The tenant's row is locked: of two that come at once, the second counts the first."""
        self._rows.rows(f"SELECT id FROM tenant WHERE id = ?{self._rows.for_update}", (tenant_id,))
        there = [found.id for found in self._find("tenant_id = ?", tenant_id)]
        if webhook_id in there:
            return  # only the reply to the commit was lost
        if len(there) >= MOST_WEBHOOKS:
            raise Conflict(f"there are {len(there)} webhooks already, and at most {MOST_WEBHOOKS} are allowed")
        self._rows.execute(
            f"INSERT INTO webhook (id, tenant_id, kb_id, url, secret, on_done, on_failed, on_cancelled, create_ms)"
            f" VALUES (?, ?, ?, ?, ?, ?, ?, ?, {self._rows.now_ms})",
            (webhook_id, tenant_id, new.dataset_id, new.url, secret, *(int(one in new.events) for one in Outcome)),
        )

    def _find(self, which: str, *params: str) -> list[Webhook]:
        return [_webhook(row) for row in self._rows.rows(f"SELECT {_COLUMNS} FROM webhook WHERE {which}", params)]

    def _delete_slice(self, webhook_id: str) -> int:
        found = self._rows.rows(f"SELECT id FROM webhook_delivery WHERE webhook_id = ? LIMIT {_SLICE}", (webhook_id,))
        ids = [row[0] for row in found]
        if ids:
            self._rows.execute(f"DELETE FROM webhook_delivery WHERE id IN ({marks(ids)})", ids)
        return len(ids)


def _webhook(row: tuple[Any, ...]) -> Webhook:
    webhook_id, url, dataset_id, *wants, create_ms = row
    events = tuple(outcome for outcome, wanted in zip(Outcome, wants, strict=True) if wanted)
    return Webhook(webhook_id, url, dataset_id, events, create_ms)
