"""Webhooks for tests: made, their log, documents that end one way or another, and a sender that takes single turns."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable
from typing import Any

from api.db.database import Rows
from api.db.services.role_service import RoleService
from api.db.services.task_requests import Fail
from api.db.services.webhook_deliveries import LoggedDelivery, WebhookDeliveries
from api.db.services.webhook_outcomes import Outcome
from api.db.services.webhook_service import NewWebhook, WebhookService
from common.settings import WebhookSettings
from rag.svr.webhook_sender import SenderConfig, WebhookSender
from tests.servers.webhook_receiver import Received, WebhookReceiver
from tests.waiting import wait_until
from tests.world import World

SECRET = "correct-horse-battery"


def sender_of(rows: Rows, holder: str = "e1:boot", **settings: Any) -> WebhookSender:
    chosen = {"allow_private": True, "timeout_s": 5.0, "retries_s": "0.01, 0.01"} | settings
    return WebhookSender(SenderConfig(WebhookSettings(**chosen), holder), RoleService(rows), WebhookDeliveries(rows))


def hook(world: World, url: str, *events: Outcome, dataset_id: str = "") -> str:
    new = NewWebhook(url, events or tuple(Outcome), dataset_id, SECRET)
    return WebhookService(world.rows).create(world.tenant_id, new)[0].id


def done(world: World) -> str:
    doc_id, ranges = world.started(2)
    for task in world.claim(*ranges):
        world.finish(task)
    world.flip(doc_id)
    return doc_id


def failed(world: World) -> str:
    doc_id, ranges = world.started(1)
    (task,) = world.claim(*ranges)
    world.tasks.apply([Fail(task.held, "bad_page", "page 2 is bad")])
    world.flip(doc_id)
    return doc_id


def log(world: World, webhook_id: str) -> list[LoggedDelivery]:
    return WebhookDeliveries(world.rows).page(webhook_id, 1, 100)[1]


def told(receiver: WebhookReceiver) -> list[tuple[str, str]]:
    return [(one.body["document_id"], one.body["event"]) for one in receiver.received]


def send_until(sender: WebhookSender, condition: Callable[[], object]) -> None:
    def turn() -> bool:
        sender.run_once()
        return bool(condition())

    wait_until(turn, what="the delivery")


def is_signed(received: Received, secret: str) -> bool:
    """As docs/webhooks.md tells receivers to check it."""
    parts = dict(part.split("=", 1) for part in received.headers["x-pagemill-signature"].split(","))
    made = hmac.new(secret.encode(), parts["t"].encode() + b"." + received.content, hashlib.sha256).hexdigest()
    return hmac.compare_digest(made, parts["v1"]) and abs(time.time() - int(parts["t"])) < 300
