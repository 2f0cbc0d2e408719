"""The index on Elasticsearch where it is not like the others: what it makes there, errors line by line, credentials,
refreshes, candidates, deep pages. What it shares is in test_index_contract.py."""

from __future__ import annotations

import datetime
import ipaddress
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from elasticsearch import Elasticsearch

from common.errors import IndexUnavailable, InvalidInput, SettingsError
from common.settings import IndexSettings
from rag.utils import es_bulk, es_query, es_reads, es_search, es_writes
from rag.utils.doc_index import Scope
from rag.utils.es_index import ElasticIndex
from tests.elastic_indexes import elastic_index, elastic_settings, empty, shared_settings
from tests.indexes import DIMENSION, SET, ask, axis, chunk, ids, put
from tests.servers.meddler import Answer, Heard, Meddler, meddling
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def settings(elasticsearch_url: str) -> Iterator[IndexSettings]:
    made = shared_settings(elasticsearch_url)
    yield made
    empty(made)


@pytest.fixture
def index(settings: IndexSettings) -> Iterator[ElasticIndex]:
    made = ElasticIndex(settings)
    yield made
    made.close()


@pytest.fixture
def fresh(elasticsearch_url: str) -> IndexSettings:
    """Under a prefix where nothing is yet."""
    return elastic_settings(elasticsearch_url)


@pytest.fixture
def fresh_index(fresh: IndexSettings) -> Iterator[ElasticIndex]:
    with elastic_index(fresh) as made:
        yield made


@pytest.fixture
def client(settings: IndexSettings) -> Iterator[Elasticsearch]:
    with Elasticsearch(settings.url) as made:
        yield made


@pytest.fixture
def meddler(settings: IndexSettings) -> Iterator[Meddler]:
    with meddling(settings.url) as made:
        yield made


@pytest.fixture
def meddled(settings: IndexSettings, meddler: Meddler) -> Iterator[ElasticIndex]:
    """An index behind the meddler."""
    made = ElasticIndex(settings.model_copy(update={"url": meddler.url}))
    yield made
    made.close()


def refusal(status: int, kind: str = "es_rejected_execution_exception") -> Answer:
    body = {"error": {"type": kind, "reason": "too much to do"}, "status": status}
    return Answer(
        status, json.dumps(body).encode(), {"content-type": "application/json", "x-elastic-product": "Elasticsearch"}
    )


# What it makes there


def test_nothing_is_made_before_the_first_write(
    fresh_index: ElasticIndex, fresh: IndexSettings, client: Elasticsearch
) -> None:
    assert fresh_index.count(SET) == 0
    assert fresh_index.get("tenant", ["a"]) == []
    assert fresh_index.search(ask("whale")) == []
    assert fresh_index.delete(SET) == 0
    assert fresh_index.wait_findable("tenant", 1, 1.0)
    assert dict(client.indices.get(index=f"{fresh.prefix}-*")) == {}


def test_an_alias_for_each_tenant_and_length_over_an_index_with_a_version(
    fresh_index: ElasticIndex, fresh: IndexSettings, client: Elasticsearch
) -> None:
    put(fresh_index, chunk("a"))
    fresh_index.upsert([chunk("b", dataset_id="short")], np.ones((1, 3), np.float32))
    put(fresh_index, chunk("c", tenant_id="stranger"))
    made = {name: list(told["aliases"]) for name, told in client.indices.get(index=f"{fresh.prefix}-*").items()}
    alias = f"{fresh.prefix}-tenant-8"
    assert made == {
        f"{alias}-v1": [alias],
        f"{fresh.prefix}-tenant-3-v1": [f"{fresh.prefix}-tenant-3"],
        f"{fresh.prefix}-stranger-8-v1": [f"{fresh.prefix}-stranger-8"],
    }
    told = client.indices.get(index=f"{alias}-v1")[f"{alias}-v1"]
    assert told["mappings"]["dynamic"] == "strict"
    assert told["mappings"]["properties"]["vector"]["dims"] == 8
    assert told["settings"]["index"]["refresh_interval"] == "3600000ms"
    assert told["settings"]["index"]["translog"]["durability"] == "request"


def test_datasets_with_vectors_of_other_lengths_live_side_by_side(index: ElasticIndex) -> None:
    put(index, chunk("long", "whale"))
    sequence = index.upsert([chunk("short", "whale", dataset_id="short")], np.ones((1, 3), np.float32))
    both = ("set", "short")
    words = ask("whale", np.zeros(0, np.float32), dataset_ids=both)
    assert sorted(ids(index.search(words, at_least=sequence))) == ["long", "short"]
    near = ask("", np.ones(3, np.float32), dataset_ids=("short",))
    assert ids(index.search(near, at_least=sequence)) == ["short"]
    with pytest.raises(InvalidInput, match="3 numbers"):
        index.search(ask("", np.ones(3, np.float32), dataset_ids=both), at_least=sequence)
    assert [found.id for found in index.get("tenant", ["short", "long"])] == ["short", "long"]
    moved = index.upsert([chunk("long", "whale", dataset_id="short")], np.ones((1, 3), np.float32))
    assert index.count(SET) == 0
    assert index.count(Scope("tenant", "short")) == 2
    assert index.get("tenant", ["long"])[0].dataset_id == "short"
    assert len(index.search(words, at_least=moved)) == 2


def test_two_that_write_first_make_one_index(fresh_index: ElasticIndex, fresh: IndexSettings) -> None:
    others = [ElasticIndex(fresh) for _ in range(6)]
    errors: list[Exception] = []

    def write(number: int) -> None:
        try:
            put(others[number], chunk(f"c{number}"))
        except Exception as exc:  # noqa: BLE001  handed to the test's own thread
            errors.append(exc)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for other in others:
        other.close()
    assert errors == []
    assert fresh_index.count(SET) == 6


def test_an_id_of_a_tenant_that_is_no_name_is_refused(index: ElasticIndex) -> None:
    for tenant_id in ("", "*", "a,b", "a-b", "Ä", "../x", "x" * 65):
        with pytest.raises(InvalidInput, match="tenant"):
            index.count(Scope(tenant_id, "set"))


# Errors, line by line


def test_a_chunk_that_is_refused_is_named_and_none_is_written(index: ElasticIndex) -> None:
    put(index, chunk("old", "before"))
    made = [chunk(f"c{n}") for n in range(5)]
    with pytest.raises(InvalidInput) as refused:
        put(index, *made, chunk("old", "after"), chunk("bad", document_id="x" * 40_000), chunk("worse", page=2**40))
    message = refused.value.public_message
    assert "2 of 8 chunks" in message
    assert "chunk bad:" in message and "immense term" in message
    assert "chunk worse:" in message and "out of range" in message
    assert len(message) < 1000
    assert [(found.id, found.text) for found in index.list(SET, 0, 10).chunks] == [("old", "before")]
    _, vectors = index.read_all(SET)
    assert np.allclose(vectors, axis(0), atol=1e-3)


def test_an_id_that_is_too_long_is_refused_before_anything_is_sent(meddled: ElasticIndex, meddler: Meddler) -> None:
    with pytest.raises(InvalidInput, match="id of 0 or more than 512 bytes"):
        put(meddled, chunk("a"), chunk("x" * 513))
    assert meddler.paths("_bulk") == []


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_is_too_busy_is_asked_again(meddled: ElasticIndex, meddler: Meddler, status: int) -> None:
    refusals = [refusal(status), refusal(status)]
    meddler.answer = lambda heard: refusals.pop() if "_bulk" in heard.path and refusals else None
    put(meddled, *(chunk(f"c{n}") for n in range(5)))
    assert refusals == []
    assert meddled.count(SET) == 5


def test_only_the_lines_that_were_not_taken_are_sent_again(meddled: ElasticIndex, meddler: Meddler) -> None:
    put(meddled, chunk("first"))
    busy = {"c1", "c3"}

    def refuse_once(heard: Heard) -> Answer | None:
        """Take the other lines only, and tell of these that the queue is full."""
        if "_bulk" not in heard.path or not busy:
            return None
        lines = heard.body.splitlines()
        pairs = list(zip(lines[::2], lines[1::2], strict=True))
        taken = [pair for pair in pairs if json.loads(pair[0])["create"]["_id"] not in busy]
        assert len(taken) == 3
        body = b"".join(line + b"\n" for pair in taken for line in pair)
        done = json.loads(meddler.pass_on(Heard(heard.method, heard.path, sized(heard, body), body)).body)["items"]
        items = [done.pop(0) if pair in taken else too_busy(pair) for pair in pairs]
        busy.clear()
        told = {"took": 1, "errors": True, "items": items}
        return Answer(200, json.dumps(told).encode(), refusal(200).headers)

    def too_busy(pair: tuple[bytes, bytes]) -> dict[str, Any]:
        error = {"type": "es_rejected_execution_exception", "reason": "queue is full"}
        return {"create": {"_id": json.loads(pair[0])["create"]["_id"], "status": 429, "error": error}}

    def sized(heard: Heard, body: bytes) -> dict[str, str]:
        return {name: value for name, value in heard.headers.items() if name.lower() != "content-length"}

    meddler.answer = refuse_once
    put(meddled, *(chunk(f"c{n}") for n in range(5)))
    assert meddled.count(SET) == 6
    last = meddler.paths("_bulk")[-1].body.splitlines()
    assert [json.loads(line)["create"]["_id"] for line in last[::2]] == ["c1", "c3"]


def test_a_server_that_stays_too_busy_is_an_outage(
    meddled: ElasticIndex, meddler: Meddler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(es_writes, "_PATIENCE_S", 0.5)
    meddler.answer = lambda heard: refusal(429) if "_bulk" in heard.path else None
    with pytest.raises(IndexUnavailable, match="too much to do"):
        put(meddled, chunk("a"))
    assert len(meddler.paths("_bulk")) > 1


def test_a_lost_answer_is_an_outage_and_the_next_try_replaces(meddled: ElasticIndex, meddler: Meddler) -> None:
    put(meddled, chunk("a", "first"))

    def lose(heard: Heard, answer: Answer) -> Answer:
        meddler.away = "_bulk" in heard.path
        return Answer(500, b"") if meddler.away else answer

    meddler.change = lose
    with pytest.raises(IndexUnavailable):
        put(meddled, chunk("b", "second"))
    with pytest.raises(IndexUnavailable):
        meddled.count(SET)
    meddler.away, meddler.change = False, lambda heard, answer: answer
    put(meddled, chunk("b", "second again"))
    assert [found.text for found in meddled.list(SET, 0, 10).chunks] == ["first", "second again"]


def test_a_search_that_a_shard_does_not_answer_is_no_smaller_answer(meddled: ElasticIndex, meddler: Meddler) -> None:
    sequence = put(meddled, chunk("a", "whale"))
    meddler.answer = lambda heard: refusal(503, "search_phase_execution_exception") if "_search" in heard.path else None
    for action in (
        lambda: meddled.search(ask("whale"), at_least=sequence),
        lambda: meddled.count(SET),
        lambda: meddled.list(SET, 0, 10),
        lambda: meddled.read_all(SET),
        lambda: list(meddled.tally()),
    ):
        with pytest.raises(IndexUnavailable):
            action()
    assert all("allow_partial_search_results=false" in heard.path for heard in meddler.paths("_search"))


def test_many_chunks_go_in_parts(meddled: ElasticIndex, meddler: Meddler, monkeypatch: pytest.MonkeyPatch) -> None:
    put(meddled, chunk("first"))
    before = len(meddler.paths("_bulk"))
    monkeypatch.setattr(es_bulk, "_MOST_LINES", 4)
    put(meddled, *(chunk(f"c{n}") for n in range(10)))
    assert len(meddler.paths("_bulk")) == before + 3
    monkeypatch.setattr(es_bulk, "_MOST_BYTES", 3000)
    put(meddled, *(chunk(f"big{n}", "x" * 2000) for n in range(3)))
    assert len(meddler.paths("_bulk")) == before + 6
    assert meddled.count(SET) == 14


# The server and its credentials


@pytest.mark.parametrize(
    ("fields", "userinfo", "sent"),
    [
        ({"username": "miller", "password": "s3cret"}, "", "Basic bWlsbGVyOnMzY3JldA=="),
        ({}, "miller:s3cret@", "Basic bWlsbGVyOnMzY3JldA=="),
        ({"api_key": "s3cret"}, "", "ApiKey s3cret"),
    ],
)
def test_credentials_are_sent_and_never_told(
    settings: IndexSettings, meddler: Meddler, fields: dict[str, str], userinfo: str, sent: str
) -> None:
    url = meddler.url.replace("://", f"://{userinfo}")
    index = ElasticIndex(IndexSettings(url=url, prefix=settings.prefix, **fields))
    index.check()
    assert {heard.headers.get("authorization") for heard in meddler.heard} == {sent}
    meddler.answer = lambda heard: refusal(401, "security_exception")
    with pytest.raises(IndexUnavailable) as refused:
        index.check()
    index.close()
    assert "401" in refused.value.public_message
    assert meddler.url in refused.value.public_message
    assert "s3cret" not in refused.value.public_message
    assert "s3cret" not in repr(IndexSettings(url=meddler.url, **fields))


def test_settings_that_cannot_be_right_are_refused() -> None:
    both = IndexSettings(url="https://h:9200", username="miller", password="x", api_key="y")
    with pytest.raises(SettingsError, match=r"index\.api_key and index\.username"):
        ElasticIndex(both)
    with pytest.raises(SettingsError, match=r"index\.url"):
        ElasticIndex(IndexSettings(url="https://h:123456"))
    with pytest.raises(SettingsError, match=r"index\.ca_file"):
        ElasticIndex(IndexSettings(url="https://h:9200", ca_file="/no/such/file"))


def test_a_certificate_is_checked_with_the_file_that_the_settings_name(settings: IndexSettings, tmp_path: Path) -> None:
    context = self_signed(tmp_path / "own.pem")
    with meddling(settings.url, context) as meddler:
        trusting = ElasticIndex(settings.model_copy(update={"url": meddler.url, "ca_file": str(tmp_path / "own.pem")}))
        trusting.check()
        trusting.close()
        wary = ElasticIndex(settings.model_copy(update={"url": meddler.url}))
        with pytest.raises(IndexUnavailable, match=r"(?i)certificate"):
            wary.check()
        wary.close()


def self_signed(path: Path) -> ssl.SSLContext:
    """A server's context, its new certificate and key in the file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(certificate.public_bytes(pem) + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def test_a_server_that_is_no_elasticsearch_is_an_outage(meddled: ElasticIndex, meddler: Meddler) -> None:
    meddler.answer = lambda heard: Answer(200, b'{"hello": "there"}', {"content-type": "application/json"})
    with pytest.raises(IndexUnavailable, match="no Elasticsearch"):
        meddled.check()


def test_an_index_that_takes_no_writes_is_not_healthy(
    fresh_index: ElasticIndex, fresh: IndexSettings, client: Elasticsearch
) -> None:
    put(fresh_index, chunk("a"))
    fresh_index.check()
    client.indices.add_block(index=f"{fresh.prefix}-tenant-8-v1", block="write")
    with pytest.raises(IndexUnavailable, match="writes are blocked"):
        fresh_index.check()


# Refreshes


def test_one_refresh_serves_all_that_wait(meddled: ElasticIndex, meddler: Meddler) -> None:
    sequence = put(meddled, chunk("a", "whale"))
    first_begun, go_on = threading.Event(), threading.Event()

    def hold_the_first(heard: Heard) -> Answer | None:
        if "_refresh" in heard.path and not first_begun.is_set():
            first_begun.set()
            go_on.wait(30)
        return None

    meddler.answer = hold_the_first
    answers: list[bool] = []
    waiting = [
        threading.Thread(target=lambda: answers.append(meddled.wait_findable("tenant", sequence, 30)))
        for _ in range(12)
    ]
    waiting[0].start()
    assert first_begun.wait(30)
    assert not meddled.wait_findable("tenant", sequence, 0.01)
    for thread in waiting[1:]:
        thread.start()
    wait_until(lambda: sum(thread.is_alive() for thread in waiting) == 12)
    go_on.set()
    for thread in waiting:
        thread.join(30)
    assert answers == [True] * 12
    # The one that was under way, and one for all who came after it had begun.
    assert 2 <= len(meddler.paths("_refresh")) <= 3
    assert ids(meddled.search(ask("whale"))) == ["a"]


def test_a_search_refreshes_once_for_what_it_has_to_see(meddled: ElasticIndex, meddler: Meddler) -> None:
    sequence = put(meddled, chunk("a", "whale"))
    assert meddled.search(ask("whale")) == []
    assert meddler.paths("_refresh") == []
    for _ in range(3):
        assert ids(meddled.search(ask("whale"), at_least=sequence)) == ["a"]
    assert len(meddler.paths("_refresh")) == 1
    assert not any("refresh=" in heard.path for heard in meddler.heard)


# Searches of many chunks, lists of many


def test_candidates_are_scored_as_all_chunks_are(index: ElasticIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(11)
    words = ["whale", "tiger", "ocean", "forest", "night", "river"]
    made = [chunk(f"c{n:03}", " ".join(rng.choice(words, 1 + n % 6)), document_id=f"doc{n % 4}") for n in range(400)]
    sequence = index.upsert(made, rng.normal(size=(400, DIMENSION)))
    queries = [
        ask("whale river", rng.normal(size=DIMENSION).astype(np.float32), vector_weight=weight, limit=10, **fields)
        for weight in (0.0, 0.3, 1.0)
        for fields in ({}, {"document_ids": ("doc1", "doc3")})
    ]
    exact = [index.search(query, at_least=sequence) for query in queries]
    monkeypatch.setattr(es_search, "_FEW", 0)
    for query, expected in zip(queries, exact, strict=True):
        found = index.search(query)
        assert len(found) == 10
        same = {hit.chunk.id: hit for hit in expected}
        common = [hit for hit in found if hit.chunk.id in same]
        assert len(common) >= (10 if query.vector_weight else 7)
        for hit in common:
            assert hit.similarity == pytest.approx(same[hit.chunk.id].similarity, abs=1e-4)


def test_a_list_reaches_far_back(index: ElasticIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    put(index, *(chunk(f"c{n:03}", ordinal=n) for n in range(250)))
    monkeypatch.setattr(es_reads, "_DEEP", 20)
    monkeypatch.setattr(es_reads, "_PASSED_AT_ONCE", 70)
    for offset in (15, 70, 139, 140, 245, 249):
        found = index.list(SET, offset, 10)
        assert (found.total, [one.ordinal for one in found.chunks]) == (250, list(range(offset, min(offset + 10, 250))))
    assert index.list(SET, 250, 10).chunks == []


def test_a_delete_of_more_than_a_slice_leaves_nothing(index: ElasticIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(es_writes, "_DELETE_SLICE", 7)
    put(index, *(chunk(f"c{n}") for n in range(25)), chunk("kept", document_id="doc2"))
    assert index.delete(Scope("tenant", "set", "doc")) > 0
    assert [found.id for found in index.list(SET, 0, 10).chunks] == ["kept"]


def test_a_filter_takes_more_documents_than_a_list_may_hold(
    index: ElasticIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(es_query, "_MOST_TERMS", 3)
    sequence = put(index, *(chunk(f"c{n}", "whale", document_id=f"doc{n}") for n in range(9)))
    some = tuple(f"doc{n}" for n in range(1, 9))
    assert ids(index.search(ask("whale", document_ids=some), at_least=sequence)) == [f"c{n}" for n in range(1, 9)]


def test_more_hits_than_can_be_given_may_be_asked_for(index: ElasticIndex) -> None:
    sequence = put(index, chunk("a", "whale"), chunk("b", "whale"))
    assert ids(index.search(ask("whale", limit=1_000_000), at_least=sequence)) == ["a", "b"]
