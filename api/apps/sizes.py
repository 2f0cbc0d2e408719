"""How large what callers send may be, as the settings say: for every route alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.apps.envelope import ARGUMENT, ApiError
from api.apps.services import services


def max_json_bytes() -> int:
    return services().settings.server.max_json_mb * 1024 * 1024


def max_page_size() -> int:
    return services().settings.server.max_page_size


def require_sizes(body: Mapping[str, Any]) -> None:
    """Of a JSON body or a form: lists of ids and a question. Raises ApiError 101 that names the field."""
    for key, given in body.items():
        if isinstance(given, list) and (key == "ids" or key.endswith("_ids")):
            require_count(key, given)
    question, most = body.get("question"), services().settings.server.max_question_chars
    if isinstance(question, str) and len(question) > most:
        raise ApiError(ARGUMENT, f"`question` has {len(question)} characters; at most {most} are allowed")


def require_count(key: str, given: list[Any]) -> None:
    most = services().settings.server.max_ids
    if len(given) > most:
        raise ApiError(ARGUMENT, f"`{key}` has {len(given)} entries; at most {most} are allowed in one call")
