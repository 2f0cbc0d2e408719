"""The models that this server has, as RAGFlow lists them: GET /models, /models/default."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response

from api.apps.auth import caller, require_caller
from api.apps.envelope import expect_full, full
from api.apps.openapi.operation import Surface, describe
from api.apps.requests import Loose, params
from api.apps.services import services
from api.apps.shapes.system import DefaultModels, ListedModel, ServedModel

bp = Blueprint("models", __name__)
bp.before_request(expect_full)
bp.before_request(require_caller)


class ModelType(Loose):
    type: str = ""


@bp.get("/models")
@describe("System", "The models of this server", surface=Surface.FULL, query=ModelType, answer=list[ServedModel])
def list_models() -> Response:
    wanted = params().get("type", "")
    return full([model for model in _models() if wanted in ("", *model["model_type"])])


@bp.get("/models/default")
@describe("System", "The models that are used", surface=Surface.FULL, answer=DefaultModels)
def defaults() -> Response:
    return full({"models": _models()})


@describe("System", "The models of this server by provider", surface=Surface.FULL, answer=dict[str, list[ListedModel]])
def llm_list() -> Response:
    """By provider, for older clients."""
    found: dict[str, list[dict[str, Any]]] = {}
    for model in _models():
        one = {
            "llm_name": model["name"],
            "model_type": model["model_type"][0],
            "fid": model["provider_name"],
            "available": True,
            "status": "1",
        }
        found.setdefault(model["provider_name"], []).append(one)
    return full(found)


def _models() -> list[dict[str, Any]]:
    models = [_model(services().datasets.embedding_model, "embedding")]
    rerank = services().retrieval.rerank_model
    return [*models, _model(rerank, "rerank")] if rerank else models


def _model(identifier: str, kind: str) -> dict[str, Any]:
    name, _, provider = identifier.partition("@")
    return {
        "model_id": identifier,
        "name": name,
        "model_type": [kind],
        "provider_id": provider,
        "provider_name": provider,
        "instance_id": "default",
        "instance_name": "default",
        "tenant_id": caller().tenant_id,
        "tenant_name": services().users.name_of(caller().user_id),
        "rank": 0,
    }
