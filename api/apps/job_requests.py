"""What callers of the job routes send, checked: each refusal names the field."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Literal, TypeVar, cast, get_args

from flask import request
from pydantic import ConfigDict, Field, ValidationError

from api.apps.dataset_fields import ChunkMethod
from api.apps.parser_config import ParserConfig
from api.apps.problem_pages import PageQuery, page_and_size
from api.apps.problems import FieldError, Problem, wrong_fields
from api.apps.requests import Loose, params, shown
from api.apps.unwritable import unwritable
from api.apps.uploads import BinaryFile, IncomingFile
from api.apps.wrong_fields import wrong_fields_of
from api.db.services.file_names import require_file_name
from api.db.services.file_types import chunk_method_of, type_of
from api.db.services.job_service import JobFilter
from api.db.services.job_views import JobStatus
from common.errors import InvalidInput
from common.task_state import Priority

T = TypeVar("T")

_METHODS = get_args(ChunkMethod)
_PRIORITIES = {priority.name.lower(): priority for priority in Priority}
_ANY = ""
_ID_DIGITS = 15
# Deleted jobs are not listed.
_STATUSES = {str(status): status for status in JobStatus if status is not JobStatus.DELETED}


class JobFields(Loose):
    """The form; a field that is not known is refused."""

    model_config = ConfigDict(extra="forbid")

    file: BinaryFile
    dataset_id: Annotated[str, Field(description='Else the dataset "Jobs", made when it is missing')] = ""
    chunk_method: ChunkMethod = "naive"
    parser_config: Annotated[str, Field(description="JSON; laid over the dataset's")] = ""
    priority: Literal["bulk", "normal", "urgent"] = "normal"


class ListJobs(PageQuery):
    status: Annotated[
        list[Literal["unstarted", "queued", "running", "paused", "done", "failed", "cancelled"]],
        Field(description="One or several, repeated or parted by commas"),
    ] = Field(default_factory=list)
    dataset_id: str = ""


class FollowQuery(Loose):
    last_event_id: Annotated[str, Field(pattern="^[0-9]{0,15}$", description="As the header `Last-Event-ID`")] = ""
    token: Annotated[str, Field(description="The key, where no header can be sent")] = ""


@dataclass(frozen=True)
class JobForm:
    """A checked form. The file's bytes are on their way into the store; keeping them is the handler's."""

    name: str
    stream: IncomingFile
    dataset_id: str
    chunk_method: str | None
    parser_config: dict[str, Any] | None
    priority: Priority


class _Wrong(Exception):
    def __init__(self, *fields: FieldError) -> None:
        super().__init__()
        self.fields = fields


def job_form() -> JobForm:
    """Raises Problem that names every field that is wrong."""
    if request.mimetype != "multipart/form-data":
        detail = f"expected multipart/form-data with a file, got {request.mimetype or 'no content type'}"
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
    files = request.files.getlist("file")
    name = (files[0].filename or "") if files else ""
    wrong = [
        FieldError(field, "is not known")
        for field in {**request.form, **request.files}
        if field not in JobFields.model_fields
    ]
    _checked(wrong, lambda: _require_file(len(files), name))
    config = _checked(wrong, _parser_config)
    method = _checked(wrong, lambda: _chunk_method(name))
    priority = _checked(wrong, _priority)
    if wrong:
        raise wrong_fields(*wrong)
    return JobForm(
        name=name,
        stream=cast(IncomingFile, files[0].stream),
        dataset_id=request.form.get("dataset_id", "").strip(),
        chunk_method=method,
        parser_config=config,
        priority=Priority.NORMAL if priority is None else priority,
    )


def job_filter() -> JobFilter:
    wrong = [FieldError(name, "is not known") for name in request.args if name not in ListJobs.model_fields]
    page, page_size = page_and_size(wrong)
    statuses = [part for one in params().getlist("status") for part in one.split(",") if part]
    for status in statuses:
        if status not in _STATUSES:
            wrong.append(FieldError("status", f"should be one of {', '.join(_STATUSES)}, not {shown(status)}"))
    if wrong:
        raise wrong_fields(*wrong, status=HTTPStatus.BAD_REQUEST)
    chosen = tuple(dict.fromkeys(_STATUSES[status] for status in statuses))
    return JobFilter(page, page_size, chosen, params().get("dataset_id", ""))


def last_event_id() -> int | None:
    """The id of the last event that the caller got, by header or, for those that can't send any, by parameter."""
    given = request.headers.get("Last-Event-ID") or request.args.get("last_event_id") or ""
    if not given:
        return None
    if not (given.isascii() and given.isdigit() and len(given) <= _ID_DIGITS):
        message = f"should be the id of an event, not {shown(given)}"
        raise wrong_fields(FieldError("last_event_id", message), status=HTTPStatus.BAD_REQUEST)
    return int(given)


def _checked(wrong: list[FieldError], check: Callable[[], T]) -> T | None:
    """What the check gives, or None and its complaints added to the others."""
    try:
        return check()
    except _Wrong as exc:
        wrong += exc.fields
        return None


def _require_file(count: int, name: str) -> None:
    if count != 1:
        raise _Wrong(FieldError("file", f"exactly one file makes a job, not {count}"))
    try:
        require_file_name(name)
    except InvalidInput as exc:
        raise _Wrong(FieldError("file", exc.public_message)) from exc
    if type_of(name) is None:
        raise _Wrong(FieldError("file", f"files such as {shown(name)} are not read"))


def _parser_config() -> dict[str, Any] | None:
    text = request.form.get("parser_config", "")
    if not text:
        return None
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise _Wrong(FieldError("parser_config", "is no JSON, or nested too deep")) from exc
    found = unwritable(given)
    if found is not None:
        raise _Wrong(FieldError(".".join(filter(None, ("parser_config", shown(found.place)))), found.why))
    try:
        return ParserConfig.model_validate(given).given() or None
    except ValidationError as exc:
        fields = wrong_fields_of(exc, "parser_config")
        raise _Wrong(*(FieldError(wrong.place, wrong.message) for wrong in fields)) from exc


def _chunk_method(name: str) -> str | None:
    given = request.form.get("chunk_method", "")
    if not given:
        return None
    if given not in _METHODS:
        raise _Wrong(FieldError("chunk_method", f"should be one of {', '.join(_METHODS)}, not {shown(given)}"))
    own = chunk_method_of(name, _ANY)
    if own not in (_ANY, given):
        raise _Wrong(FieldError("chunk_method", f"files of this kind have a method of their own: {own}"))
    return given


def _priority() -> Priority | None:
    given = request.form.get("priority", "")
    if not given:
        return None
    if given not in _PRIORITIES:
        raise _Wrong(FieldError("priority", f"should be one of {', '.join(_PRIORITIES)}, not {shown(given)}"))
    return _PRIORITIES[given]
