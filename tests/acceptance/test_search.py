"""Searching the running product on both indexes: phrases and explanations, by the command line and over REST."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.instance import Instance, running_instance
from tests.elastic_indexes import elastic_settings, remove_all
from tests.indexes import KINDS

pytestmark = pytest.mark.timeout(600)

FILES = {
    "rivers of europe.txt": "The river Danube flows through Vienna.",
    "towns.txt": "Through Vienna flows much, says the river guide.",
    "han.txt": "\u6211\u4eec\u67e5\u4e2d\u6587\u5b57\u5178\u3002",
}


@pytest.fixture(scope="module", params=KINDS)
def instance(request: pytest.FixtureRequest, short_dir: Path) -> Iterator[Instance]:
    environ = {"PAGEMILL_EXECUTOR_PROCESSES": "1"}
    if request.param == "embedded":
        with running_instance(short_dir / "search", **environ) as made:
            yield made
        return
    settings = elastic_settings(request.getfixturevalue("elasticsearch_url"))
    environ |= {"PAGEMILL_INDEX_URL": settings.url, "PAGEMILL_INDEX_PREFIX": settings.prefix}
    with running_instance(short_dir / "esearch", PAGEMILL_INDEX_REPLICAS="0", **environ) as made:
        yield made
    remove_all(settings.url, settings.prefix)


@pytest.fixture(scope="module")
def dataset_id(instance: Instance, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    instance.run("ingest", *(str(folder / name) for name in FILES), "--dataset", "why")
    found = instance.call("GET", "/datasets?name=why")
    return str(found["data"][0]["id"])


def documents(instance: Instance, dataset_id: str, question: str) -> set[str]:
    return {str(found["document_keyword"]) for found in instance.search(dataset_id, question)}


def test_a_phrase_finds_what_has_it(instance: Instance, dataset_id: str) -> None:
    assert documents(instance, dataset_id, "river Vienna flows") >= {"rivers of europe.txt", "towns.txt"}
    assert documents(instance, dataset_id, '"flows through Vienna"') == {"rivers of europe.txt"}
    assert documents(instance, dataset_id, "\u201cthrough vienna flow\u201d") == {"towns.txt"}
    assert documents(instance, dataset_id, '"Vienna through"') == set()
    assert documents(instance, dataset_id, '"\u4e2d\u6587\u5b57\u5178"') == {"han.txt"}


def test_an_explanation_is_the_same_by_rest_and_by_command(instance: Instance, dataset_id: str) -> None:
    question = 'Which "river Danube" in Viena, europe?'
    told: dict[str, Any] = json.loads(
        instance.run("search", question, "--dataset", "why", "--explain", "--json").stdout
    )
    body = {"dataset_ids": [dataset_id], "question": question, "explain": True}
    answer = instance.call("POST", "/retrieval", body)["data"]
    assert told["question"] == answer["explain"]
    assert [hit["explain"] for hit in told["hits"]] == [found["explain"] for found in answer["chunks"]]
    (hit,) = told["hits"]
    words = {word["word"]: word for word in hit["explain"]["words"]}
    assert (words["viena"]["searched_as"], words["river"]["found_in"]) == ("vienna", ["text", "file name"])
    assert (hit["explain"]["rank_by_words"], hit["explain"]["rank_by_vectors"]) == (1, 1)
    said = instance.run("search", question, "--dataset", "why", "--explain").stdout
    assert "viena, taken for vienna: in 2 chunks" in said
    assert 'Only chunks with the phrase "river danub" are answered.' in said
