"""Broken and hostile files through a parser process with its limits: each gives chunks or an error that says what is
wrong, in bounded time, and the next file is read as if nothing had been."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from common.errors import AttemptFailed, DocumentError, PagemillError, ParserLost, ParserTimeout
from common.settings import Settings
from rag.flow.chunk import ChunkSettings
from rag.parser.blocks import PLAIN
from rag.svr.parser_pool import Config, ParseJob, ParserPool
from rag.svr.parser_protocol import ParsedChunk
from tests.hostile import FILES

pytestmark = pytest.mark.timeout(600)
TIMEOUT_S = 80.0

# What must be read all the same, and words that must be among it.
READABLE = {
    "wrong-xref.pdf": "Remark 1 on sheet 1",
    "wide-page.pdf": "two hundred metres",
    "one-line.txt": "word word",
    "some-nuls.txt": "more words behind it",
    "surrogates.txt": "in one line",
    "deep.html": "the bottom",
}


def pool() -> ParserPool:
    settings = Settings.model_validate({"parser": {"memory_mb": 3072, "timeout_s": TIMEOUT_S}})
    return ParserPool(Config.of(settings))


async def chunks_of(parsers: ParserPool, path: Path, name: str) -> list[ParsedChunk]:
    with trio.fail_after(3 * TIMEOUT_S):
        profile = await parsers.prepare(path, name, PLAIN)
        job = ParseJob(profile, 0, min(profile.units, 12), ChunkSettings())
        return await parsers.parse(path, job, lambda _: None)


@pytest.mark.parametrize("name", FILES)
async def test_a_hostile_file_gives_text_or_a_clear_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / "blob"
    path.write_bytes(FILES[name](tmp_path))
    good = tmp_path / "good.txt"
    good.write_text("A few good words.")
    async with pool() as parsers:
        try:
            found = await chunks_of(parsers, path, name)
        except PagemillError as exc:
            assert name not in READABLE, exc
            assert isinstance(exc, DocumentError | ParserLost | ParserTimeout), repr(exc)
            assert not isinstance(exc, AttemptFailed), exc
            assert len(exc.public_message) > 15
            assert "Traceback" not in exc.public_message
        else:
            text = " ".join(chunk.text for chunk in found)
            assert READABLE.get(name, "") in text
            text.encode()
        after = await chunks_of(parsers, good, "good.txt")
    assert [chunk.text for chunk in after] == ["A few good words."]
    assert not os.path.lexists("/tmp/pagemill-slipped")
