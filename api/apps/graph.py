"""Graphs, RAPTOR and mind maps of a dataset. They need a chat model, which this server does not have: there are none to
show, none to delete, and none can be made."""

from __future__ import annotations

from flask import Blueprint, Response, request

from api.apps.auth import caller, require_caller
from api.apps.envelope import ARGUMENT, AUTHENTICATION, DATA, ApiError, plain
from api.apps.requests import shown
from api.apps.services import services
from common.errors import NotFound

bp = Blueprint("graph", __name__)
bp.before_request(require_caller)

_TYPES = ("graph", "raptor", "mindmap")
_RUNS = {"run_graphrag": "graph", "run_raptor": "raptor"}


@bp.get("/datasets/<dataset_id>/graph")
@bp.get("/datasets/<dataset_id>/knowledge_graph")
def get_graph(dataset_id: str) -> Response:
    _require_dataset(dataset_id, AUTHENTICATION)
    return plain({"graph": {}, "mind_map": {}})


@bp.delete("/datasets/<dataset_id>/graph")
def delete_graph(dataset_id: str) -> Response:
    _require_dataset(dataset_id, DATA)
    return plain({})


@bp.delete("/datasets/<dataset_id>/knowledge_graph")
def delete_knowledge_graph(dataset_id: str) -> Response:
    _require_dataset(dataset_id, AUTHENTICATION)
    return plain(True)


@bp.post("/datasets/<dataset_id>/index")
def build(dataset_id: str) -> Response:
    _require_dataset(dataset_id, DATA)
    raise _cannot_build(dataset_id, _type(DATA))


@bp.post("/datasets/<dataset_id>/run_graphrag")
@bp.post("/datasets/<dataset_id>/run_raptor")
def build_by_name(dataset_id: str) -> Response:
    _require_dataset(dataset_id, AUTHENTICATION)
    raise _cannot_build(dataset_id, _RUNS[request.path.rstrip("/").rpartition("/")[2]])


@bp.get("/datasets/<dataset_id>/index")
def trace(dataset_id: str) -> Response:
    _require_dataset(dataset_id, DATA)
    _type(DATA)
    return plain({})


@bp.get("/datasets/<dataset_id>/trace_graphrag")
@bp.get("/datasets/<dataset_id>/trace_raptor")
def trace_by_name(dataset_id: str) -> Response:
    _require_dataset(dataset_id, AUTHENTICATION)
    return plain({})


@bp.delete("/datasets/<dataset_id>/index")
def delete_index(dataset_id: str) -> Response:
    _require_dataset(dataset_id, DATA)
    _type(ARGUMENT)
    return plain({})


def _cannot_build(dataset_id: str, kind: str) -> ApiError:
    dataset = services().datasets.get(caller().tenant_id, dataset_id)
    if not dataset.document_count:
        return ApiError(DATA, f"No documents in Dataset {dataset_id}")
    return ApiError(DATA, f"`{kind}` is not available: it needs a chat model, and this server has none")


def _type(code: int) -> str:
    kind = request.args.get("type", "")
    if kind not in _TYPES:
        raise ApiError(code, f"Invalid index type: {shown(kind)}; allowed: {', '.join(_TYPES)}")
    return kind


def _require_dataset(dataset_id: str, code: int) -> None:
    try:
        services().datasets.get(caller().tenant_id, dataset_id)
    except NotFound as exc:
        raise ApiError(code, "No authorization.") from exc
