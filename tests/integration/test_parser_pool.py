"""Real parser processes: their answers, and what is left when one crashes, hangs, is cancelled or outgrows its
memory.

A named pipe stands in for a file that never ends: whoever reads it waits, and opening it for writing waits for the
reader. So a test knows that a process is at work on it without asking the clock."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import trio

from common.errors import AttemptFailed, EncryptedFile, ParserLost, ParserNotStarted, SettingsError, WrongKind
from common.settings import ROOT, EmbeddingSettings, Settings
from rag.flow.chunk import ChunkSettings
from rag.flow.chunker import Chunker
from rag.flow.file_name import weighted
from rag.flow.searched import searched_text
from rag.flow.token_counter import token_counter
from rag.parser import registry
from rag.parser.blocks import FileKind, Profile, ReadOptions, Unit
from rag.svr.parser_pool import Config, ParseJob, ParserPool
from rag.svr.parser_process import BadFrame, Disconnected, ParserProcess
from rag.svr.parser_protocol import NamedFile, ParsedChunk
from rag.utils.doc_index import Vectors
from rag.utils.embedder import PackagedEmbedder, load_tokenizer
from rag.utils.terms import analyse
from tests import pdfs
from tests.processes import children, open_files
from tests.waiting import PATIENCE_S

TEXT = Profile(kind=FileKind.TEXT, unit=Unit.WHOLE, units=1, encoding="utf-8")
ENDLESS = ParseJob(TEXT, 0, 1, ChunkSettings())


def config(**changes: object) -> Config:
    return Config(**({"embedding": EmbeddingSettings(), "timeout_s": PATIENCE_S} | changes))  # type: ignore[arg-type]


def ignore(units_done: int) -> None:
    assert units_done >= 0


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.txt"
    path.write_text("Tide and time.\n")
    return path


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    path = tmp_path / "endless.txt"
    os.mkfifo(path)
    return path


@contextmanager
def no_leak() -> Iterator[None]:
    """No descriptor and no child, dead or alive, that was not there before."""
    descriptors, before = _descriptors(), _children()
    yield
    assert _descriptors() == descriptors
    assert _children() <= before


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _children() -> set[int]:
    return {child.pid for child in children(os.getpid())}


async def test_chunks_come_with_the_vectors_of_the_packaged_model_where_it_is_asked_for(tmp_path: Path) -> None:
    path = pdfs.write_pages(tmp_path / "mill.pdf", 2, sentences=6)
    job = ParseJob(registry.profile(path, path.name), 0, 2, ChunkSettings(chunk_token_num=32))
    model = PackagedEmbedder(EmbeddingSettings())
    async with ParserPool(config(embeds=True)) as parsers:
        plain = await parsers.parse(path, job, ignore)
        named = await parsers.parse(path, replace(job, named=NamedFile("deep_sea.pdf", 0.25)), ignore)
    texts = [searched_text(chunk.text, chunk.headings) for chunk in plain]
    expected = model.embed(texts)
    assert np.array_equal(vectors_of(plain), expected)
    assert np.allclose(vectors_of(named), weighted(expected, model.embed(["deep sea"])[0], 0.25), atol=1e-6)


def vectors_of(chunks: Sequence[ParsedChunk]) -> Vectors:
    return np.stack([np.frombuffer(chunk.vector, np.float32) for chunk in chunks])


@contextmanager
def writer(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)


async def wait_read(path: Path) -> int:
    """Wait until a process reads the named pipe; gives its end for writing, which keeps the reader waiting."""
    return await trio.to_thread.run_sync(os.open, path, os.O_WRONLY)


async def test_the_answers_are_those_of_this_process(tmp_path: Path) -> None:
    path = pdfs.write_pages(tmp_path / "a.pdf", 14, heading="Sheet")
    settings = ChunkSettings(chunk_token_num=128)
    with no_leak():
        async with ParserPool(config()) as pool:
            profile = await pool.prepare(path, "a.pdf")
            chunks = await pool.parse(path, ParseJob(profile, 3, 9, settings), ignore)
    assert profile == registry.profile(path, "a.pdf")
    count = token_counter(load_tokenizer(EmbeddingSettings()))
    expected = list(Chunker(count, settings, profile).chunk(registry.read(path, profile, 3, 9)))
    assert [(c.text, c.tokens, c.page, c.boxes, c.headings, c.kind) for c in chunks] == [
        (c.text, c.tokens, c.page, c.boxes, c.headings, c.kind) for c in expected
    ]
    searched = [searched_text(chunk.text, chunk.headings) for chunk in chunks]
    assert [chunk.terms for chunk in chunks] == [" ".join(analyse(text)) for text in searched]


async def test_progress_grows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("number,word\n" + "".join(f"{n},some words in row {n}\n" for n in range(40_000)))
    heard: list[int] = []
    async with ParserPool(config()) as pool:
        profile = await pool.prepare(path, "a.csv")
        await pool.parse(path, ParseJob(profile, 0, profile.units, ChunkSettings()), heard.append)
    assert heard and heard == sorted(set(heard)) and 0 < heard[-1] < 40_000


async def test_a_bad_file_is_an_error_and_the_process_serves_on(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.txt", tmp_path / "bad"
    good.write_text("some words")
    bad.write_bytes(b"<html>")
    async with ParserPool(config()) as pool:
        await pool.prepare(good, "good.txt")
        pids = pool.pids
        with pytest.raises(WrongKind, match=r"report\.pdf is not a PDF: its content looks like HTML"):
            await pool.prepare(bad, "report.pdf")
        with pytest.raises(EncryptedFile):
            await pool.prepare(pdfs.write_encrypted(bad), "secret.pdf")
        with pytest.raises(AttemptFailed, match=r"FileNotFoundError on gone\.pdf: "):
            await pool.prepare(tmp_path / "gone", "gone.pdf")
        assert await pool.prepare(good, "good.txt") == TEXT
        assert pool.pids == pids


async def test_the_traceback_goes_to_stderr(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with ParserPool(config()) as pool:
        with pytest.raises(AttemptFailed):
            await pool.prepare(tmp_path / "gone", "gone.pdf")
    assert "Traceback" in capfd.readouterr().err


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGSEGV])
async def test_a_crash_is_a_loss_of_that_range_alone(tmp_path: Path, endless: Path, signum: signal.Signals) -> None:
    good = tmp_path / "good.txt"
    good.write_text("some words")

    async def crash() -> None:
        descriptor = await wait_read(endless)
        with writer(descriptor):
            os.kill(pool.pids[0], signum)

    with no_leak():
        async with ParserPool(config()) as pool:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(crash)
                with pytest.raises(ParserLost) as caught:
                    await pool.parse(endless, ENDLESS, ignore)
            assert caught.value.public_message == f"the parser process died (signal {signum.value}) on the file"
            assert pool.pids == ()
            assert await pool.prepare(good, "good.txt") == TEXT


async def test_a_hang_ends_at_the_time_limit(endless: Path) -> None:
    with no_leak():
        async with ParserPool(config(timeout_s=0.2)) as pool:
            with pytest.raises(ParserLost, match=r"took longer than 0\.2 s on pages 13-24"):
                profile = Profile(kind=FileKind.TEXT, unit=Unit.PAGE, units=30, encoding="utf-8")
                await pool.parse(endless, ParseJob(profile, 12, 24, ChunkSettings()), ignore)
            assert pool.pids == ()


async def test_a_cancel_kills_at_once(endless: Path) -> None:
    with no_leak():
        async with ParserPool(config()) as pool:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(pool.parse, endless, ENDLESS, ignore)
                descriptor = await wait_read(endless)
                with writer(descriptor):
                    (pid,) = pool.pids
                    began = time.monotonic()
                    nursery.cancel_scope.cancel()
            assert time.monotonic() - began < 1.0
            assert pool.pids == ()
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)


async def test_a_cancel_while_it_starts_leaves_nothing(endless: Path) -> None:
    with no_leak():
        async with ParserPool(config()) as pool:
            with trio.move_on_after(0.05):
                await pool.parse(endless, ENDLESS, ignore)
            assert pool.pids == ()


class DyingAtStart(ParserPool):
    """Of which the first processes die before they are ready."""

    def __init__(self, times: int) -> None:
        super().__init__(config())
        self._left = times

    def _command(self) -> list[str]:
        self._left -= 1
        return ["sh", "-c", "kill -9 $$"] if self._left >= 0 else super()._command()


async def test_a_process_that_is_hit_while_it_starts_is_started_again(plain: Path) -> None:
    with no_leak():
        async with DyingAtStart(2) as pool:
            profile = await pool.prepare(plain, plain.name)
            assert profile.units > 0


async def test_one_that_never_starts_is_no_fault_of_a_page(plain: Path) -> None:
    with no_leak():
        async with DyingAtStart(3) as pool:
            with pytest.raises(ParserNotStarted, match=r"died \(signal 9\) while it started"):
                await pool.prepare(plain, plain.name)
            assert (await pool.prepare(plain, plain.name)).units > 0


async def test_closing_the_pool_ends_a_call_under_way(endless: Path) -> None:
    async def lose(pool: ParserPool) -> None:
        with pytest.raises(ParserLost, match="died"):
            await pool.parse(endless, ENDLESS, ignore)

    with no_leak():
        async with trio.open_nursery() as nursery:
            async with ParserPool(config()) as pool:
                nursery.start_soon(lose, pool)
                descriptor = await wait_read(endless)
            os.close(descriptor)


async def test_recycling(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("some words")
    seen = []
    async with ParserPool(config(tasks_per_process=2)) as pool:
        for _ in range(4):
            await pool.prepare(path, "a.txt")
            seen.append(pool.pids)
    assert len(seen[0]) == 1 and seen[1] == ()
    assert len(seen[2]) == 1 and seen[2] != seen[0] and seen[3] == ()


async def test_a_process_that_died_while_idle_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("some words")
    async with ParserPool(config()) as pool:
        await pool.prepare(path, "a.txt")
        (pid,) = pool.pids
        watch = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        await trio.lowlevel.wait_readable(watch)
        os.close(watch)
        assert await pool.prepare(path, "a.txt") == TEXT
        assert pool.pids != (pid,)


async def test_more_calls_than_processes_wait_their_turn(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("some words")
    async with ParserPool(config()) as pool:
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(pool.prepare, path, "a.txt")
        assert len(pool.pids) == 1


async def test_a_file_goes_to_the_process_that_has_it_open(tmp_path: Path) -> None:
    paths = [pdfs.write_pages(tmp_path / name, 2) for name in ("a.pdf", "b.pdf")]
    async with ParserPool(config(max_parsers=2)) as pool:
        async with trio.open_nursery() as nursery:
            for path in paths:
                nursery.start_soon(pool.prepare, path, path.name)
        profile = registry.profile(paths[0], "a.pdf")
        for path in (*paths, *paths, *reversed(paths)):
            await pool.parse(path, ParseJob(profile, 0, 2, ChunkSettings()), ignore)
            opened = [sorted(open_files(pid) & set(paths)) for pid in pool.pids]
            assert sorted(opened) == [[paths[0]], [paths[1]]]


async def test_memory_limit(tmp_path: Path) -> None:
    path = tmp_path / "blob"
    path.write_bytes(b"{\\rtf1 " + b"x" * (120 << 20) + b"}")
    with no_leak():
        async with ParserPool(config(memory_mb=256)) as pool:
            with pytest.raises(ParserLost, match=r"needs more than 256 MiB on a\.rtf"):
                await pool.prepare(path, "a.rtf")
            assert pool.pids == ()
            path.write_text("a,b\nc,d\n")
            assert (await pool.prepare(path, "a.csv")).columns == ("a", "b")


async def test_a_missing_model_is_a_settings_error(tmp_path: Path) -> None:
    with no_leak():
        async with ParserPool(config(embedding=EmbeddingSettings(model_dir=str(tmp_path)))) as pool:
            with pytest.raises(SettingsError, match="the embedding model is not installed"):
                await pool.prepare(tmp_path / "a", "a")


@pytest.mark.parametrize(
    ("output", "error", "words"),
    [
        (r"b'\xff\xff\xff\xff'", BadFrame, "sent more than 256 MiB"),
        (r"b'\0\0\0\5hello'", BadFrame, "sent what is no reply"),
        (r"b'\0\0\0\5hel'", Disconnected, "^$"),
    ],
)
async def test_what_is_no_frame(output: str, error: type[Exception], words: str) -> None:
    with no_leak():
        code = f"import os; os.write(1, {output})"
        process = ParserProcess([sys.executable, "-c", code], os.environ)
        with pytest.raises(error, match=words):
            await process.receive()
        await process.kill()


PARENT = """
import sys, trio
from pathlib import Path
from tests.integration.test_parser_pool import ENDLESS, config, ignore
from rag.svr.parser_pool import ParserPool

async def main():
    async with ParserPool(config()) as pool:
        await pool.parse(Path(sys.argv[1]), ENDLESS, ignore)

trio.run(main)
"""


async def test_a_process_dies_with_its_executor(endless: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(endless)], cwd=ROOT)
    try:
        descriptor = await wait_read(endless)
    finally:
        parent.kill()
        parent.wait()
    with writer(descriptor):
        # The pipe has an error once its last reader is gone.
        poll = select.poll()
        poll.register(descriptor, select.POLLERR)
        assert await trio.to_thread.run_sync(poll.poll, PATIENCE_S * 1000) == [(descriptor, select.POLLERR)]


def test_the_settings_are_the_config() -> None:
    made = Config.of(Settings())
    assert (made.max_parsers, made.timeout_s, made.memory_mb, made.tasks_per_process) == (1, 300.0, 4096, 500)


async def test_an_error_does_not_name_a_stored_file_by_its_hash(tmp_path: Path) -> None:
    path = pdfs.write_encrypted(tmp_path / "a.pdf", "sesame")
    profile = registry.profile(path, path.name, ReadOptions(password="sesame"))
    stored = path.rename(tmp_path / ("0" * 64))
    async with ParserPool(config()) as pool:
        with pytest.raises(EncryptedFile, match=r"^the file is encrypted, and the password given for it is wrong$"):
            await pool.parse(stored, ParseJob(profile, 0, 1, ChunkSettings(), ReadOptions(password="guess")), ignore)
