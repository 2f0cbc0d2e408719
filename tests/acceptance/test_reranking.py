"""The product with a reranker: asked by name over REST and always by setting, and its outage costs a search nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.instance import Instance, running_instance
from tests.servers.embedding_endpoint import EmbeddingEndpoint, embedding_endpoint, refuses
from tests.servers.rerank_endpoint import ranks_by

pytestmark = pytest.mark.timeout(600)

KEY = "sk-never-to-be-seen-4712"
TEXTS = {"a.txt": "The river Danube flows through Vienna.", "b.txt": "The river Rhine flows through Basel."}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with embedding_endpoint() as made:
        yield made


@pytest.fixture(scope="module")
def instance(short_dir: Path, endpoint: EmbeddingEndpoint) -> Iterator[Instance]:
    environ = {
        "PAGEMILL_RERANK_URL": endpoint.url,
        "PAGEMILL_RERANK_MODEL": "judge",
        "PAGEMILL_RERANK_API_KEY": KEY,
        "PAGEMILL_EXECUTOR_PROCESSES": "1",
        "PAGEMILL_LOG_LEVEL": "DEBUG",
    }
    with running_instance(short_dir / "rerank", **environ) as made:
        yield made
        assert made.stop() == 0
        assert KEY not in made.output()


@pytest.fixture(scope="module")
def dataset_id(instance: Instance, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("files")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    instance.run("ingest", *(str(folder / name) for name in TEXTS), "--dataset", "rivers")
    return str(instance.call("GET", "/datasets?name=rivers")["data"][0]["id"])


def ask(instance: Instance, dataset_id: str, **fields: Any) -> Any:
    body = {"dataset_ids": [dataset_id], "question": "river Vienna", "vector_similarity_weight": 0.9, **fields}
    answer = instance.call("POST", "/retrieval", body)
    assert answer["code"] == 0, answer
    return answer["data"]


def test_it_decides_where_it_is_named(instance: Instance, dataset_id: str, endpoint: EmbeddingEndpoint) -> None:
    endpoint.always = ranks_by(lambda text: 0.9 if "Basel" in text else 0.5)
    assert [found["document_keyword"] for found in ask(instance, dataset_id)["chunks"]] == ["a.txt", "b.txt"]
    answer = ask(instance, dataset_id, rerank_id="judge@Jina")
    assert [found["document_keyword"] for found in answer["chunks"]] == ["b.txt", "a.txt"]
    assert answer["rerank"] == {"model": "judge", "used": True, "count": 2, "failure": None}
    assert endpoint.asked[-1].headers["authorization"] == f"Bearer {KEY}"


def test_its_outage_is_told(instance: Instance, dataset_id: str, endpoint: EmbeddingEndpoint) -> None:
    endpoint.always = refuses(503, "overloaded")
    answer = ask(instance, dataset_id, rerank_id="judge")
    assert [found["document_keyword"] for found in answer["chunks"]] == ["a.txt", "b.txt"]
    assert answer["rerank"]["failure"] == "the rerank endpoint answered 503: overloaded"
    assert "a search keeps the index's order: the rerank endpoint answered 503" in instance.output()


def test_a_command_asks_it_where_the_settings_say_always(
    instance: Instance, dataset_id: str, endpoint: EmbeddingEndpoint
) -> None:
    instance.environ["PAGEMILL_RERANK_ALWAYS"] = "true"
    endpoint.always = ranks_by(lambda text: 0.9 if "Basel" in text else 0.5)
    told = json.loads(instance.run("search", "river Vienna", "--explain", "--json").stdout)
    assert (told["rerank"]["used"], told["rerank"]["count"]) == (True, 2)
    assert {hit["document"]: hit["explain"]["rerank_score"] for hit in told["hits"]} == {"a.txt": 0.5, "b.txt": 0.9}
    endpoint.always = refuses(503, "overloaded")
    done = instance.run("search", "river Vienna")
    assert "in the index's order: the rerank endpoint answered 503: overloaded" in done.stderr
    assert "a.txt" in done.stdout
    del instance.environ["PAGEMILL_RERANK_ALWAYS"]


def test_a_command_asks_it_where_it_is_told_to(
    instance: Instance, dataset_id: str, endpoint: EmbeddingEndpoint
) -> None:
    endpoint.always = ranks_by(lambda text: 0.9 if "Basel" in text else 0.5)
    assert json.loads(instance.run("search", "river Vienna", "--explain", "--json").stdout)["rerank"] is None
    told = json.loads(instance.run("search", "river Vienna", "--rerank", "--explain", "--json").stdout)
    assert told["rerank"]["used"]
    doctor = {part["part"]: part for part in json.loads(instance.run("doctor", "--json").stdout)}
    assert doctor["reranker"]["ok"]
    endpoint.always = refuses(401, "who are you?")
    done = instance.run("doctor", check=False)
    assert done.returncode == 1
    assert "reranker" in done.stdout and "check rerank.url" in done.stdout
    del instance.environ["PAGEMILL_RERANK_URL"]
    refused = instance.run("search", "river Vienna", "--rerank", check=False)
    assert refused.returncode == 1
    assert "there is no reranker to ask: set rerank.url and rerank.model" in refused.stderr
    instance.environ["PAGEMILL_RERANK_URL"] = endpoint.url
