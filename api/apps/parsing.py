"""Starting and stopping the parse of documents: POST, DELETE /datasets/{id}/chunks, and /documents/parse, /stop."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from flask import Blueprint, Response
from pydantic import Field

from api.apps.access import usable
from api.apps.auth import require_caller
from api.apps.envelope import DATA, ApiError, plain
from api.apps.once import once
from api.apps.openapi.operation import describe
from api.apps.requests import Loose, id_list, loose_body
from api.apps.services import services
from api.apps.shapes.documents import Started

bp = Blueprint("parsing", __name__)
bp.before_request(require_caller)

_RUNNING = "Can't parse document that is currently being processed"
_NOT_RUNNING = "Can't stop parsing document that has not started or already completed"
# Each transaction takes this many, so that executors never wait long for theirs.
_SLICE = 500
_TAG = "Parsing"
_EXAMPLE = {"document_ids": ["6f0c2a1e5b3d4c7f8a9b0c1d2e3f4a5b"]}


class DocumentIds(Loose):
    document_ids: Annotated[list[str], Field(min_length=1)]


@dataclass(frozen=True)
class _Asked:
    """The documents a caller named, each once: those of the dataset, and those that are not."""

    known: list[str]
    unknown: list[str]
    remarks: list[str]


@bp.post("/datasets/<dataset_id>/chunks")
@describe(
    _TAG,
    "Parse documents",
    note="Those that are unknown are told of after the others have begun. `data` is there only for repeated ids.",
    body=DocumentIds,
    answer=Started | None,
    is_once=True,
    example=_EXAMPLE,
)
def parse(dataset_id: str) -> Response:
    asked = _asked(dataset_id)
    body = json.dumps([dataset_id, asked.known, asked.unknown])
    started: list[str] = once("parse", body, lambda: in_slices(services().parsing.start, asked.known))
    if len(started) < len(asked.known):
        raise ApiError(DATA, f"{_RUNNING}: {_others(asked.known, started)}")
    _require_all_known(asked)
    return plain({"success_count": len(started), "errors": asked.remarks} if asked.remarks else None)


@bp.delete("/datasets/<dataset_id>/chunks")
@describe(_TAG, "Stop parses", body=DocumentIds, answer=Started | None, example=_EXAMPLE)
def stop(dataset_id: str) -> Response:
    asked = _asked(dataset_id)
    if asked.unknown:
        raise ApiError(DATA, f"You don't own the document {asked.unknown[0]}.")
    stopped = in_slices(services().parsing.stop, asked.known)
    if len(stopped) < len(asked.known):
        message = f"{_NOT_RUNNING}: {_others(asked.known, stopped)}"
        raise ApiError(DATA, message, {"error_code": "DOC_STOP_PARSING_INVALID_STATE"})
    return plain({"success_count": len(stopped), "errors": asked.remarks} if asked.remarks else None)


@bp.post("/datasets/<dataset_id>/documents/parse")
@describe(_TAG, "Parse documents, and tell how many", body=DocumentIds, answer=Started, is_once=True, example=_EXAMPLE)
def parse_documents(dataset_id: str) -> Response:
    def start(document_ids: Sequence[str]) -> list[str]:
        body = json.dumps([dataset_id, list(document_ids)])
        started: list[str] = once("parse", body, lambda: services().parsing.start(document_ids))
        return started

    return _each(dataset_id, start, _RUNNING)


@bp.post("/datasets/<dataset_id>/documents/stop")
@describe(_TAG, "Stop parses, and tell how many", body=DocumentIds, answer=Started, example=_EXAMPLE)
def stop_documents(dataset_id: str) -> Response:
    return _each(dataset_id, services().parsing.stop, _NOT_RUNNING)


@bp.post("/datasets/<dataset_id>/documents/pause")
@describe(_TAG, "Pause parses", note="What is at work goes on.", body=DocumentIds, answer=Started)
def pause_documents(dataset_id: str) -> Response:
    return _each(dataset_id, services().control.pause, "Can't pause document that is not running or is paused")


@bp.post("/datasets/<dataset_id>/documents/resume")
@describe(_TAG, "Resume parses", body=DocumentIds, answer=Started)
def resume_documents(dataset_id: str) -> Response:
    return _each(dataset_id, services().control.resume, "Can't resume document that is not paused")


def _each(dataset_id: str, act: Callable[[Sequence[str]], list[str]], refusal: str) -> Response:
    """Do what can be done; what can't is told in `errors`."""
    asked = _asked(dataset_id)
    done = in_slices(act, asked.known)
    remarks = list(asked.remarks)
    if len(done) < len(asked.known):
        remarks.append(f"{refusal}: {_others(asked.known, done)}")
    _require_all_known(asked)
    answer: dict[str, object] = {"success_count": len(done)}
    return plain(answer | {"errors": remarks} if remarks else answer)


def _asked(dataset_id: str) -> _Asked:
    tenant_id = usable(dataset_id).tenant_id
    counts = Counter(id_list(loose_body(), "document_ids"))
    found = services().documents.known(tenant_id, [dataset_id], list(counts))
    return _Asked(
        known=[one for one in counts if one in found],
        unknown=[one for one in counts if one not in found],
        remarks=[f"Duplicate document ids: {one}" for one, count in counts.items() if count > 1],
    )


def _require_all_known(asked: _Asked) -> None:
    if asked.unknown:
        raise ApiError(DATA, f"Documents not found: {asked.unknown}")


def in_slices(act: Callable[[Sequence[str]], list[str]], document_ids: Sequence[str]) -> list[str]:
    starts = range(0, len(document_ids), _SLICE)
    return [done for start in starts for done in act(document_ids[start : start + _SLICE])]


def _others(asked: Sequence[str], done: Sequence[str]) -> str:
    kept = set(done)
    return ", ".join(one for one in asked if one not in kept)
