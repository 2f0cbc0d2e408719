"""Pictures are drawn once, the ones asked for longest ago go first, and what fails leaves nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from common.errors import StoreUnavailable, UnreadableFile
from rag.utils.picture_cache import PictureCache


def writes(data: bytes) -> object:
    return lambda path: path.write_bytes(data)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_picture_is_made_once(tmp_path: Path) -> None:
    cache = PictureCache(tmp_path)
    assert cache.get("aa", "1-900", writes(b"first")) == b"first"  # type: ignore[arg-type]
    assert cache.get("aa", "1-900", writes(b"second")) == b"first"  # type: ignore[arg-type]
    assert files(tmp_path) == ["aa/1-900.png"]


def test_the_oldest_go_when_there_are_too_many(tmp_path: Path) -> None:
    cache = PictureCache(tmp_path, most_bytes=250)
    for number, digest in enumerate(("aa", "bb")):
        cache.get(digest, "1", writes(b"x" * 100))  # type: ignore[arg-type]
        os.utime(tmp_path / digest / "1.png", (number + 1, number + 1))
    cache.get("aa", "1", writes(b""))  # type: ignore[arg-type]  # asked for again: bb is the older one now
    cache.get("cc", "1", writes(b"x" * 100))  # type: ignore[arg-type]
    assert files(tmp_path) == ["aa/1.png", "cc/1.png"]
    assert not (tmp_path / "bb").exists()


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "aa").mkdir()
    (tmp_path / "aa" / "old.partial").write_bytes(b"x")
    os.utime(tmp_path / "aa" / "old.partial", (1, 1))
    (tmp_path / "aa" / "new.partial").write_bytes(b"x")
    PictureCache(tmp_path).trim()
    assert files(tmp_path) == ["aa/new.partial"]


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    def fails(path: Path) -> None:
        path.write_bytes(b"half")
        raise UnreadableFile("no picture")

    with pytest.raises(UnreadableFile):
        PictureCache(tmp_path).get("aa", "1", fails)
    assert files(tmp_path) == []


def test_a_folder_that_cannot_be_is_an_outage(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreUnavailable, match="can't be used"):
        PictureCache(tmp_path / "file").get("aa", "1", writes(b"x"))  # type: ignore[arg-type]


def test_a_file_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    cache = PictureCache(tmp_path)
    cache.get("aa", "1", writes(b"x"))  # type: ignore[arg-type]
    cache.forget("aa")
    cache.forget("bb")
    assert files(tmp_path) == []
