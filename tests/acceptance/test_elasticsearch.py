"""The running product on Elasticsearch: from upload to a found sentence, stop, parse again, delete, and the server away
in the middle of a parse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rag.utils.doc_index import Tally
from rag.utils.es_index import ElasticIndex
from tests.acceptance.instance import Instance, running_instance
from tests.elastic_indexes import elastic_settings, remove_all
from tests.pdfs import sentence, write_pages
from tests.servers.meddler import Answer, Heard, Meddler, meddling
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True)
class Site:
    """`index` looks straight at the server that the instance reaches through the meddler."""

    instance: Instance
    meddler: Meddler
    index: ElasticIndex

    def tally(self, document_id: str) -> list[Tally]:
        return [one for one in self.index.tally() if one.document_id == document_id]

    def parsed(self, dataset_id: str, path: Path) -> str:
        document_id = self.instance.upload(dataset_id, path)
        self.instance.parse(dataset_id, document_id)
        document = self.instance.wait_ended(dataset_id, document_id)
        assert document["run"] == "DONE", document["progress_msg"]
        return document_id


@pytest.fixture(scope="module")
def site(elasticsearch_url: str, short_dir: Path) -> Iterator[Site]:
    settings = elastic_settings(elasticsearch_url)
    environ = {
        "PAGEMILL_INDEX_PREFIX": settings.prefix,
        "PAGEMILL_INDEX_REPLICAS": "0",
        "PAGEMILL_INDEX_REFRESH_S": "3600",
        "PAGEMILL_TASKS_BACKOFF_S": "0.2",
        "PAGEMILL_EXECUTOR_PROCESSES": "1",
    }
    with (
        meddling(elasticsearch_url) as meddler,
        running_instance(short_dir / "elastic", PAGEMILL_INDEX_URL=meddler.url, **environ) as instance,
    ):
        index = ElasticIndex(settings)
        yield Site(instance, meddler, index)
        assert instance.stop() == 0
        assert "Traceback" not in instance.output()
        index.close()
    remove_all(elasticsearch_url, settings.prefix)


@pytest.fixture(scope="module")
def dataset_id(site: Site) -> str:
    return site.instance.dataset("elastic")


def test_a_document_is_findable_the_moment_it_is_done(site: Site, dataset_id: str, tmp_path: Path) -> None:
    assert site.instance.children("api.cli indexer") == []
    assert not (site.instance.data / "index").exists()
    assert site.instance.run("doctor").returncode == 0
    for pages in (3, 30):
        document_id = site.parsed(dataset_id, write_pages(tmp_path / f"{pages}.pdf", pages))
        hit = site.instance.search(dataset_id, sentence(pages, 2))[0]
        assert (hit["document_id"], hit["positions"][0][0]) == (document_id, pages)
        document = site.instance.document(dataset_id, document_id)
        assert sum(one.count for one in site.tally(document_id)) == document["chunk_count"] >= pages
    listed = site.instance.call("GET", f"/datasets/{dataset_id}/documents/{document_id}/chunks?page=2&page_size=10")
    assert len(listed["data"]["chunks"]) == 10


def test_a_parse_again_leaves_one_generation(site: Site, dataset_id: str, tmp_path: Path) -> None:
    document_id = site.parsed(dataset_id, write_pages(tmp_path / "again.pdf", 14, heading="Anew"))
    first = site.instance.document(dataset_id, document_id)["chunk_count"]
    for generation in (2, 3):
        config = {"chunk_method": "naive", "parser_config": {"chunk_token_num": 500 + generation}}
        assert site.instance.call("PUT", f"/datasets/{dataset_id}/documents/{document_id}", config)["code"] == 0
        site.instance.parse(dataset_id, document_id)
        assert site.instance.wait_ended(dataset_id, document_id)["run"] == "DONE"
        hits = [hit for hit in site.instance.search(dataset_id, "Anew 7") if hit["document_id"] == document_id]
        assert len({hit["id"] for hit in hits}) == len(hits) <= first
        wait_until(lambda now=generation: {one.generation for one in site.tally(document_id)} == {now})
    assert sum(one.count for one in site.tally(document_id)) == first


def test_a_stopped_parse_is_not_found(site: Site, dataset_id: str, tmp_path: Path) -> None:
    document_id = site.instance.upload(dataset_id, write_pages(tmp_path / "long.pdf", 60, 20, heading="Stopped"))
    path = f"/datasets/{dataset_id}/documents/{document_id}"
    assert site.instance.call("PUT", path, {"parser_config": {"task_page_size": 6}})["code"] == 0
    site.instance.parse(dataset_id, document_id)
    wait_until(lambda: site.tally(document_id), what="the first chunks", look_s=0.05)
    site.instance.call("DELETE", f"/datasets/{dataset_id}/chunks", {"document_ids": [document_id]})
    assert site.instance.document(dataset_id, document_id)["run"] == "CANCEL"
    assert not [hit for hit in site.instance.search(dataset_id, "Stopped 1") if hit["document_id"] == document_id]
    site.instance.parse(dataset_id, document_id)
    assert site.instance.wait_ended(dataset_id, document_id)["run"] == "DONE"
    assert site.instance.search(dataset_id, "Stopped 59")[0]["document_id"] == document_id


def test_a_server_that_goes_away_is_waited_for(site: Site, dataset_id: str, tmp_path: Path) -> None:
    document_id = site.instance.upload(dataset_id, write_pages(tmp_path / "outage.pdf", 40, heading="Outage"))
    written: list[Heard] = []

    def cut_at_the_second_write(heard: Heard) -> Answer | None:
        if "_bulk" in heard.path:
            written.append(heard)
            site.meddler.away = len(written) == 2
        return None

    site.meddler.answer = cut_at_the_second_write
    site.instance.parse(dataset_id, document_id)
    try:
        wait_until(lambda: site.meddler.away, what="the second write")
        wait_until(
            lambda: "can't be used" in site.instance.document(dataset_id, document_id)["progress_msg"],
            what="the status to tell of it",
        )
        answer = site.instance.call("POST", "/retrieval", {"dataset_ids": [dataset_id], "question": "Outage"})
        assert answer["code"] != 0, "an outage is no empty answer"
        assert site.instance.document(dataset_id, document_id)["run"] == "RUNNING"
    finally:
        site.meddler.away = False
        site.meddler.answer = lambda heard: None
    document = site.instance.wait_ended(dataset_id, document_id)
    assert document["run"] == "DONE", document["progress_msg"]
    assert site.instance.search(dataset_id, "Outage 40")[0]["positions"][0][0] == 40
    attempts = site.instance.query("SELECT max(attempt), max(losses) FROM task WHERE doc_id = ?", document_id)
    assert attempts == [(0, 0)]
    wait_until(
        lambda: sum(one.count for one in site.tally(document_id)) == document["chunk_count"],
        what="the chunks of the claim that was cut off to be swept",
    )


def test_a_deleted_document_leaves_nothing_behind(site: Site, dataset_id: str, tmp_path: Path) -> None:
    document_id = site.parsed(dataset_id, write_pages(tmp_path / "gone.pdf", 14, heading="Gone"))
    assert site.tally(document_id)
    site.instance.call("DELETE", f"/datasets/{dataset_id}/documents", {"ids": [document_id]})
    assert not [hit for hit in site.instance.search(dataset_id, "Gone 3") if hit["document_id"] == document_id]
    wait_until(lambda: not site.tally(document_id), what="the sweeper")
