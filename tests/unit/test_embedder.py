"""The packaged model: its vectors, the threads it uses, and the tokenizer that counts."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tokenizers import Tokenizer

from api.db.services.task_requests import GiveBack
from common.errors import EmbeddingUnavailable, SettingsError
from common.settings import ROOT, EmbeddingSettings, Settings, TaskSettings, load
from rag.svr.retry import decide
from rag.utils import word_tokens
from rag.utils.embedder import PackagedEmbedder, load_tokenizer, model_dir
from rag.utils.embedders import calls_at_once, embedder_name, open_cache, open_embedder
from rag.utils.endpoint_http import LONGEST_RETRY_AFTER_S, retry_after_s, without_key
from tests.unit.test_decisions import TASK

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ENDPOINT = EmbeddingSettings(url="http://127.0.0.1:9/v1", model="org/model", api_key="sk-s3cret")
COUNT_THREADS = """
import os, sys
import tqdm
from common.settings import EmbeddingSettings
from rag.utils.embedder import PackagedEmbedder
tqdm.tqdm.monitor_interval = 0  # a thread that only looks on
embedder = PackagedEmbedder(EmbeddingSettings(threads=int(sys.argv[1])))
def count(): return len(os.listdir("/proc/self/task"))
before = count()
for _ in range(3):
    embedder.embed([f"a text about paper number {n} " * 40 for n in range(256)])
print(count() - before)
"""


@cache
def packaged() -> PackagedEmbedder:
    return PackagedEmbedder(EmbeddingSettings())


def test_vectors_are_of_length_one_and_near_for_near_texts() -> None:
    vectors = packaged().embed(["a cat sat on the mat", "a kitten lay on a rug", "quarterly tax report", ""])
    assert vectors.shape == (4, 256)
    assert np.allclose(np.linalg.norm(vectors, axis=1), [1, 1, 1, 0], atol=1e-5)
    assert float(vectors[0] @ vectors[1]) > float(vectors[0] @ vectors[2])
    assert packaged().embed([]).shape == (0, 256)


@pytest.mark.parametrize(
    "text",
    [
        "The mill's wheel turns, turns; and turns!",
        "MiXeD Case, na\u00efve caf\u00e9s, \u00dcber-stra\u00dfe, e\u0301",
        "\u6c34\u8f66\u78e8\u574a grinds \u7c89 and \ud55c\uad6d\uc5b4",
        "tabs\tand\nlines\r\nand\u00a0more\u2003spaces",
        "feeds\x0cand\x0btabs\x1cgroups\x85next\u2028lines",
        "nul\x00and\ufffdothers\u200bjoined \U0001f600 smile",
        "word " * 5000,
        "supercalifragilisticexpialidocious" * 20,
        " \n ",
        "",
    ],
)
def test_vectors_are_those_of_the_models_own_library(text: str) -> None:
    from model2vec import StaticModel

    model = StaticModel.from_pretrained(model_dir(EmbeddingSettings()))
    assert model.weights is None and model.token_mapping is None
    expected = model.encode([text, "another"], max_length=PackagedEmbedder.max_tokens, use_multiprocessing=False)
    for _ in range(2):  # the second time every word is known
        assert np.allclose(packaged().embed([text, "another"]), expected, atol=1e-5)


def test_words_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_tokens, "_MOST_WORDS", 3)
    embedder = PackagedEmbedder(EmbeddingSettings())
    texts = ["one two", "three four five six seven", "one two"]
    first, _, again = (embedder.embed([text])[0] for text in texts)
    assert np.array_equal(first, again)
    assert np.allclose(embedder.embed(texts), packaged().embed(texts))


def test_threads_that_embed_at_once_do_not_cut_each_others_texts() -> None:
    long = "start " * 400 + "end " * 1200  # past the 512 tokens that the model's own settings allow
    alone = packaged().embed([long])
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: packaged().embed([long]), range(40)))
    assert all(np.array_equal(alone, one) for one in found)


@pytest.mark.parametrize(("threads", "started"), [(1, 0), (2, 2), (3, 3)])
def test_no_more_threads_than_the_settings_say(threads: int, started: int) -> None:
    environ = {k: v for k, v in os.environ.items() if k not in ("RAYON_NUM_THREADS", "TOKENIZERS_PARALLELISM")}
    command = [sys.executable, "-c", COUNT_THREADS, str(threads)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environ, check=True)
    assert int(done.stdout) == started


def test_a_tokenizer_file_counts_without_cutting_or_padding(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_file(str(model_dir(EmbeddingSettings()) / "tokenizer.json"))
    tokenizer.enable_truncation(5)
    tokenizer.enable_padding(length=64)
    tokenizer.save(str(tmp_path / "own.json"))
    counted = load_tokenizer(EmbeddingSettings(tokenizer_file=str(tmp_path / "own.json")))
    assert len(counted.encode("one two three four five six seven", add_special_tokens=False).ids) == 7
    with pytest.raises(SettingsError, match=r"check embedding\.tokenizer_file"):
        load_tokenizer(EmbeddingSettings(tokenizer_file=str(tmp_path / "missing.json")))


def test_an_endpoints_tokens_are_counted_by_the_packaged_tokenizer_unless_told_otherwise() -> None:
    assert load_tokenizer(ENDPOINT).to_str() == load_tokenizer(EmbeddingSettings()).to_str()


def test_the_settings_name_the_embedder(tmp_path: Path) -> None:
    assert embedder_name(EmbeddingSettings()) == packaged().name == "potion-base-8M@Builtin"
    assert embedder_name(ENDPOINT) == open_embedder(ENDPOINT).name == "org/model@OpenAI-API-Compatible"
    assert open_embedder(EmbeddingSettings(url="http://h", model="@cf/m")).name == "cf/m@OpenAI-API-Compatible"
    with pytest.raises(SettingsError, match=r"embedding\.url"):
        open_embedder(EmbeddingSettings(model="org/model"))
    builtin, endpoint = Settings(data_dir=tmp_path), Settings(data_dir=tmp_path, embedding=ENDPOINT)
    assert (calls_at_once(builtin), calls_at_once(endpoint)) == (1, 4)
    assert open_cache(builtin) is None
    assert open_cache(Settings(embedding=ENDPOINT.model_copy(update={"cache_mb": 0}))) is None
    assert open_cache(endpoint) is not None
    assert list(tmp_path.iterdir()) == [], "opened when it is used"


def test_the_key_is_not_shown(tmp_path: Path) -> None:
    given = {"PAGEMILL_EMBEDDING_API_KEY": "sk-s3cret", "PAGEMILL_EMBEDDING_URL": "https://u:pa55@h/v1"}
    result = load(tmp_path, conf_dir=tmp_path, environ=given)
    shown = f"{result!r} {result.settings!r} {result.settings.model_dump()} {[str(e.value) for e in result.effective]}"
    assert "sk-s3cret" not in shown
    assert "pa55" not in str([e.value for e in result.effective])
    assert next(e.value for e in result.effective if e.key == "embedding.api_key") == "***"
    assert result.settings.embedding.api_key.get_secret_value() == "sk-s3cret"
    (tmp_path / "service_conf.yaml").write_text("embedding:\n  api_key: 31415926\n")
    with pytest.raises(SettingsError) as refused:
        load(tmp_path, conf_dir=tmp_path, environ={})
    assert "embedding.api_key" in refused.value.public_message
    assert "31415926" not in refused.value.public_message


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("7", 7.0),
        (" 120 ", 120.0),
        ("0", None),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("9" * 400, LONGEST_RETRY_AFTER_S),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 14:00:30 +0200", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", None),
        ("Fri, 01 Jan 2100 00:00:00 GMT", LONGEST_RETRY_AFTER_S),
    ],
)
def test_retry_after_in_seconds_and_as_a_date(header: str | None, expected: float | None) -> None:
    assert retry_after_s(header, NOW) == expected


def test_the_endpoint_decides_when_a_task_is_tried_again() -> None:
    settings = TaskSettings()
    for jitter in (0.0, 0.5, 1.0):
        asked = decide(TASK, EmbeddingUnavailable("the embedding endpoint answered 429", 300.0), settings, jitter)
        assert isinstance(asked, GiveBack)
        assert asked.transition == "wait"
        assert 300_000 <= asked.delay_ms <= 330_000, "also where that is longer than any backoff"
        assert asked.message == "the embedding endpoint answered 429"
        plain = decide(TASK, EmbeddingUnavailable("away"), settings, jitter)
        assert isinstance(plain, GiveBack)
        assert plain.delay_ms <= settings.backoff_max_s * 1000
    waited = timedelta(hours=2) // timedelta(milliseconds=1)
    late = msgspec.structs.replace(TASK, waiting_since=1, begin_at=waited)
    assert not isinstance(decide(late, EmbeddingUnavailable("429", 300.0), settings, 0.5), GiveBack)


@pytest.mark.parametrize(
    ("key", "said", "told"),
    [
        ("sk-0123456789abcdef", "no sk-0123456789abcdef here", "no *** here"),
        ("sk-0123456789abcdef", '["sk-0123456", "789abcdef"]', '["***", "***"]'),
        ("sk-0123456789abcdef", "sk-0****cdef is wrong", "sk-0****cdef is wrong"),
        ('k"ey\\+01234567', '{"key": "k\\"ey\\\\+01234567"}', '{"key": "***"}'),
        ("k/ey+01234567", "?key=k%2Fey%2B01234567", "?key=***"),
        ("short", "a short one", "a *** one"),
        ("", "nothing", "nothing"),
    ],
)
def test_no_part_of_a_key_is_told(key: str, said: str, told: str) -> None:
    assert without_key(said, key) == told
