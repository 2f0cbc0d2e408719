"""Graphs, RAPTOR and mind maps of a dataset. They need a chat model, which this server does not have: there are none to
show, none to delete, and none can be made."""

from __future__ import annotations

from typing import Annotated, Literal

from flask import Blueprint, Response, request
from pydantic import Field

from api.apps.access import usable
from api.apps.auth import require_caller
from api.apps.envelope import ARGUMENT, AUTHENTICATION, DATA, ApiError, plain
from api.apps.openapi.operation import describe
from api.apps.requests import Loose, params, shown
from api.apps.shapes.datasets import NoGraph, Nothing
from common.errors import NotFound

bp = Blueprint("graph", __name__)
bp.before_request(require_caller)

_TYPES = ("graph", "raptor", "mindmap")
_RUNS = {"run_graphrag": "graph", "run_raptor": "raptor"}
_TAG = "Graphs"


class IndexType(Loose):
    type: Literal["graph", "raptor", "mindmap"]
    wipe: Annotated[bool, Field(description="Without an effect: there is nothing to delete")] = False


@bp.get("/datasets/<dataset_id>/graph")
@bp.get("/datasets/<dataset_id>/knowledge_graph")
@describe(_TAG, "The graph of a dataset, which is empty", answer=NoGraph)
def get_graph(dataset_id: str) -> Response:
    _require_dataset(dataset_id, AUTHENTICATION)
    return plain({"graph": {}, "mind_map": {}})


@bp.delete("/datasets/<dataset_id>/graph")
@describe(_TAG, "Delete the graph of a dataset", answer=Nothing)
def delete_graph(dataset_id: str) -> Response:
    _require_dataset(dataset_id, DATA)
    return plain({})


@bp.delete("/datasets/<dataset_id>/knowledge_graph")
@describe(_TAG, "Delete the graph of a dataset", answer=Literal[True])
def delete_knowledge_graph(dataset_id: str) -> Response:
    _require_dataset(dataset_id, AUTHENTICATION)
    return plain(True)


@bp.post("/datasets/<dataset_id>/index")
@describe(_TAG, "Make a graph, RAPTOR or a mind map", note="Not available: it needs a chat model.", query=IndexType)
def build(dataset_id: str) -> Response:
    _require_dataset(dataset_id, DATA)
    raise _cannot_build(dataset_id, _type(DATA))


@bp.post("/datasets/<dataset_id>/run_graphrag")
@bp.post("/datasets/<dataset_id>/run_raptor")
@describe(_TAG, "Make a graph or RAPTOR", note="Not available: it needs a chat model.")
def build_by_name(dataset_id: str) -> Response:
    _require_dataset(dataset_id, AUTHENTICATION)
    raise _cannot_build(dataset_id, _RUNS[request.path.rstrip("/").rpartition("/")[2]])


@bp.get("/datasets/<dataset_id>/index")
@describe(_TAG, "The task that makes one, of which there is none", query=IndexType, answer=Nothing)
def trace(dataset_id: str) -> Response:
    _require_dataset(dataset_id, DATA)
    _type(DATA)
    return plain({})


@bp.get("/datasets/<dataset_id>/trace_graphrag")
@bp.get("/datasets/<dataset_id>/trace_raptor")
@describe(_TAG, "The task that makes one, of which there is none", answer=Nothing)
def trace_by_name(dataset_id: str) -> Response:
    _require_dataset(dataset_id, AUTHENTICATION)
    return plain({})


@bp.delete("/datasets/<dataset_id>/index")
@describe(_TAG, "Delete a graph, RAPTOR or a mind map", query=IndexType, answer=Nothing)
def delete_index(dataset_id: str) -> Response:
    _require_dataset(dataset_id, DATA)
    _type(ARGUMENT)
    return plain({})


def _cannot_build(dataset_id: str, kind: str) -> ApiError:
    dataset = usable(dataset_id)
    if not dataset.document_count:
        return ApiError(DATA, f"No documents in Dataset {dataset_id}")
    return ApiError(DATA, f"`{kind}` is not available: it needs a chat model, and this server has none")


def _type(code: int) -> str:
    kind = params().get("type", "")
    if kind not in _TYPES:
        raise ApiError(code, f"Invalid index type: {shown(kind)}; allowed: {', '.join(_TYPES)}")
    return kind


def _require_dataset(dataset_id: str, code: int) -> None:
    try:
        usable(dataset_id)
    except NotFound as exc:
        raise ApiError(code, "No authorization.") from exc
