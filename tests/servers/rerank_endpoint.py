"""How a reranker's endpoint answers: moods for the server of embedding_endpoint.py, which listens to any path.

Its scores come best first, as rerankers send them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.servers.embedding_endpoint import Asked, Mood


def results(texts: Sequence[str], score: Callable[[str], float]) -> list[dict[str, Any]]:
    found = [{"index": n, "relevance_score": score(text)} for n, text in enumerate(texts)]
    return sorted(found, key=lambda one: -float(one["relevance_score"]))


def ranks_by(score: Callable[[str], float]) -> Mood:
    """Each text gets what this says."""

    def mood(handler: Any, asked: Asked) -> None:
        handler.send(200, {"model": asked.body["model"], "results": results(asked.body["documents"], score)})

    return mood


def ranks_at_most(most: int, score: Callable[[str], float]) -> Mood:
    """413 for more texts in one call."""
    well = ranks_by(score)

    def mood(handler: Any, asked: Asked) -> None:
        if len(asked.body["documents"]) > most:
            handler.send(413, b"Payload Too Large")
        else:
            well(handler, asked)

    return mood


def forgets_the_last(handler: Any, asked: Asked) -> None:
    handler.send(200, {"results": results(asked.body["documents"], lambda text: 0.5)[:-1]})


def scores_a_stranger(handler: Any, asked: Asked) -> None:
    found = results(asked.body["documents"], lambda text: 0.5)
    found[0]["index"] = 1000
    handler.send(200, {"results": found})
