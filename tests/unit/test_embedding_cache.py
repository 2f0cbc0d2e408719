"""Vectors kept on disk: found again, bounded, shared by processes, and never in the way."""

from __future__ import annotations

import logging
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from common.settings import ROOT
from rag.utils.doc_index import Vectors
from rag.utils.embedding_cache import EmbeddingCache, Model
from tests.waiting import wait_until

MODEL = Model("http://e/v1", "m", 0)
MIB = 1 << 20
WRITER = """
import sys, time
from pathlib import Path
from tests.unit.test_embedding_cache import MODEL, MIB, opened, vectors
cache = opened(Path(sys.argv[1]), most_bytes=4 * MIB)
first, count = int(sys.argv[2]), int(sys.argv[3])
for number in range(first, first + count):
    cache.put("t", vectors(range(number * 8, number * 8 + 8)))
    found = cache.get("t", [f"text {number * 8 + n}" for n in range(8)])
    assert len(found) == 8, (number, len(found))
    print(number, flush=True)
"""


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


def opened(folder: Path, most_bytes: int = 8 * MIB, clock: Clock | None = None, model: Model = MODEL) -> EmbeddingCache:
    return EmbeddingCache(folder / "cache" / "embeddings.db", most_bytes, model, clock or time.time)


def vector(number: int, dimension: int = 1536) -> Vectors:
    found = np.random.default_rng(number).standard_normal(dimension)
    return (found / np.linalg.norm(found)).astype(np.float32)


def vectors(numbers: range) -> dict[str, Vectors]:
    return {f"text {number}": vector(number) for number in numbers}


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in (folder / "cache").iterdir())


def test_what_was_put_is_found_and_counted(tmp_path: Path) -> None:
    cache = opened(tmp_path)
    cache.put("t", {"a": vector(1), "b": vector(2)})
    found = cache.get("t", ["a", "c", "b", "a"])
    assert found.keys() == {"a", "b"}
    assert (cache.hits, cache.misses) == (3, 1)
    assert float(found["a"] @ vector(1)) > 0.999999, "half the bytes, the same direction"
    assert abs(float(np.linalg.norm(found["a"])) - 1) < 1e-6
    cache.put("t", {"a": vector(3)})
    assert float(cache.get("t", ["a"])["a"] @ vector(3)) > 0.999999, "the newest counts"
    cache.put("t", {"zero": np.zeros(4, np.float32)})
    assert not np.any(cache.get("t", ["zero"])["zero"])
    cache.close()


@pytest.mark.parametrize(
    ("tenant_id", "model"),
    [
        ("u", MODEL),
        ("t", Model("http://other/v1", "m", 0)),
        ("t", Model("http://e/v1", "other", 0)),
        ("t", Model("http://e/v1", "m", 8)),
    ],
)
def test_another_tenant_endpoint_model_or_dimension_knows_nothing_of_it(
    tmp_path: Path, tenant_id: str, model: Model
) -> None:
    mine, others = opened(tmp_path), opened(tmp_path, model=model)
    mine.put("t", {"a": vector(1)})
    assert others.get(tenant_id, ["a"]) == {}
    mine.close()
    others.close()


def test_no_text_is_in_the_file(tmp_path: Path) -> None:
    cache = opened(tmp_path)
    cache.put("tenant-name", {"a very secret sentence": vector(1)})
    cache.close()
    written = b"".join(path.read_bytes() for path in (tmp_path / "cache").iterdir())
    assert b"secret" not in written
    assert b"tenant-name" not in written


def test_the_bound_is_held_and_the_least_recently_used_go_first(tmp_path: Path) -> None:
    clock = Clock()
    cache = opened(tmp_path, most_bytes=4 * MIB, clock=clock)
    favourites = [f"text {n}" for n in range(8)]
    for batch in range(60):  # 60 x 64 vectors of 3 KiB: three times what there is room for
        cache.put("t", vectors(range(batch * 64, batch * 64 + 64)))
        clock.now_s += 700
        assert len(cache.get("t", favourites)) == 8, "what is used all the time stays"
        assert size_of(tmp_path) < 4 * MIB * 5 // 4 + 3 * MIB
    newest = cache.get("t", [f"text {n}" for n in range(59 * 64, 60 * 64)])
    oldest = cache.get("t", [f"text {n}" for n in range(64, 640)])
    assert (len(newest), len(oldest)) == (64, 0)
    kept = cache.get("t", [f"text {n}" for n in range(60 * 64)])
    assert len(kept) * 3100 > 4 * MIB * 0.8, "and there is no less room than was given"
    cache.close()


def test_a_smaller_bound_makes_the_file_smaller(tmp_path: Path) -> None:
    large = opened(tmp_path, most_bytes=8 * MIB)
    for batch in range(30):
        large.put("t", vectors(range(batch * 64, batch * 64 + 64)))
    large.close()
    assert size_of(tmp_path) > 5 * MIB
    small = opened(tmp_path, most_bytes=2 * MIB)
    small.put("t", vectors(range(8)))
    assert len(small.get("t", ["text 0"])) == 1
    assert size_of(tmp_path) < 2 * MIB
    small.close()


def test_more_than_there_is_room_for_is_not_kept(tmp_path: Path) -> None:
    cache = opened(tmp_path, most_bytes=MIB)
    cache.put("t", vectors(range(1000)))
    assert cache.get("t", ["text 1"]) == {}
    cache.put("t", vectors(range(10)))
    assert len(cache.get("t", ["text 1"])) == 1
    cache.close()


def start_writer(folder: Path, first: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(folder), str(first), str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_processes_at_once(tmp_path: Path) -> None:
    writers = [start_writer(tmp_path, first, 40) for first in (0, 1000)]
    ends = [writer.communicate(timeout=90) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0], ends
    cache = opened(tmp_path, most_bytes=4 * MIB)
    for first in (0, 1000):
        assert len(cache.get("t", [f"text {n}" for n in range(first * 8, (first + 40) * 8)])) == 320
    assert [end[1] for end in ends] == ["", ""], "and nothing went wrong on the way"
    cache.close()


def test_a_process_that_is_killed_leaves_it_whole(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for round_no in range(4):
        writer = start_writer(tmp_path, round_no * 100_000, 100_000)
        assert writer.stdout is not None
        done = [int(writer.stdout.readline()) for _ in range(random.Random(round_no).randint(3, 12))]
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        with closing(sqlite3.connect(tmp_path / "cache" / "embeddings.db")) as link:
            assert link.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        cache = opened(tmp_path, most_bytes=4 * MIB)
        wanted = [f"text {number * 8 + n}" for number in done for n in range(8)]
        assert len(cache.get("t", wanted)) == len(wanted)
        cache.close()
    assert caplog.text == ""


def damaged(path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    match how:
        case "no database":
            content[:] = b"this is not a database, whatever its name says " * 500
        case "its head is gone":
            content[:100] = bytes(100)
        case "its middle is noise":
            content[16384 : 16384 * 6] = random.Random(1).randbytes(16384 * 5)
        case "cut short":
            del content[16384 * 2 + 100 :]
        case "empty":
            content.clear()
    path.write_bytes(content)


@pytest.mark.parametrize("how", ["no database", "its head is gone", "its middle is noise", "cut short", "empty"])
def test_a_damaged_file_is_made_anew(tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture) -> None:
    cache = opened(tmp_path)
    cache.put("t", vectors(range(200)))
    cache.close()
    damaged(tmp_path / "cache" / "embeddings.db", how)
    texts = [f"text {n}" for n in range(200)]
    again = opened(tmp_path)
    found = again.get("t", texts)
    for text, got in found.items():
        assert float(got @ vector(int(text.split()[1]))) > 0.999999, "a wrong vector is worse than none"
    for _ in range(3):
        again.put("t", vectors(range(200)))
        again.get("t", texts)
    assert len(again.get("t", texts)) == 200, "it serves again"
    if how != "empty":
        assert "the embedding cache is damaged and made anew" in caplog.text
    again.close()


def test_a_flipped_bit_is_a_miss(tmp_path: Path) -> None:
    cache = opened(tmp_path)
    cache.put("t", {"a": vector(1), "b": vector(2)})
    cache.close()
    with closing(sqlite3.connect(tmp_path / "cache" / "embeddings.db")) as link:
        ((place, data),) = link.execute("SELECT place, data FROM vector ORDER BY place LIMIT 1").fetchall()
        link.execute("UPDATE vector SET data = ? WHERE place = ?", (data[:-1] + bytes([data[-1] ^ 1]), place))
        link.commit()
    cache = opened(tmp_path)
    assert cache.get("t", ["a", "b"]).keys() == {"b"}
    cache.close()


def test_one_process_makes_it_anew_under_the_others(tmp_path: Path) -> None:
    mine, others = opened(tmp_path), opened(tmp_path)
    mine.put("t", {"a": vector(1)})
    assert len(others.get("t", ["a"])) == 1
    for path in list((tmp_path / "cache").iterdir()):
        path.unlink()
    others.put("t", {"b": vector(2)})
    mine.put("t", {"c": vector(3)})
    assert mine.get("t", ["a", "b", "c"]).keys() == {"b", "c"}, "both use the new one"
    mine.close()
    assert others.get("t", ["b", "c"]).keys() == {"b", "c"}, "and closing an old one does not touch it"
    others.close()


def test_a_file_that_is_locked_is_done_without(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = opened(tmp_path)
    cache.put("t", {"a": vector(1)})
    with closing(sqlite3.connect(tmp_path / "cache" / "embeddings.db", isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        begin_s = time.monotonic()
        cache.put("t", {"b": vector(2)})
        assert time.monotonic() - begin_s < 10
        assert cache.get("t", ["a", "b"]).keys() == {"a"}, "reading goes on"
    assert "the embedding cache is done without: database is locked" in caplog.text
    cache.put("t", {"b": vector(2)})
    assert cache.get("t", ["a", "b"]).keys() == {"a", "b"}, "and so does writing, once it is free"
    cache.close()


def test_a_folder_that_can_not_be_used_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    cache = opened(tmp_path)
    caplog.set_level(logging.WARNING)
    for _ in range(5):
        cache.put("t", {"a": vector(1)})
        assert cache.get("t", ["a"]) == {}
    assert caplog.text.count("the embedding cache is done without") == 1
    assert (cache.hits, cache.misses) == (0, 5)
    (tmp_path / "cache").unlink()
    cache.put("t", {"a": vector(1)})
    wait_until(lambda: cache.get("t", ["a"]), 5, "the cache to serve again")
    cache.close()
