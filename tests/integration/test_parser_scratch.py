"""Temporary files of real parser processes: gone after a kill, whoever was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from email.message import EmailMessage
from pathlib import Path

import pytest
import trio

from common.errors import ParserLost
from common.settings import ROOT, EmbeddingSettings
from rag.flow.chunk import ChunkSettings
from rag.parser.blocks import FileKind, Profile, Unit
from rag.svr.parser_pool import Config, ParseJob, ParserPool
from tests.waiting import wait_for

MAIL = ParseJob(Profile(kind=FileKind.EMAIL, unit=Unit.WHOLE, units=1), 0, 1, ChunkSettings())

PARENT = """
import sys, trio
from pathlib import Path
from tests.integration.test_parser_scratch import read_all

trio.run(read_all, Path(sys.argv[1]))
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def mail(tmp_path: Path) -> Path:
    """With an attachment that takes long to read, and is in a file of its own meanwhile."""
    path = tmp_path / "a.eml"
    message = EmailMessage()
    message["Subject"] = "Long"
    message.set_content("See the file.")
    message.add_attachment("word and other words\n\n" * 1_000_000, filename="long.txt")
    path.write_bytes(message.as_bytes())
    return path


def pool_of_one() -> ParserPool:
    return ParserPool(Config(EmbeddingSettings()))


async def read_all(mail: Path) -> None:
    async with pool_of_one() as pool:
        await pool.parse(mail, MAIL, lambda _: None)


def wait_attached(temporary: Path) -> Path:
    """The folder of the attachment, once it is being read."""
    return wait_for(lambda: next(temporary.rglob("attachment-*"), None), what="an attachment that is read")


async def test_a_killed_process_leaves_no_attachment(temporary: Path, mail: Path) -> None:
    async def kill() -> None:
        await trio.to_thread.run_sync(wait_attached, temporary)
        os.kill(pool.pids[0], signal.SIGKILL)

    async with pool_of_one() as pool:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(kill)
            with pytest.raises(ParserLost, match="signal 9"):
                await pool.parse(mail, MAIL, lambda _: None)
        (held,) = temporary.iterdir()
        assert list(held.iterdir()) == []
    assert list(temporary.iterdir()) == []


async def test_a_cancelled_call_leaves_no_attachment(temporary: Path, mail: Path) -> None:
    async with pool_of_one() as pool:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pool.parse, mail, MAIL, print)
            await trio.to_thread.run_sync(wait_attached, temporary)
            nursery.cancel_scope.cancel()
        assert list(temporary.rglob("attachment-*")) == []
    assert list(temporary.iterdir()) == []


async def test_what_a_killed_executor_left_goes_with_the_next_parser(temporary: Path, mail: Path) -> None:
    executor = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(mail)], cwd=ROOT, env={**os.environ, "TMPDIR": str(temporary)}
    )
    try:
        left = await trio.to_thread.run_sync(wait_attached, temporary)
    finally:
        executor.kill()
        executor.wait()
    assert left.is_dir()
    async with pool_of_one() as pool:
        await pool.warm()
        assert not left.exists()
        (held,) = temporary.iterdir()
        assert len(list(held.iterdir())) == 1
    assert list(temporary.iterdir()) == []
