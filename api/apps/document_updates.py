"""A document changed: PUT, PATCH /datasets/{id}/documents/{id}; many switched on or off at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from flask import Blueprint, Response
from pydantic import Field, ValidationError

from api.apps.auth import caller, require_caller
from api.apps.envelope import ARGUMENT, DATA, ApiError, plain
from api.apps.openapi.operation import describe
from api.apps.parser_config import ParserConfig
from api.apps.requests import Loose, file_name, id_list, loose_body, shown, text, validation_lines
from api.apps.services import services
from api.apps.shapes.documents import ListedDocument, SwitchedDocument
from api.apps.unwritable import unwritable, why_unwritable
from api.apps.views import listed_document_json
from api.db.services.document_changes import DocumentChange
from api.db.services.document_views import DocumentView
from api.db.services.file_types import chunk_method_of
from api.db.services.naming import extension
from common.errors import NotFound

bp = Blueprint("document_updates", __name__)
bp.before_request(require_caller)

_METHODS = (
    "naive", "manual", "qa", "table", "paper", "book", "laws", "presentation", "picture", "one", "knowledge_graph",
    "email", "tag", "audio", "resume",
)  # fmt: skip
_FIXED = ("chunk_count", "token_count", "progress")
_MAX_META_CHARS = 65535
_ANY = "any"


class UpdateDocument(Loose):
    """All are optional; what is not sent stays. The counts may be sent back as they were shown."""

    name: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    chunk_method: str | None = None
    parser_config: ParserConfig | None = None
    meta_fields: Annotated[dict[str, Any], Field(description="Replaces all that is there")] | None = None
    enabled: Annotated[int, Field(ge=0, le=1)] = 1
    pipeline_id: str | None = None
    chunk_count: int | None = None
    token_count: int | None = None
    progress: float | None = None


class SwitchDocuments(Loose):
    doc_ids: Annotated[list[str], Field(min_length=1)]
    status: Annotated[int, Field(ge=0, le=1)]


@bp.put("/datasets/<dataset_id>/documents/<document_id>")
@bp.patch("/datasets/<dataset_id>/documents/<document_id>")
@describe(
    "Documents",
    "Change a document",
    note="A new `chunk_method` drops its chunks and sets it back to UNSTART. `enabled` 0 hides it from searches.",
    body=UpdateDocument,
    answer=ListedDocument,
    example={"name": "pump.pdf", "meta_fields": {"year": 2026}, "enabled": 1},
)
def update(dataset_id: str, document_id: str) -> Response:
    document = _document(dataset_id, document_id)
    body = loose_body()
    _require_unchanged(document, body)
    if body.get("pipeline_id"):
        raise ApiError(DATA, "`pipeline_id` names an ingestion pipeline, and this server has none")
    change = DocumentChange(
        meta_fields=_meta_fields(body),
        name=_name(document, body),
        parser_config=_parser_config(body),
        chunk_method=_chunk_method(document, body),
        enabled=_enabled(body, "enabled") if "enabled" in body else None,
    )
    services().document_changes.update(document.id, change)
    return plain(listed_document_json(services().documents.get(document.tenant_id, document.id)))


@bp.post("/datasets/<dataset_id>/documents/batch-update-status")
@describe("Documents", "Switch documents on or off", body=SwitchDocuments, answer=dict[str, SwitchedDocument])
def update_status(dataset_id: str) -> Response:
    tenant_id = caller().tenant_id
    services().datasets.get(tenant_id, dataset_id)
    body = loose_body()
    ids = list(dict.fromkeys(id_list(body, "doc_ids")))
    enabled = _enabled(body, "status")
    known = services().documents.known(tenant_id, [dataset_id], ids)
    unknown = [one for one in ids if one not in known]
    if unknown:
        raise ApiError(DATA, f"Documents not found: {unknown}")
    services().document_changes.enable(ids, enabled)
    return plain({one: {"status": str(int(enabled))} for one in ids})


def _document(dataset_id: str, document_id: str) -> DocumentView:
    tenant_id = caller().tenant_id
    services().datasets.get(tenant_id, dataset_id)
    try:
        return services().documents.get(tenant_id, document_id, dataset_id)
    except NotFound as exc:
        raise ApiError(DATA, "The dataset doesn't own the document.") from exc


def _require_unchanged(document: DocumentView, body: Mapping[str, Any]) -> None:
    """Counts may be sent back as they were shown."""
    stored = {name: getattr(document, name) for name in _FIXED}
    for name, value in stored.items():
        if body.get(name) is not None and body[name] != value:
            raise ApiError(DATA, f"Can't change `{name}`.")


def _name(document: DocumentView, body: Mapping[str, Any]) -> str | None:
    given = body.get("name")
    if given is None:
        return None
    if not isinstance(given, str):
        raise ApiError(DATA, "`name` should be a valid string")
    name = file_name(given)
    if extension(name) != document.suffix:
        raise ApiError(ARGUMENT, "The extension of file can't be changed")
    return name


def _chunk_method(document: DocumentView, body: Mapping[str, Any]) -> str | None:
    given = body.get("chunk_method")
    if given is None:
        return None
    if given not in _METHODS:
        raise ApiError(DATA, f"`chunk_method` {shown(given)} doesn't exist")
    own = chunk_method_of(document.name, _ANY)
    if own not in (_ANY, given):
        raise ApiError(
            DATA, f"Not supported yet! The automatically detected parser type cannot be changed: it is {own}"
        )
    return str(given)


def _parser_config(body: Mapping[str, Any]) -> dict[str, Any] | None:
    given = body.get("parser_config")
    if given is None:
        return None
    if not isinstance(given, dict):
        raise ApiError(DATA, "`parser_config` should be a valid dictionary")
    found = unwritable(given)
    if found is not None:
        raise ApiError(DATA, f"`parser_config` {shown(found.place)}: {found.why}")
    try:
        return ParserConfig.model_validate(given).given() or None
    except ValidationError as exc:
        raise ApiError(DATA, validation_lines(exc, "parser_config")) from exc


def _meta_fields(body: Mapping[str, Any]) -> dict[str, Any] | None:
    given = body.get("meta_fields")
    if given is None:
        return None
    if not isinstance(given, dict):
        raise ApiError(DATA, "`meta_fields` must be a dictionary: Input should be a valid dictionary")
    for key, value in given.items():
        require_storable("`meta_fields`", key, value)
    if len(str(given)) > _MAX_META_CHARS:
        raise ApiError(DATA, f"`meta_fields` has at most {_MAX_META_CHARS} characters")
    return clean_values(given)


def require_storable(where: str, key: str, value: object) -> None:
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, (str, int, float)) or isinstance(one, bool):
            raise ApiError(DATA, f"{where} {shown(key)}: the type is not supported: {type(one).__name__}")
        if isinstance(one, float) and (why := why_unwritable(one)):
            raise ApiError(DATA, f"{where} {shown(key)}: {why}")


def clean_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """With text that can be stored."""

    def clean(value: Any) -> Any:
        if isinstance(value, list):
            return [clean(one) for one in value]
        return text(value) if isinstance(value, str) else value

    return {text(key): clean(value) for key, value in given.items()}


def _enabled(body: Mapping[str, Any], key: str) -> bool:
    given = body.get(key)
    if str(given) not in ("0", "1", "True", "False"):
        raise ApiError(DATA, f"`{key}` should be 0 or 1")
    return str(given) in ("1", "True")
