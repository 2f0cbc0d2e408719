"""An endpoint over real HTTP: what it is asked, and what becomes of every way in which it can fail."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from common.errors import EmbeddingFailed, EmbeddingRefused, EmbeddingUnavailable, PagemillError, SettingsError
from common.settings import EmbeddingSettings
from rag.utils.endpoint_embedder import EndpointEmbedder
from tests.servers import embedding_endpoint as server
from tests.servers.embedding_endpoint import EmbeddingEndpoint
from tests.waiting import free_port

KEY = "sk-never-to-be-seen-4711"


@pytest.fixture
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with server.embedding_endpoint() as running:
        yield running


def opened(endpoint: EmbeddingEndpoint, **settings: object) -> EndpointEmbedder:
    given = {"url": endpoint.url, "model": "tiny", "api_key": KEY, "timeout_s": 5.0} | settings
    return EndpointEmbedder(EmbeddingSettings.model_validate(given))


def error_of(embedder: EndpointEmbedder, *texts: str) -> PagemillError:
    with pytest.raises(PagemillError) as caught:
        embedder.embed(texts or ("a text",))
    return caught.value


def test_what_is_sent_and_what_comes_back(endpoint: EmbeddingEndpoint) -> None:
    embedder = opened(endpoint)
    texts = ["one fish", "two fish", "one fish"]
    vectors = embedder.embed(texts)
    assert embedder.name == "tiny@OpenAI-API-Compatible"
    assert vectors.shape == (3, 16)
    assert vectors.dtype == np.float32
    expected = np.array([endpoint.vector(text) for text in texts])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.allclose(vectors, expected, atol=1e-6), "in the order of the texts, of length 1"
    (asked,) = endpoint.asked
    assert asked.path == "/v1/embeddings"
    assert asked.body == {"model": "tiny", "input": ["one fish", "two fish"], "encoding_format": "float"}
    assert asked.headers["authorization"] == f"Bearer {KEY}"


def test_an_endpoint_without_a_key_and_with_a_query(endpoint: EmbeddingEndpoint) -> None:
    opened(endpoint, api_key="", url=f"{endpoint.address}/deployments/d/?api-version=7").embed(["a"])
    assert endpoint.asked[0].path == "/deployments/d/embeddings?api-version=7"
    assert "authorization" not in endpoint.asked[0].headers


def test_a_key_from_a_file(endpoint: EmbeddingEndpoint, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    opened(endpoint, api_key="", api_key_file=str(tmp_path / "key")).embed(["a"])
    assert endpoint.asked[0].headers["authorization"] == f"Bearer {KEY}"


def test_many_texts_go_in_batches_over_one_connection(endpoint: EmbeddingEndpoint) -> None:
    vectors = opened(endpoint, batch_size=10).embed([f"text {n}" for n in range(25)])
    assert vectors.shape == (25, 16)
    assert [len(asked.texts) for asked in endpoint.asked] == [10, 10, 5]
    assert endpoint.connections == 1


def test_a_text_without_a_word_is_not_sent(endpoint: EmbeddingEndpoint) -> None:
    embedder = opened(endpoint)
    vectors = embedder.embed(["", "a", " \n"])
    assert endpoint.texts == ["a"]
    assert [bool(np.any(row)) for row in vectors] == [False, True, False]
    assert opened(endpoint).embed([" "]).shape == (1, 16), "also where its dimension is not known yet"
    assert embedder.embed([]).shape == (0, 16)
    assert embedder.embed(["half a pair \ud800"]).shape == (1, 16)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 408])
def test_a_server_in_trouble_is_an_outage(endpoint: EmbeddingEndpoint, status: int) -> None:
    endpoint.always = server.refuses(status, "not now")
    error = error_of(opened(endpoint))
    assert isinstance(error, EmbeddingUnavailable)
    assert error.public_message == f"the embedding endpoint answered {status}: not now"
    assert error.retry_after_s is None
    assert len(endpoint.asked) == 1, "nothing is tried over and over here"


def test_retry_after_is_carried_and_kept_to(endpoint: EmbeddingEndpoint) -> None:
    endpoint.next_moods = [server.refuses(429, "slow down", Retry_After="60")]
    embedder = opened(endpoint)
    first = error_of(embedder)
    again = error_of(embedder)
    assert isinstance(first, EmbeddingUnavailable)
    assert isinstance(again, EmbeddingUnavailable)
    assert first.retry_after_s == 60.0
    assert again.retry_after_s is not None
    assert 50 < again.retry_after_s <= 60
    assert again.public_message == first.public_message == "the embedding endpoint answered 429: slow down"
    assert len(endpoint.asked) == 1, "it is left alone for as long as it asked"


def test_after_a_short_pause_it_is_asked_again(endpoint: EmbeddingEndpoint) -> None:
    endpoint.next_moods = [server.refuses(503, "starting", Retry_After="1")]
    embedder = opened(endpoint)
    error_of(embedder)
    time.sleep(1.05)
    assert embedder.embed(["a"]).shape == (1, 16)


@pytest.mark.parametrize(
    ("mood", "says"),
    [
        (server.hangs, "did not answer within 0.3 s"),
        (server.drips(0.05), "did not answer within 0.3 s"),
        (server.hangs_up, "closed the connection before its answer was complete"),
        (server.hangs_up_midway, "closed the connection before its answer was complete"),
        (server.forgets_one, "answered 1 vectors for 2 texts"),
        (server.says(200, b"<html>welcome</html>"), "answer can't be understood"),
        (server.says(200, b'{"data": [{"embedding": "AAAA"}]}'), "answer can't be understood"),
    ],
)
def test_no_answer_or_none_that_can_be_read_is_an_outage(
    endpoint: EmbeddingEndpoint, mood: server.Mood, says: str
) -> None:
    endpoint.always = mood
    begin_s = time.monotonic()
    error = error_of(opened(endpoint, timeout_s=0.3), "one", "two")
    assert isinstance(error, EmbeddingUnavailable)
    assert says in error.public_message
    assert time.monotonic() - begin_s < 3
    assert len(endpoint.asked) <= 2


def test_nobody_listens_there(endpoint: EmbeddingEndpoint) -> None:
    refused = error_of(opened(endpoint, url=f"http://127.0.0.1:{free_port()}/v1"))
    unknown = error_of(opened(endpoint, url="http://no-such-host.invalid/v1"))
    no_tls = error_of(opened(endpoint, url=endpoint.url.replace("http:", "https:")))
    assert all(isinstance(error, EmbeddingUnavailable) for error in (refused, unknown, no_tls))
    assert "Connection refused" in refused.public_message
    assert "its host is not known" in unknown.public_message
    assert "can't be trusted" in no_tls.public_message


def test_a_kept_connection_that_was_dropped_is_made_again_at_once(endpoint: EmbeddingEndpoint) -> None:
    embedder = opened(endpoint)
    embedder.embed(["first"])
    endpoint.next_moods = [server.hangs_up]
    assert embedder.embed(["second"]).shape == (1, 16)
    assert endpoint.connections == 2


@pytest.mark.parametrize(
    ("status", "says"),
    [(400, "no"), (401, "check embedding.api_key"), (403, "check embedding.api_key"), (404, "check embedding.url"),
     (302, "it has moved")],
)  # fmt: skip
def test_what_would_be_refused_again_is_permanent(endpoint: EmbeddingEndpoint, status: int, says: str) -> None:
    endpoint.always = server.refuses(status, Location="http://127.0.0.1:1/elsewhere")
    error = error_of(opened(endpoint))
    assert isinstance(error, EmbeddingRefused)
    assert error.public_message.startswith(f"the embedding endpoint answered {status}: no")
    assert says in error.public_message
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize("number", [float("nan"), float("inf"), None])
def test_a_number_that_is_none_is_worth_another_attempt(endpoint: EmbeddingEndpoint, number: object) -> None:
    endpoint.always = server.gives(number)
    error = error_of(opened(endpoint))
    assert isinstance(error, EmbeddingFailed)
    assert "NaN" in error.public_message


def test_numbers_whose_squares_are_none_are_numbers(endpoint: EmbeddingEndpoint) -> None:
    endpoint.always = server.says(200, b'{"data": [{"index": 0, "embedding": [3e300, 4e300]}]}')
    assert opened(endpoint, dimension=2).embed(["a"])[0] == pytest.approx([0.6, 0.8])


def test_the_dimension_is_that_of_the_settings_or_of_the_first_answer(endpoint: EmbeddingEndpoint) -> None:
    told, found = opened(endpoint, dimension=20), opened(endpoint)
    error = error_of(told)
    assert isinstance(error, EmbeddingRefused)
    assert "vectors of 16 numbers; embedding.dimension says 20" in error.public_message
    assert (told.dimension, found.dimension) == (20, 0)
    found.embed(["a"])
    endpoint.always = server.gives_dimension(24)
    error = error_of(found)
    assert isinstance(error, EmbeddingRefused)
    assert "vectors of 24 numbers; its first answer had 16" in error.public_message


def test_a_batch_that_is_too_large_is_halved(endpoint: EmbeddingEndpoint) -> None:
    endpoint.always = server.takes_texts(3)
    vectors = opened(endpoint).embed([f"text {n}" for n in range(10)])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert [len(asked.texts) for asked in endpoint.asked] == [10, 5, 2, 3, 5, 2, 3]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "This model's maximum context length is 8 tokens, however you requested 30"),
        (422, "`inputs` must have less than 8 tokens. Given: 30"),
        (413, "Payload Too Large"),
        (500, "input (30 tokens) is too large to process. increase the physical batch size"),
    ],
)
def test_a_text_that_is_too_long_is_cut_and_the_others_are_not(
    endpoint: EmbeddingEndpoint, status: int, message: str
) -> None:
    endpoint.always = server.takes_words(8, status, message)
    long = " ".join(f"w{n}" for n in range(30))
    vectors = opened(endpoint).embed(["short one", long, "another"])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    accepted = [asked.texts for asked in endpoint.asked if all(len(text.split()) <= 8 for text in asked.texts)]
    cut = next(text for texts in accepted for text in texts if text.startswith("w0"))
    assert long.startswith(cut)
    assert {"short one", "another"} <= {text for texts in accepted for text in texts}


def test_a_text_that_is_too_long_however_short_is_refused(endpoint: EmbeddingEndpoint) -> None:
    endpoint.always = server.takes_words(0)
    error = error_of(opened(endpoint), " ".join("word" for _ in range(30)))
    assert isinstance(error, EmbeddingRefused)
    assert "maximum context length" in error.public_message
    assert len(endpoint.asked) <= 6


def test_a_text_over_max_tokens_is_cut_before_it_is_sent(endpoint: EmbeddingEndpoint, tmp_path: Path) -> None:
    long = " ".join("paper" for _ in range(100))
    opened(endpoint, max_tokens=16).embed([long])
    (sent,) = endpoint.texts
    assert len(sent.split()) == 14, "the packaged tokenizer counts, and two tokens mark start and end"
    words = Tokenizer(WordLevel({"paper": 0, "?": 1}, unk_token="?"))
    words.pre_tokenizer = Whitespace()
    words.enable_truncation(3)
    words.save(str(tmp_path / "tokenizer.json"))
    opened(endpoint, max_tokens=16, tokenizer_file=str(tmp_path / "tokenizer.json")).embed([long])
    assert len(endpoint.texts[-1].split()) == 16


def test_what_the_endpoint_said_is_short_and_on_one_line(endpoint: EmbeddingEndpoint) -> None:
    endpoint.always = server.says(400, b"<html>\n\x1b[31m" + b"x" * 10_000)
    message = error_of(opened(endpoint)).public_message
    assert len(message) < 400
    assert "\n" not in message
    assert "\x1b" not in message


@pytest.mark.parametrize(
    "mood", [server.echoes_its_headers, server.says(400, f"key {KEY}".encode()), server.refuses(429, f"{KEY} is poor")]
)
def test_the_key_is_in_no_error_and_no_log(
    endpoint: EmbeddingEndpoint, mood: server.Mood, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    endpoint.always = mood
    embedder = opened(endpoint)
    error = error_of(embedder)
    shown = f"{error} {error!r} {error.__cause__!r} {embedder!r} {vars(embedder)} {caplog.text}"
    assert endpoint.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in shown
    assert "***" in error.public_message


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"api_key": f"{KEY}\nX: y"}, "embedding.api_key"),
        ({"api_key": "", "api_key_file": "/no/such/file"}, "No such file"),
        ({"url": f"http://user:{KEY}@host/v1"}, "without a password"),
        ({"url": "http:///v1"}, "with a host"),
        ({"url": "http://[::1/v1"}, "embedding.url"),
        ({"model": "potion-base-8M"}, "the name of the endpoint's model"),
        ({"tokenizer_file": "/no/such/file"}, "check embedding.tokenizer_file"),
        ({"tokenizer_file": __file__}, "is no tokenizer"),
    ],
)
def test_settings_that_no_endpoint_can_be_asked_with(
    endpoint: EmbeddingEndpoint, settings: dict[str, object], says: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        opened(endpoint, **settings)
    assert says in caught.value.public_message
    assert KEY not in f"{caught.value!r} {caught.value.__cause__!r}"


def test_calls_at_once_are_bounded(endpoint: EmbeddingEndpoint) -> None:
    endpoint.always = server.slow(0.1)
    embedder = opened(endpoint, max_concurrent_requests=2)
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda n: embedder.embed([f"text {n}"]), range(6)))
    assert len(found) == 6
    assert endpoint.most_at_once == 2
