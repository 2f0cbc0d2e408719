"""The parser_config that a dataset starts with: defaults by chunk method, and what a caller gave laid over them.

Checking what a caller gives is left to the web room."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

RAPTOR_PROMPT = (
    "Please summarize the following paragraphs. Be careful with the numbers, do not make things up. "
    "Paragraphs as following:\n      {cluster_content}\nThe above is the content you need to summarize."
)
ENTITY_TYPES = ("organization", "person", "geo", "event", "category")

_EVERY_METHOD: dict[str, Any] = {"table_context_size": 0, "image_context_size": 0, "llm_id": ""}
_SWITCHED_OFF: dict[str, Any] = {"raptor": {"use_raptor": False}, "graphrag": {"use_graphrag": False}}
_NAIVE: dict[str, Any] = {
    "layout_recognize": "DeepDOC",
    "chunk_token_num": 512,
    "delimiter": "\n",
    "auto_keywords": 0,
    "auto_questions": 0,
    "html4excel": False,
    "topn_tags": 3,
    "raptor": {
        "use_raptor": True,
        "prompt": RAPTOR_PROMPT,
        "max_token": 512,
        "clustering_threshold": 0.3,
        "clustering_ratio": 0.5,
        "max_cluster": 64,
        "random_seed": 0,
        "scope": "file",
        "auto_disable_for_structured_data": True,
    },
    "graphrag": {
        "use_graphrag": True,
        "entity_types": list(ENTITY_TYPES),
        "method": "light",
        "community": False,
        "resolution": False,
        "batch_chunk_token_size": 4096,
    },
    "parent_child": {"use_parent_child": False, "children_delimiter": "\n"},
}
_BY_METHOD: dict[str, dict[str, Any]] = {
    "naive": _NAIVE,
    **dict.fromkeys(("qa", "manual", "paper", "book", "laws", "presentation"), _SWITCHED_OFF),
}


def parser_config(chunk_method: str, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The method's defaults, with what was given laid over them key by key."""
    defaults = _EVERY_METHOD | _BY_METHOD.get(chunk_method, {})
    return merged(defaults, given or {})


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """A deep copy of `base` in which the keys of `over` win, level by level."""
    result = copy.deepcopy(dict(base))
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result
