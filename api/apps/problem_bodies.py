"""JSON bodies of the routes that answer with problems: read strictly, and each field that is wrong is named."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, TypeVar

from flask import request
from pydantic import BaseModel, ValidationError

from api.apps.openapi.operation import current_operation
from api.apps.problems import FieldError, Problem, wrong_fields
from api.apps.wrong_fields import wrong_fields_of

M = TypeVar("M", bound=BaseModel)
_MAX_BYTES = 64 * 1024


def problem_body(model: type[M]) -> M:
    """The body as `model`, which the route declares. Raises Problem: 400, 415, or 422 that names every wrong field."""
    if current_operation().body is not model:
        raise LookupError(f"{request.endpoint} uses {model.__name__}, and declares another")
    try:
        return model.model_validate(_payload())
    except ValidationError as exc:
        fields = [FieldError(wrong.place or "body", wrong.message) for wrong in wrong_fields_of(exc)]
        raise wrong_fields(*fields) from exc


def _payload() -> Any:
    if not request.is_json:
        detail = f"expected application/json, got {request.mimetype or 'no content type'}"
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
    request.max_content_length = _MAX_BYTES
    try:
        return json.loads(request.get_data())
    except (ValueError, RecursionError) as exc:
        raise Problem(HTTPStatus.BAD_REQUEST, "bad_request", "the body is no JSON, or nested too deep") from exc
