"""Deliveries: one outcome for one webhook, under an id that stays the same however often it is sent. Which are due,
what became of them, and the log that their tenant sees."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any

from api.db.database import Rows
from api.db.services.task_sql import marks
from api.db.services.webhook_outcomes import Outcome
from common.errors import NotFound

_SLICE = 500
_MAX_OFFSET = 1_000_000
_TOLD = (
    "d.id, d.webhook_id, d.doc_id, d.kb_id, d.generation, d.outcome, d.name, d.chunk_count, d.token_count,"
    " d.error_code, d.error_message, d.create_ms"
)
_LOGGED = "d.state, d.attempts, d.next_ms, d.last_ms, d.status, d.problem"


class DeliveryState(IntEnum):
    WAITING = 0
    DELIVERED = 1
    GIVEN_UP = 2


@dataclass(frozen=True)
class Told:
    """What a delivery says. Kept with it: the document may be parsed again, or deleted, before it is sent."""

    id: str
    webhook_id: str
    document_id: str
    dataset_id: str
    generation: int
    outcome: Outcome
    name: str
    chunk_count: int
    token_count: int
    error_code: str
    error_message: str
    create_ms: int

    def body(self) -> bytes:
        """The same bytes at every try."""
        failed = self.outcome is Outcome.FAILED
        said = {
            "delivery_id": self.id,
            "event": str(self.outcome),
            "occurred_at": rfc3339(self.create_ms),
            "job_id": self.document_id,
            "document_id": self.document_id,
            "dataset_id": self.dataset_id,
            "name": self.name,
            "generation": self.generation,
            "chunk_count": self.chunk_count,
            "token_count": self.token_count,
            "error": {"code": self.error_code, "message": self.error_message} if failed else None,
            "links": {"job": f"/api/v1/jobs/{self.document_id}"},
        }
        return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()


@dataclass(frozen=True)
class DueDelivery:
    """`attempts` are those before."""

    told: Told
    attempts: int
    url: str
    secret: str


@dataclass(frozen=True)
class LoggedDelivery:
    """`status` is of the last try's answer, 0 where there was none; `next_ms` is 0 when no more tries follow."""

    told: Told
    state: DeliveryState
    attempts: int
    next_ms: int
    last_ms: int
    status: int
    problem: str


class WebhookDeliveries:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def due(self, most_each: int) -> list[deque[DueDelivery]]:
        """A line for each webhook, the oldest first: one that does not answer holds up its own only."""
        return self._rows.read(self._due, most_each)

    def mark_delivered(self, due: DueDelivery, status: int) -> None:
        """It is never due again."""
        self._rows.write(
            self._rows.execute,
            f"UPDATE webhook_delivery SET state = {DeliveryState.DELIVERED:d}, attempts = attempts + 1, next_ms = 0,"
            f" last_ms = {self._rows.now_ms}, status = ?, problem = ''"
            f" WHERE id = ? AND state = {DeliveryState.WAITING:d}",
            (status, due.told.id),
        )

    def mark_failed(self, due: DueDelivery, status: int, problem: str, wait_ms: int | None) -> None:
        """Due again after `wait_ms`, or given up where that is None. Counted once, whoever else has tried as well."""
        state = DeliveryState.GIVEN_UP if wait_ms is None else DeliveryState.WAITING
        next_ms = "0" if wait_ms is None else f"{self._rows.now_ms} + {int(wait_ms)}"
        self._rows.write(
            self._rows.execute,
            f"UPDATE webhook_delivery SET state = {state:d}, attempts = attempts + 1, next_ms = {next_ms},"
            f" last_ms = {self._rows.now_ms}, status = ?, problem = ?"
            f" WHERE id = ? AND attempts = ? AND state = {DeliveryState.WAITING:d}",
            (status, problem, due.told.id, due.attempts),
        )

    def page(self, webhook_id: str, page: int, page_size: int) -> tuple[int, list[LoggedDelivery]]:
        """How many there are, and a page of them, the newest first."""
        return self._rows.read(self._page, webhook_id, page, page_size)

    def redeliver(self, webhook_id: str, delivery_id: str) -> LoggedDelivery:
        """Make it due now, with all its tries before it, whatever became of it. Raises NotFound."""
        self._rows.write(
            self._rows.execute,
            f"UPDATE webhook_delivery SET state = {DeliveryState.WAITING:d}, attempts = 0,"
            f" next_ms = {self._rows.now_ms} WHERE id = ? AND webhook_id = ?",
            (delivery_id, webhook_id),
        )
        found = self._rows.read(self._log, "d.webhook_id = ? AND d.id = ?", webhook_id, delivery_id)
        if not found:
            raise NotFound(f"there is no delivery {delivery_id}")
        return found[0]

    def remove_old(self, keep_ms: int) -> int:
        """A slice of those older than that which nobody waits for any more. Returns how many."""
        return self._rows.write(self._remove_old, keep_ms)

    def _due(self, most_each: int) -> list[deque[DueDelivery]]:
        is_due = f"d.state = {DeliveryState.WAITING:d} AND d.next_ms <= {self._rows.now_ms}"
        webhooks = self._rows.rows(
            "SELECT w.id, w.url, w.secret FROM webhook w JOIN (SELECT d.webhook_id AS id, MIN(d.next_ms) AS since_ms"
            f" FROM webhook_delivery d WHERE {is_due} GROUP BY d.webhook_id) AS o ON o.id = w.id ORDER BY o.since_ms"
        )
        lines = []
        for webhook_id, url, secret in webhooks:
            found = self._rows.rows(
                f"SELECT d.attempts, {_TOLD} FROM webhook_delivery d WHERE d.webhook_id = ? AND {is_due}"
                f" ORDER BY d.next_ms, d.id LIMIT {int(most_each)}",
                (webhook_id,),
            )
            lines.append(deque(DueDelivery(_told(row[1:]), row[0], url, secret) for row in found))
        return [line for line in lines if line]

    def _page(self, webhook_id: str, page: int, page_size: int) -> tuple[int, list[LoggedDelivery]]:
        ((total,),) = self._rows.rows("SELECT COUNT(*) FROM webhook_delivery WHERE webhook_id = ?", (webhook_id,))
        offset = min((page - 1) * page_size, _MAX_OFFSET)
        part = f"d.webhook_id = ? ORDER BY d.create_ms DESC, d.id LIMIT {page_size:d} OFFSET {offset:d}"
        return int(total), self._log(part, webhook_id)

    def _log(self, which: str, *params: str) -> list[LoggedDelivery]:
        found = self._rows.rows(f"SELECT {_LOGGED}, {_TOLD} FROM webhook_delivery d WHERE {which}", params)
        return [LoggedDelivery(_told(row[6:]), DeliveryState(row[0]), *row[1:6]) for row in found]

    def _remove_old(self, keep_ms: int) -> int:
        """One that waits goes only where its webhook has gone."""
        found = self._rows.rows(
            f"SELECT d.id FROM webhook_delivery d WHERE d.create_ms < {self._rows.now_ms} - ?"
            f" AND (d.state != {DeliveryState.WAITING:d} OR NOT EXISTS (SELECT 1 FROM webhook w"
            f" WHERE w.id = d.webhook_id)) LIMIT {_SLICE}",
            (keep_ms,),
        )
        ids = [row[0] for row in found]
        if ids:
            self._rows.execute(f"DELETE FROM webhook_delivery WHERE id IN ({marks(ids)})", ids)
        return len(ids)


def rfc3339(epoch_ms: int) -> str:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _told(row: tuple[Any, ...]) -> Told:
    delivery_id, webhook_id, document_id, dataset_id, generation, outcome, *said = row
    return Told(delivery_id, webhook_id, document_id, dataset_id, generation, Outcome(outcome), *said)
