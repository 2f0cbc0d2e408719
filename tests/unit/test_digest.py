"""A task's digest changes with whatever changes its chunks or vectors, and with nothing else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rag.flow.chunk import ChunkSettings
from rag.flow.digest import task_digest
from rag.parser.blocks import FileKind, Heading, Profile, Unit

PROFILE = Profile(kind=FileKind.PDF, unit=Unit.PAGE, units=30, body_size=11.0, outline=(Heading("One", 1, 1),))


def _digest(**changes: Any) -> str:
    parts: dict[str, Any] = {
        "file_digest": "ab" * 32,
        "first": 0,
        "last": 12,
        "profile": PROFILE,
        "chunking": ChunkSettings(),
        "embedding_model": "potion-base-8M",
        "embedding_dimension": 256,
    }
    return task_digest(**(parts | changes))


def test_it_is_a_sha256_and_stays_the_same() -> None:
    assert _digest() == _digest(profile=msgspec.json.decode(msgspec.json.encode(PROFILE), type=Profile))
    assert len(bytes.fromhex(_digest())) == 32


@pytest.mark.parametrize(
    "change",
    [
        {"file_digest": "cd" * 32},
        {"first": 1},
        {"last": 11},
        {"profile": msgspec.structs.replace(PROFILE, repeated_lines=("Draft",))},
        {"profile": msgspec.structs.replace(PROFILE, outline=())},
        {"chunking": ChunkSettings(chunk_token_num=128)},
        {"chunking": ChunkSettings(delimiter=";")},
        {"chunking": ChunkSettings(method="book")},
        {"chunking": ChunkSettings(overlapped_percent=10)},
        {"chunking": ChunkSettings(children_delimiter=".")},
        {"chunking": ChunkSettings(html_tables=True)},
        {"chunking": ChunkSettings(max_tokens=512)},
        {"embedding_model": "other"},
        {"embedding_dimension": 384},
        {"embedding_url": "https://host/v1"},
        {"parser_version": 999},
        {"file_name": "a.pdf", "filename_embd_weight": 0.1},
    ],
)
def test_every_part_counts(change: dict[str, Any]) -> None:
    assert _digest(**change) != _digest()


def test_the_name_counts_only_with_a_weight() -> None:
    assert _digest(file_name="a.pdf") == _digest(file_name="b.pdf")
    weighted = [_digest(file_name=name, filename_embd_weight=0.1) for name in ("a.pdf", "b.pdf")]
    assert weighted[0] != weighted[1]
