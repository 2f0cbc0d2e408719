"""What is sent with a question, read field by field: RAGFlow names each that is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from api.apps.envelope import DATA, UNCAUGHT, ApiError
from api.apps.metadata_requests import MetadataCondition
from api.apps.requests import Loose, PageSize
from api.apps.services import services
from api.db.services.metadata_conditions import Conditions, read_conditions
from common.errors import InvalidInput

_MAX_TOP_K = 2048
_NEEDS_CHAT_MODEL = ("keyword", "use_kg", "toc_enhance", "cross_languages")


class Retrieve(Loose):
    dataset_ids: Annotated[list[str], Field(min_length=1)]
    question: str
    document_ids: Annotated[list[str], Field(description="Only these; `metadata_condition` is then passed over")] = (
        Field(default_factory=list)
    )
    page: Annotated[int, Field(ge=1)] = 1
    page_size: PageSize = 30
    similarity_threshold: Annotated[float, Field(ge=0, le=1)] = 0.2
    vector_similarity_weight: Annotated[float, Field(ge=0, le=1, description="Words have the rest")] = 0.3
    top_k: Annotated[int, Field(ge=1, description=f"Candidates; at most {_MAX_TOP_K} are taken")] = 1024
    highlight: bool = False
    explain: Annotated[bool, Field(description="Tell why each hit is where it is")] = False
    rerank_id: Annotated[str, Field(description="The server's reranker by name")] | None = None
    metadata_condition: MetadataCondition | None = None
    include_metadata: bool = False
    metadata_fields: Annotated[list[str], Field(description="Of the metadata, only these keys")] | None = None
    keyword: Annotated[bool, Field(description="Not available, as it needs a chat model; the next three too")] = False
    use_kg: bool = False
    toc_enhance: bool = False
    cross_languages: list[str] | None = None


def require_supported(body: Mapping[str, Any]) -> None:
    """What would change the answer and can't be done is refused, not passed over."""
    for key in _NEEDS_CHAT_MODEL:
        if body.get(key):
            raise ApiError(DATA, f"`{key}` needs a chat model, and this server has none")


def rerank(body: Mapping[str, Any]) -> bool:
    """Whether the server's reranker is named: by its model, behind which a provider may stand."""
    given = body.get("rerank_id")
    if not given:
        return False
    model = services().retrieval.rerank_model
    if model is None or not isinstance(given, str) or model not in (given, given.rpartition("@")[0]):
        raise ApiError(UNCAUGHT, "`rerank_id` names a model that this server does not have")
    return True


def conditions(body: Mapping[str, Any], key: str) -> Conditions | None:
    try:
        return read_conditions(body.get(key))
    except InvalidInput as exc:
        raise ApiError(DATA, exc.public_message) from exc


def share(body: Mapping[str, Any], key: str, default: float) -> float:
    given = body.get(key)
    try:
        value = default if given is None else float(given)
    except (TypeError, ValueError, OverflowError) as exc:
        raise ApiError(UNCAUGHT, f"`{key}` should be a number") from exc
    if not 0 <= value <= 1:
        raise ApiError(DATA, f"`{key}` should be a number from 0 to 1")
    return value


def top_k(body: Mapping[str, Any]) -> int:
    given = body.get("top_k")
    try:
        value = 1024 if given is None else int(given)
    except (TypeError, ValueError, OverflowError) as exc:
        raise ApiError(UNCAUGHT, "`top_k` should be a whole number") from exc
    if value <= 0:
        raise ApiError(DATA, "`top_k` must be greater than 0")
    return min(value, _MAX_TOP_K)


def flag(body: Mapping[str, Any], key: str) -> bool:
    given = body.get(key)
    if given is None or isinstance(given, bool):
        return bool(given)
    if isinstance(given, str) and given.lower() in ("true", "false"):
        return given.lower() == "true"
    raise ApiError(DATA, f"`{key}` should be a boolean")
