"""What callers of the webhook routes send, checked: each refusal names the field."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from api.apps.parser_config import Strict
from api.apps.problem_bodies import problem_body
from api.apps.problems import FieldError, wrong_fields
from api.db.services.webhook_outcomes import Outcome
from api.db.services.webhook_service import NewWebhook
from common.errors import InvalidInput
from rag.utils.public_address import require_public_literal, target_of

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
    given = problem_body(WebhookRequest)
    try:
        target = target_of(given.url)
        if not allow_private:
            require_public_literal(target)
    except InvalidInput as exc:
        raise wrong_fields(FieldError("url", exc.public_message)) from exc
    events = frozenset(map(Outcome, given.events or Outcome))
    return NewWebhook(given.url, events, given.dataset_id or "", given.secret or "")
