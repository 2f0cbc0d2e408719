"""The product with an endpoint that embeds: its outages cost time and nothing else, and what it gave is kept."""

from __future__ import annotations

import json
import random
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests import processes
from tests.acceptance.instance import Instance, running_instance
from tests.servers import embedding_endpoint as server
from tests.servers.embedding_endpoint import EmbeddingEndpoint
from tests.waiting import PATIENCE_S, wait_for, wait_until

pytestmark = pytest.mark.timeout(600)

KEY = "sk-never-to-be-seen-4711"
WORDS = ("paper", "mill", "river", "wheel", "press", "sheet", "water", "fibre", "ink", "page", "stack", "bale", "pulp")
TEN_MINUTES_MS = 600_000
STEP_MS = 120_000


@pytest.fixture(scope="module")
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with server.embedding_endpoint(dimension=64) as running:
        yield running


@pytest.fixture(scope="module")
def instance(short_dir: Path, endpoint: EmbeddingEndpoint) -> Iterator[Instance]:
    settings = {
        "PAGEMILL_EMBEDDING_URL": endpoint.url,
        "PAGEMILL_EMBEDDING_MODEL": "tiny",
        "PAGEMILL_EMBEDDING_API_KEY": KEY,
        "PAGEMILL_EMBEDDING_BATCH_SIZE": "8",
        "PAGEMILL_EXECUTOR_PROCESSES": "1",
        "PAGEMILL_TASKS_BACKOFF_S": "0.2",
        "PAGEMILL_TASKS_BACKOFF_MAX_S": "2",
        "PAGEMILL_LOG_LEVEL": "DEBUG",
    }
    with running_instance(short_dir / "endpoint", **settings) as made:
        yield made
        assert made.stop() == 0
        assert KEY not in made.output()


@pytest.fixture(autouse=True)
def well_again(endpoint: EmbeddingEndpoint) -> Iterator[None]:
    yield
    endpoint.always = server.well
    endpoint.next_moods.clear()


def text_file(path: Path, seed: int, paragraphs: int = 24) -> Path:
    """Each paragraph becomes a chunk, whatever the chunk method."""
    chosen = random.Random(seed)
    texts = [" ".join(chosen.choices(WORDS, k=90)) + f" number{seed}x{n}." for n in range(paragraphs)]
    path.write_text("\n\n".join(texts))
    return path


def started(instance: Instance, tmp_path: Path, seed: int, method: str = "naive") -> tuple[str, str]:
    """A dataset with a document that is being parsed."""
    new = {"name": f"{method} {seed}", "chunk_method": method, "parser_config": {"chunk_token_num": 128}}
    made = instance.call("POST", "/datasets", new)
    assert made["code"] == 0, made
    dataset_id = str(made["data"]["id"])
    document_id = instance.upload(dataset_id, text_file(tmp_path / f"{seed}.txt", seed))
    assert instance.parse(dataset_id, document_id) == {"code": 0}
    return dataset_id, document_id


def wait_says(instance: Instance, dataset_id: str, document_id: str, pattern: str) -> str:
    def said() -> str:
        text = str(instance.document(dataset_id, document_id)["progress_msg"])
        return text if re.search(pattern, text) else ""

    return wait_for(said, what=f"the sentence {pattern}", look_s=0.05)


def attempts(instance: Instance, document_id: str) -> set[tuple[int, int]]:
    return {(a, lost) for a, lost in instance.query("SELECT attempt, losses FROM task WHERE doc_id = ?", document_id)}


def let_pass(instance: Instance, document_id: str, ms: int) -> bool:
    """Put a waiting task back in time, as if so much of it had passed; whether there was one."""
    with closing(sqlite3.connect(instance.data / "pagemill.db", timeout=PATIENCE_S)) as rows:
        moved = rows.execute(
            "UPDATE task SET run_after = run_after - ?, waiting_since = waiting_since - ?"
            " WHERE doc_id = ? AND state = 0 AND waiting_since > 0",
            (ms, ms, document_id),
        ).rowcount
        rows.commit()
    return moved > 0


def sent_of(endpoint: EmbeddingEndpoint, seed: int) -> list[str]:
    """The paragraphs of this file that the endpoint was sent."""
    return [text for text in endpoint.texts if f"number{seed}x" in text]


def counted(instance: Instance) -> dict[str, Any]:
    (executor,) = json.loads(instance.run("status", "--json").stdout)["executors"]
    found: dict[str, Any] = executor
    return found


def test_a_429_is_waited_for_as_long_as_the_endpoint_asked(
    instance: Instance, endpoint: EmbeddingEndpoint, tmp_path: Path
) -> None:
    endpoint.always = server.refuses(429, "slow down", Retry_After="5")
    asked_before = len(endpoint.asked)
    dataset_id, document_id = started(instance, tmp_path, 1)
    said = wait_says(instance, dataset_id, document_id, "answered 429")
    assert re.fullmatch(
        r"waiting since \d\d:\d\d:\d\d UTC: the embedding endpoint answered 429: slow down; the next try in [1-6] s",
        said,
    )
    endpoint.always = server.well
    assert len(endpoint.asked) <= asked_before + 4, "its calls were under way together, four at most; none came after"
    document = instance.wait_ended(dataset_id, document_id)
    assert document["run"] == "DONE", document["progress_msg"]
    assert document["chunk_count"] == 24
    assert attempts(instance, document_id) == {(0, 0)}
    found = instance.search(dataset_id, "number1x7")
    assert "number1x7" in found[0]["content"]


def test_an_endpoint_that_is_away_for_ten_minutes_costs_no_attempt(
    instance: Instance, endpoint: EmbeddingEndpoint, tmp_path: Path
) -> None:
    endpoint.always = server.refuses(503, "overloaded")
    dataset_id, document_id = started(instance, tmp_path, 2)
    for _ in range(0, TEN_MINUTES_MS, STEP_MS):
        asked = len(endpoint.asked)
        said = wait_says(instance, dataset_id, document_id, "answered 503: overloaded; the next try")
        assert said.startswith("waiting since ")
        wait_until(lambda: let_pass(instance, document_id, STEP_MS), what="the task to wait")
        wait_until(lambda asked=asked: len(endpoint.asked) > asked, what="the next try")  # type: ignore[misc]
    question = {"dataset_ids": [dataset_id], "question": "paper"}
    answer = instance.call("POST", "/retrieval", question)
    assert answer["code"] != 0, "an outage is no empty answer"
    assert "the embedding endpoint answered 503" in answer["message"]
    endpoint.always = server.well
    document = instance.wait_ended(dataset_id, document_id)
    assert document["run"] == "DONE", document["progress_msg"]
    assert attempts(instance, document_id) == {(0, 0)}


def test_what_was_embedded_is_not_asked_for_again(
    instance: Instance, endpoint: EmbeddingEndpoint, tmp_path: Path
) -> None:
    dataset_id, document_id = started(instance, tmp_path, 3)
    assert instance.wait_ended(dataset_id, document_id)["run"] == "DONE"
    sent, before = sent_of(endpoint, 3), counted(instance)
    assert len(sent) == 24
    dataset_id, document_id = started(instance, tmp_path, 3, "book")
    document = instance.wait_ended(dataset_id, document_id)
    assert document["run"] == "DONE", document["progress_msg"]
    assert "reused" not in document["progress_msg"], "another method is another range; its texts are the same"
    assert document["chunk_count"] == 24
    assert sent_of(endpoint, 3) == sent

    def hits() -> bool:
        return bool(counted(instance)["embedding_cache_hits"] >= before["embedding_cache_hits"] + 24)

    wait_until(hits, what="the hits in the heartbeat", look_s=0.5)
    assert re.search(r"cached texts", instance.run("status").stdout)
    assert "number3x5" in instance.search(dataset_id, "number3x5")[0]["content"]


def test_a_call_that_fails_half_way_goes_on_where_it_was(
    instance: Instance, endpoint: EmbeddingEndpoint, tmp_path: Path
) -> None:
    endpoint.next_moods = [server.well, server.hangs_up, server.hangs_up]
    dataset_id, document_id = started(instance, tmp_path, 4)
    assert instance.wait_ended(dataset_id, document_id)["run"] == "DONE"
    assert attempts(instance, document_id) == {(0, 0)}
    sent = sent_of(endpoint, 4)
    assert len(set(sent)) == 24
    assert len(sent) < 48, "what had been answered was not sent again"


def test_a_wrong_key_fails_the_document_and_says_why(
    instance: Instance, endpoint: EmbeddingEndpoint, tmp_path: Path
) -> None:
    endpoint.always = server.echoes_its_headers
    dataset_id, document_id = started(instance, tmp_path, 5)
    document = instance.wait_ended(dataset_id, document_id)
    assert document["run"] == "FAIL"
    assert "the embedding endpoint answered 401" in document["progress_msg"]
    doctor = instance.run("doctor", check=False)
    assert doctor.returncode == 1
    assert "wrong embedding model: the embedding endpoint answered 401" in doctor.stdout
    assert "check embedding.url, embedding.model, embedding.api_key" in doctor.stdout
    endpoint.always = server.well
    assert "ok    embedding model" in instance.run("doctor").stdout
    assert "1 run again" in instance.run("tasks", "replay", "--document", document_id).stdout
    assert instance.wait_ended(dataset_id, document_id)["run"] == "DONE"


def test_the_name_of_the_model_is_that_of_the_endpoint(instance: Instance) -> None:
    answer = instance.call("GET", "/datasets")
    assert {dataset["embedding_model"] for dataset in answer["data"]} == {"tiny@OpenAI-API-Compatible"}
    assert instance.query("SELECT DISTINCT embedding_model FROM tenant") == [("tiny@OpenAI-API-Compatible",)]


def test_the_key_is_nowhere(instance: Instance, endpoint: EmbeddingEndpoint) -> None:
    assert {asked.headers["authorization"] for asked in endpoint.asked} == {f"Bearer {KEY}"}
    for command in (("config",), ("config", "--json"), ("doctor",), ("status", "--json"), ("tasks", "failed")):
        done = instance.run(*command, check=False)
        assert KEY not in done.stdout + done.stderr, command
    assert all(KEY not in processes.command_line(process) for process in instance.descendants())
    files = [path for path in instance.data.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
    assert KEY not in instance.output()


def test_an_executor_that_drains_does_not_wait_for_an_endpoint_that_hangs(
    short_dir: Path, tmp_path: Path, endpoint: EmbeddingEndpoint
) -> None:
    settings = {
        "PAGEMILL_EMBEDDING_URL": endpoint.url,
        "PAGEMILL_EMBEDDING_MODEL": "tiny",
        "PAGEMILL_EMBEDDING_TIMEOUT_S": "500",
        "PAGEMILL_EXECUTOR_PROCESSES": "1",
        "PAGEMILL_EXECUTOR_DRAIN_GRACE_S": "0.5",
    }
    with running_instance(short_dir / "hanging", **settings) as made:
        endpoint.always = server.hangs
        asked = len(endpoint.asked)
        _, document_id = started(made, tmp_path, 6)
        wait_until(lambda: len(endpoint.asked) > asked, what="the call that hangs")
        assert made.stop(timeout_s=60) == 0
        assert made.query("SELECT state, attempt, losses FROM task WHERE doc_id = ?", document_id) == [(0, 0, 0)]
