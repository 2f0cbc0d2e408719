"""Reranking by a real endpoint that misbehaves on demand: what it is asked, what its scores do to an answer, and that
no search fails for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from api.apps import create_app
from api.db.services.retrieval_service import RetrievalService
from common.errors import Outage
from common.settings import RerankSettings
from rag.utils.endpoint_reranker import EndpointReranker
from tests.rest_world import RestWorld, embedder
from tests.servers.embedding_endpoint import (
    EmbeddingEndpoint,
    Mood,
    drips,
    echoes_its_headers,
    embedding_endpoint,
    hangs,
    hangs_up_midway,
    refuses,
    says,
)
from tests.servers.rerank_endpoint import forgets_the_last, ranks_at_most, ranks_by, scores_a_stranger

KEY = "s3cret-k3y"
TEXTS = ["The Danube flows through Vienna.", "The Rhine flows through Basel.", "The Elbe flows through Dresden."]
BETTER = {"Basel": 0.9, "Dresden": 0.5, "Vienna": 0.1}


def by_town(text: str) -> float:
    return next((score for town, score in BETTER.items() if town in text), 0.0)


@pytest.fixture
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with embedding_endpoint() as made:
        made.always = ranks_by(by_town)
        yield made


def settings(endpoint: EmbeddingEndpoint, **fields: Any) -> RerankSettings:
    return RerankSettings(**{"url": endpoint.url, "model": "judge", "api_key": KEY} | fields)


def reranker(endpoint: EmbeddingEndpoint, **fields: Any) -> EndpointReranker:
    return EndpointReranker(settings(endpoint, **fields))


# One call


def test_what_is_asked_and_what_comes_back(endpoint: EmbeddingEndpoint) -> None:
    assert reranker(endpoint).scores("Where is Basel?", TEXTS) == [0.1, 0.9, 0.5]
    (asked,) = endpoint.asked
    assert asked.path == "/v1/rerank"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {"model": "judge", "query": "Where is Basel?", "documents": TEXTS, "top_n": 3}


def test_logits_are_squashed(endpoint: EmbeddingEndpoint) -> None:
    endpoint.always = ranks_by(lambda text: 4.0 if "Basel" in text else -4.0)
    assert reranker(endpoint).scores("x", TEXTS) == pytest.approx([0.018, 0.982, 0.018], abs=1e-3)


def test_text_that_cannot_be_sent_is_replaced_and_a_long_one_cut(endpoint: EmbeddingEndpoint) -> None:
    reranker(endpoint).scores("half \ud800", ["a" * 100_000])
    assert endpoint.asked[0].body["query"] == "half ?"
    assert len(endpoint.asked[0].body["documents"][0]) == 8000


def test_an_endpoint_that_takes_less_gets_halves(endpoint: EmbeddingEndpoint) -> None:
    endpoint.always = ranks_at_most(2, lambda text: float(text) / 10)
    assert reranker(endpoint).scores("x", [str(n) for n in range(7)]) == [n / 10 for n in range(7)]
    endpoint.always = ranks_at_most(0, lambda text: 0.0)
    with pytest.raises(Outage, match="413"):
        reranker(endpoint).scores("x", ["a", "b"])


def test_a_pause_that_is_over_in_time_is_waited_for(endpoint: EmbeddingEndpoint) -> None:
    endpoint.next_moods = [refuses(429, Retry_After="1")]
    began = time.monotonic()
    assert reranker(endpoint, timeout_s=30.0).scores("x", TEXTS) == [0.1, 0.9, 0.5]
    assert time.monotonic() - began >= 1
    assert len(endpoint.asked) == 2


def test_a_pause_that_is_too_long_is_not(endpoint: EmbeddingEndpoint) -> None:
    endpoint.next_moods = [refuses(429, "slow down", Retry_After="60")]
    one = reranker(endpoint, timeout_s=2.0)
    began = time.monotonic()
    for _ in range(2):
        with pytest.raises(Outage, match="the rerank endpoint answered 429: slow down"):
            one.scores("x", TEXTS)
    assert time.monotonic() - began < 2
    assert len(endpoint.asked) == 1  # it is left alone meanwhile


@pytest.mark.parametrize("mood", [hangs, drips(0.05)], ids=["hangs", "drips"])
def test_one_that_is_too_slow_is_given_up_in_time(endpoint: EmbeddingEndpoint, mood: Mood) -> None:
    endpoint.always = mood
    began = time.monotonic()
    with pytest.raises(Outage, match="did not answer within"):
        reranker(endpoint, timeout_s=0.5).scores("x", TEXTS)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("mood", "told"),
    [
        (refuses(503, "overloaded"), "answered 503: overloaded"),
        (refuses(404, "no such model"), "check rerank.url and rerank.model"),
        (echoes_its_headers, "answered 401.*check rerank.api_key"),
        (says(200, b"<html>hello</html>"), "an answer that is none"),
        (says(200, b'{"results": [{"index": 0, "relevance_score": null}]}'), "an answer that is none"),
        (says(200, b'{"data": []}'), "an answer that is none"),
        (says(200, b'{"results": []}'), "0 scores for 3 texts"),
        (forgets_the_last, "2 scores for 3 texts"),
        (scores_a_stranger, "or for others"),
        (hangs_up_midway, "closed the connection"),
    ],
)
def test_whatever_goes_wrong_is_an_outage_that_keeps_the_key(
    endpoint: EmbeddingEndpoint, mood: Mood, told: str
) -> None:
    endpoint.always = mood
    with pytest.raises(Outage, match=told) as error:
        reranker(endpoint).scores("x", TEXTS)
    assert KEY not in error.value.public_message


# A search


def with_reranker(world: RestWorld, settings: RerankSettings) -> None:
    """The app anew, over the same rows and index."""
    retrieval = RetrievalService(world.rows, world.index, embedder(), EndpointReranker(settings))
    world.services = replace(world.services, retrieval=retrieval)
    world.client = create_app(world.services).test_client()


@pytest.fixture
def dataset_id(world: RestWorld) -> str:
    made = world.dataset()
    world.ingest(made, world.document(made, "rivers.txt"), TEXTS)
    return made


def ask(world: RestWorld, dataset_id: str, question: str = "Which river flows through Vienna?", **fields: Any) -> Any:
    body = {"dataset_ids": [dataset_id], "question": question, "similarity_threshold": 0.0} | fields
    return world.ok("POST", "/retrieval", json=body)


def contents(answer: Any) -> list[str]:
    return [chunk["content"] for chunk in answer["chunks"]]


@pytest.mark.parametrize("name", ["judge", "judge@Jina"])
def test_the_rerankers_score_takes_the_place_of_the_vectors(
    world: RestWorld, dataset_id: str, endpoint: EmbeddingEndpoint, name: str
) -> None:
    with_reranker(world, settings(endpoint))
    plain = {chunk["content"]: chunk for chunk in ask(world, dataset_id, vector_similarity_weight=0.9)["chunks"]}
    answer = ask(world, dataset_id, vector_similarity_weight=0.9, rerank_id=name)
    assert contents(answer) == [TEXTS[1], TEXTS[2], TEXTS[0]]
    assert answer["rerank"] == {"model": "judge", "used": True, "count": 3, "failure": None}
    for chunk in answer["chunks"]:
        assert chunk["vector_similarity"] == by_town(chunk["content"])
        assert chunk["term_similarity"] == plain[chunk["content"]]["term_similarity"]
        assert chunk["similarity"] == pytest.approx(0.1 * chunk["term_similarity"] + 0.9 * chunk["vector_similarity"])
    assert endpoint.asked[0].body["query"] == "Which river flows through Vienna?"


def test_the_threshold_is_for_the_new_similarity(
    world: RestWorld, dataset_id: str, endpoint: EmbeddingEndpoint
) -> None:
    with_reranker(world, settings(endpoint))
    answer = ask(world, dataset_id, "Basel", vector_similarity_weight=1.0, rerank_id="judge", similarity_threshold=0.4)
    assert (contents(answer), answer["total"]) == ([TEXTS[1], TEXTS[2]], 2)


def test_it_is_asked_only_where_it_is_named_or_always(
    world: RestWorld, dataset_id: str, endpoint: EmbeddingEndpoint
) -> None:
    with_reranker(world, settings(endpoint))
    assert "rerank" not in ask(world, dataset_id)
    assert endpoint.asked == []
    for unknown in ("other", "judges", "@judge", 5):
        refused = world.refused(
            "POST", "/retrieval", json={"dataset_ids": [dataset_id], "question": "x", "rerank_id": unknown}
        )
        assert refused == (100, "`rerank_id` names a model that this server does not have")
    with_reranker(world, settings(endpoint, always=True))
    assert ask(world, dataset_id)["rerank"]["used"]


@pytest.mark.parametrize("mood", [hangs, refuses(500, "broken"), echoes_its_headers, says(200, b"no")])
def test_an_outage_leaves_the_order_of_the_index_and_is_told(
    world: RestWorld,
    dataset_id: str,
    endpoint: EmbeddingEndpoint,
    mood: Mood,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with_reranker(world, settings(endpoint, timeout_s=0.5))
    plain = ask(world, dataset_id)
    endpoint.always = mood
    with caplog.at_level(logging.DEBUG):
        answer = ask(world, dataset_id, rerank_id="judge")
    outcome = answer.pop("rerank")
    assert answer == plain
    assert (outcome["used"], outcome["count"]) == (False, 0)
    assert outcome["failure"].startswith("the rerank endpoint")
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [line for line in warnings if "a search keeps the index's order: the rerank endpoint" in line]
    assert KEY not in caplog.text + str(outcome)


def test_one_that_cannot_be_reached_fails_no_search(world: RestWorld, dataset_id: str) -> None:
    with embedding_endpoint() as gone:
        away = settings(gone)
    with_reranker(world, away)
    answer = ask(world, dataset_id, rerank_id="judge")
    assert len(answer["chunks"]) == 3
    assert "can't be reached" in answer["rerank"]["failure"]


def test_only_the_best_are_asked_about_and_the_others_follow(
    world: RestWorld, dataset_id: str, endpoint: EmbeddingEndpoint
) -> None:
    with_reranker(world, settings(endpoint, top_n=2))
    before = contents(ask(world, dataset_id))
    answer = ask(world, dataset_id, rerank_id="judge")
    assert endpoint.asked[0].body["documents"] == before[:2]
    assert contents(answer)[2] == before[2]
    assert answer["rerank"]["count"] == 2


def test_pages_of_one_window_are_reranked_together(
    world: RestWorld, dataset_id: str, endpoint: EmbeddingEndpoint
) -> None:
    with_reranker(world, settings(endpoint))
    fields = {"rerank_id": "judge", "vector_similarity_weight": 0.9, "page_size": 1}
    pages = [contents(ask(world, dataset_id, page=page, **fields)) for page in (1, 2, 3)]
    assert pages == [[TEXTS[1]], [TEXTS[2]], [TEXTS[0]]]


def test_nothing_found_asks_nothing(world: RestWorld, dataset_id: str, endpoint: EmbeddingEndpoint) -> None:
    with_reranker(world, settings(endpoint))
    answer = ask(world, dataset_id, '"no such phrase here"', rerank_id="judge")
    assert (answer["chunks"], endpoint.asked) == ([], [])
    assert answer["rerank"] == {"model": "judge", "used": True, "count": 0, "failure": None}


def test_an_explanation_has_both_scores(world: RestWorld, dataset_id: str, endpoint: EmbeddingEndpoint) -> None:
    with_reranker(world, settings(endpoint))
    cosines = {chunk["id"]: chunk["vector_similarity"] for chunk in ask(world, dataset_id)["chunks"]}
    for chunk in ask(world, dataset_id, rerank_id="judge", explain=True)["chunks"]:
        assert chunk["explain"]["rerank_score"] == by_town(chunk["content"])
        assert chunk["explain"]["cosine"] == pytest.approx(cosines[chunk["id"]], abs=1e-3)
