"""Folders of temporary files: one a process, removed with it, and those of the killed removed by the next."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.errors import ParserLost
from common.settings import ROOT
from rag.svr.scratch import Scratch, remove, sweep

_MAKES_ONE = (
    "import sys; from rag.svr.scratch import Scratch; s = Scratch(); print(s.add(), flush=True); sys.stdin.read()"
)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def scratch() -> Iterator[Scratch]:
    made = Scratch()
    yield made
    made.close()


@pytest.fixture
def other(temporary: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has made a folder and holds it."""
    with subprocess.Popen(
        [sys.executable, "-c", _MAKES_ONE],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def _folder_of(other: subprocess.Popen[str]) -> Path:
    assert other.stdout is not None
    return Path(other.stdout.readline().strip())


def test_nothing_is_made_until_it_is_asked_for(temporary: Path) -> None:
    Scratch().close()
    assert list(temporary.iterdir()) == []


def test_each_process_has_a_folder_of_its_own_and_all_go_in_the_end(temporary: Path, scratch: Scratch) -> None:
    first, second = scratch.add(), scratch.add()
    (first / "attachment-x").mkdir()
    (first / "attachment-x" / "file").write_bytes(b"secret")
    assert first.stat().st_mode & 0o777 == first.parent.stat().st_mode & 0o777 == 0o700
    remove(first)
    assert not first.exists() and second.exists()
    (second / "left").write_bytes(b"")
    scratch.close()
    assert list(temporary.iterdir()) == []


def test_what_a_killed_one_left_goes_with_the_next(other: subprocess.Popen[str], scratch: Scratch) -> None:
    left = _folder_of(other)
    (left / "pagemill-office-x").mkdir()
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert left.exists()
    mine = scratch.add()
    assert mine.exists() and not left.parent.exists()


def test_what_is_in_use_stays(other: subprocess.Popen[str], scratch: Scratch) -> None:
    theirs, mine = _folder_of(other), scratch.add()
    sweep()
    assert theirs.exists() and mine.exists()


def test_links_and_other_files_are_left_alone(temporary: Path, scratch: Scratch) -> None:
    name = f"pagemill-parsers-{os.getuid()}-x"
    outside = temporary / "outside"
    outside.mkdir()
    (temporary / f"{name}1").symlink_to(outside)
    (temporary / f"{name}2").write_bytes(b"a file")
    (temporary / "pagemill-other").mkdir()
    scratch.add()
    assert outside.is_dir() and (temporary / f"{name}2").exists() and (temporary / "pagemill-other").is_dir()


def test_no_room_for_it_is_told(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "missing"))
    with pytest.raises(ParserLost, match="no folder for temporary files: No such file or directory"):
        Scratch().add()
