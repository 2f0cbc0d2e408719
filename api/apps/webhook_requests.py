"""What callers of the webhook routes send, checked: each refusal names the field."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Annotated, Any, Literal

from flask import request
from pydantic import Field, StringConstraints, ValidationError

from api.apps.parser_config import Strict
from api.apps.problems import FieldError, Problem, wrong_fields
from api.db.services.webhook_outcomes import Outcome
from api.db.services.webhook_service import NewWebhook
from common.errors import InvalidInput
from rag.utils.public_address import require_public_literal, target_of

_MAX_BODY_BYTES = 64 * 1024
_Event = Literal["done", "failed", "cancelled"]
# Printable ASCII: it goes into receivers' settings. Fewer characters could be guessed.
_Secret = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{16,255}$")]


class WebhookRequest(Strict):
    url: str
    secret: _Secret | None = None
    events: Annotated[list[_Event], Field(min_length=1, max_length=3)] | None = None
    dataset_id: Annotated[str, Field(max_length=64)] | None = None


def new_webhook(*, allow_private: bool) -> NewWebhook:
    """Raises Problem that names every field that is wrong."""
    try:
        given = WebhookRequest.model_validate(_body())
    except ValidationError as exc:
        fields = [FieldError(".".join(map(str, error["loc"])) or "body", error["msg"]) for error in exc.errors()]
        raise wrong_fields(*fields) from exc
    try:
        target = target_of(given.url)
        if not allow_private:
            require_public_literal(target)
    except InvalidInput as exc:
        raise wrong_fields(FieldError("url", exc.public_message)) from exc
    events = frozenset(map(Outcome, given.events or Outcome))
    return NewWebhook(given.url, events, given.dataset_id or "", given.secret or "")


def _body() -> Any:
    if not request.is_json:
        detail = f"expected application/json, got {request.mimetype or 'no content type'}"
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
    request.max_content_length = _MAX_BODY_BYTES
    try:
        return json.loads(request.get_data())
    except (ValueError, RecursionError) as exc:
        raise Problem(HTTPStatus.BAD_REQUEST, "bad_request", "the body is no JSON, or nested too deep") from exc
