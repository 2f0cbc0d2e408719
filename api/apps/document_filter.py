"""Which documents of a dataset are asked for: the query string of their list."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from api.apps.envelope import ARGUMENT, DATA, UNCAUGHT, ApiError
from api.apps.requests import MAX_NUMBER, Paged, page_number, page_size, params, shown
from api.db.services.document_list import DocumentFilter
from api.db.services.metadata_conditions import Condition, Conditions, read_conditions
from common.errors import InvalidInput
from common.task_state import DocumentRun

_ORDERS = ("create_time", "update_time", "name")
_TYPES = ("pdf", "doc", "aural", "visual", "virtual")
_MAX_IDS = 100
_NO_METADATA = "empty_metadata"


class FilterDocuments(Paged):
    orderby: Literal["create_time", "update_time", "name"] = "create_time"
    desc: Annotated[bool, Field(description="Everything but `false` is true")] = True
    keywords: Annotated[str, Field(description="What the name contains, in any case")] = ""
    id: str = ""
    ids: Annotated[list[str], Field(max_length=_MAX_IDS, description="Repeated, or parted by commas")] = Field(
        default_factory=list
    )
    name: Annotated[str, Field(description="The whole name")] = ""
    suffix: Annotated[list[str], Field(description="Without the dot")] = Field(default_factory=list)
    types: list[Literal["pdf", "doc", "aural", "visual", "virtual"]] = Field(default_factory=list)
    run: list[Literal["UNSTART", "RUNNING", "CANCEL", "DONE", "FAIL", "0", "1", "2", "3", "4"]] = Field(
        default_factory=list
    )
    create_time_from: Annotated[int, Field(description="Milliseconds; filters the page, and leaves `total`")] = 0
    create_time_to: int = 0
    metadata: Annotated[str, Field(description="JSON: each key with a value, or a list of values")] = ""
    metadata_condition: Annotated[str, Field(description="JSON: `logic` and `conditions`")] = ""
    return_empty_metadata: Literal["", "true", "false", "1", "0"] = ""


class ListDocuments(FilterDocuments):
    type: Annotated[Literal["", "filter"], Field(description="`filter`: counts in place of documents")] = ""


def document_filter() -> DocumentFilter:
    args = params()
    orderby = args.get("orderby") or "create_time"
    if orderby not in _ORDERS:
        raise ApiError(ARGUMENT, f"invalid orderby field: {shown(orderby)}; allowed: {', '.join(_ORDERS)}")
    ids = [one for given in args.getlist("ids") for one in given.split(",") if one]
    if len(ids) > _MAX_IDS:
        raise ApiError(ARGUMENT, f"`ids` has {len(ids)} entries; at most {_MAX_IDS} are allowed")
    if args.get("id"):
        ids = [args["id"]] if not ids or args["id"] in ids else [""]
    return DocumentFilter(
        page=page_number(),
        page_size=page_size(),
        orderby=orderby,
        desc=args.get("desc", "true").lower() != "false",
        keywords=args.get("keywords", ""),
        ids=tuple(dict.fromkeys(ids)),
        name=args.get("name", ""),
        suffixes=_given("suffix"),
        types=_types(),
        runs=tuple(_run(value) for value in _given("run")),
        create_ms_from=_time("create_time_from"),
        create_ms_to=_time("create_time_to"),
        metadata_meets=_metadata(),
    )


def _given(key: str) -> tuple[str, ...]:
    return tuple(value for value in params().getlist(key) if value)


def _types() -> tuple[str, ...]:
    given = _given("types")
    for one in given:
        if one not in _TYPES:
            raise ApiError(DATA, f"Invalid filter conditions: `types` {shown(one)}; allowed: {', '.join(_TYPES)}")
    return given


def _run(value: str) -> DocumentRun:
    names = {run.name: run for run in DocumentRun} | {str(int(run)): run for run in DocumentRun}
    if value.upper() not in names:
        raise ApiError(DATA, f"Invalid filter run status conditions: {shown(value)}")
    return names[value.upper()]


def _time(key: str) -> int:
    value = params().get(key) or "0"
    try:
        time_ms = int(value)
    except ValueError as exc:
        raise ApiError(UNCAUGHT, f"`{key}` should be a time in milliseconds, not {shown(value)}") from exc
    return max(-MAX_NUMBER, min(time_ms, MAX_NUMBER))


def _metadata() -> Callable[[Mapping[str, Any]], bool] | None:
    """All that is asked of a document's metadata; None where nothing is."""
    tests = [test for test in (_without(), _values(), _conditions()) if test is not None]
    return (lambda metadata: all(test(metadata) for test in tests)) if tests else None


def _without() -> Callable[[Mapping[str, Any]], bool] | None:
    given = params().get("return_empty_metadata", "").lower()
    if given not in ("", "true", "false", "1", "0"):
        raise ApiError(DATA, "`return_empty_metadata` should be true or false")
    return (lambda metadata: not metadata) if given in ("true", "1") else None


def _values() -> Callable[[Mapping[str, Any]], bool] | None:
    """Of each key that is named, one of the values."""
    wanted = _object("metadata")
    if not wanted:
        return None
    empty = wanted.pop(_NO_METADATA, None)
    items = tuple(Condition(key, "in", one if isinstance(one, list) else [one]) for key, one in wanted.items())
    met = Conditions(items).met_by
    return (lambda metadata: not metadata and not items) if empty else met


def _conditions() -> Callable[[Mapping[str, Any]], bool] | None:
    try:
        found = read_conditions(_object("metadata_condition"))
    except InvalidInput as exc:
        raise ApiError(DATA, exc.public_message) from exc
    return found.met_by if found is not None else None


def _object(key: str) -> dict[str, Any]:
    given = params().get(key)
    if not given:
        return {}
    try:
        found = json.loads(given)
    except (ValueError, RecursionError) as exc:
        raise ApiError(DATA, f"`{key}` must be valid JSON") from exc
    if not isinstance(found, dict):
        raise ApiError(DATA, f"`{key}` must be valid JSON: an object")
    return found
