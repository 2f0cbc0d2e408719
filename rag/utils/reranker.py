"""Reranking: the contract, and what a score means. The one implementation is endpoint_reranker.py.

A reranker reads question and text together, and so tells better than two vectors how well they fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from common.settings import RerankSettings


class Reranker(Protocol):
    """Thread-safe. `top_n` is how many texts are worth asking for; `always`: also where nobody names it."""

    name: str
    top_n: int
    always: bool

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """How well each text fits, in 0..1. Raises Outage: also where the endpoint refuses, since a search goes on
        without it."""


def open_reranker(settings: RerankSettings) -> Reranker | None:
    """None where no endpoint is set."""
    if not settings.url:
        return None
    from rag.utils.endpoint_reranker import EndpointReranker  # with an HTTP client: only who needs one pays for it

    return EndpointReranker(settings)


def squashed(scores: Sequence[float]) -> list[float]:
    """In 0..1. Where one lies outside they are no shares but logits, all of them; their order stays."""
    if all(0 <= score <= 1 for score in scores):
        return list(scores)
    return [_sigmoid(score) for score in scores]


def _sigmoid(score: float) -> float:
    if score >= 0:
        return 1 / (1 + math.exp(-score))
    power = math.exp(score)  # the other form overflows
    return power / (1 + power)
