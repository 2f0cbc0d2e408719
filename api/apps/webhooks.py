"""Webhooks: where the outcomes of jobs are told to, and the log of what was. Plain HTTP statuses; what is refused is a
problem (problems.py). The sending is an executor's (rag/svr/webhook_sender.py)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from flask import Blueprint, Response, jsonify

from api.apps import problems
from api.apps.auth import caller, require_caller
from api.apps.openapi.operation import Surface, describe
from api.apps.problem_pages import PageQuery, page_and_size
from api.apps.problems import FieldError, wrong_fields
from api.apps.services import services
from api.apps.shapes.jobs import Delivery, DeliveryPage, NewWebhook, Webhooks
from api.apps.shapes.jobs import Webhook as WebhookShape
from api.apps.webhook_requests import WebhookRequest, new_webhook
from api.db.services.webhook_deliveries import DeliveryState, LoggedDelivery, rfc3339
from api.db.services.webhook_service import Webhook

bp = Blueprint("job_webhooks", __name__)
bp.before_request(require_caller)
problems.register(bp)

_TAG = "Webhooks"
_PROBLEM = Surface.PROBLEM


@bp.post("/webhooks")
@describe(
    _TAG,
    "Make a webhook",
    surface=_PROBLEM,
    body=WebhookRequest,
    answer=NewWebhook,
    status=201,
    statuses=(404, 409),
    example={"url": "https://example.com/pagemill", "events": ["done", "failed"]},
)
def create() -> tuple[Response, int, dict[str, str]]:
    new = new_webhook(allow_private=services().settings.webhooks.allow_private)
    if new.dataset_id:
        services().datasets.get(caller().tenant_id, new.dataset_id)
    made, secret = services().webhooks.create(caller().tenant_id, new)
    shown = _webhook_json(made)
    return jsonify(shown | {"secret": secret}), 201, {"Location": shown["links"]["self"]}


@bp.get("/webhooks")
@describe(_TAG, "List webhooks", surface=_PROBLEM, answer=Webhooks)
def list_all() -> Response:
    return jsonify({"webhooks": [_webhook_json(one) for one in services().webhooks.list_all(caller().tenant_id)]})


@bp.get("/webhooks/<webhook_id>")
@describe(_TAG, "Show a webhook", surface=_PROBLEM, answer=WebhookShape)
def get(webhook_id: str) -> Response:
    return jsonify(_webhook_json(services().webhooks.get(caller().tenant_id, webhook_id)))


@bp.delete("/webhooks/<webhook_id>")
@describe(_TAG, "Delete a webhook with its log", surface=_PROBLEM, status=204)
def delete(webhook_id: str) -> tuple[str, int]:
    services().webhooks.delete(caller().tenant_id, webhook_id)
    return "", 204


@bp.get("/webhooks/<webhook_id>/deliveries")
@describe(_TAG, "The log of a webhook", surface=_PROBLEM, query=PageQuery, answer=DeliveryPage, statuses=(400,))
def deliveries(webhook_id: str) -> Response:
    services().webhooks.get(caller().tenant_id, webhook_id)
    wrong: list[FieldError] = []
    page, size = page_and_size(wrong)
    if wrong:
        raise wrong_fields(*wrong, status=HTTPStatus.BAD_REQUEST)
    total, found = services().webhook_deliveries.page(webhook_id, page, size)
    shown = [_delivery_json(one) for one in found]
    return jsonify({"total": total, "page": page, "page_size": size, "deliveries": shown})


@bp.post("/webhooks/<webhook_id>/deliveries/<delivery_id>/redeliver")
@describe(_TAG, "Send a delivery again", surface=_PROBLEM, answer=Delivery, status=202, statuses=(409,))
def redeliver(webhook_id: str, delivery_id: str) -> tuple[Response, int]:
    services().webhooks.get(caller().tenant_id, webhook_id)
    return jsonify(_delivery_json(services().webhook_deliveries.redeliver(webhook_id, delivery_id))), 202


def _webhook_json(webhook: Webhook) -> dict[str, Any]:
    path = f"/api/v1/webhooks/{webhook.id}"
    return {
        "webhook_id": webhook.id,
        "url": webhook.url,
        "dataset_id": webhook.dataset_id or None,
        "events": [str(event) for event in webhook.events],
        "created_at": rfc3339(webhook.create_ms),
        "links": {"self": path, "deliveries": f"{path}/deliveries"},
    }


def _delivery_json(one: LoggedDelivery) -> dict[str, Any]:
    return {
        "delivery_id": one.told.id,
        "event": str(one.told.outcome),
        "job_id": one.told.document_id,
        "document_id": one.told.document_id,
        "dataset_id": one.told.dataset_id,
        "generation": one.told.generation,
        "state": one.state.name.lower(),
        "attempts": one.attempts,
        "status": one.status or None,
        "error": one.problem or None,
        "created_at": rfc3339(one.told.create_ms),
        "last_try_at": rfc3339(one.last_ms) if one.last_ms else None,
        "next_try_at": rfc3339(one.next_ms) if one.state is DeliveryState.WAITING else None,
    }
