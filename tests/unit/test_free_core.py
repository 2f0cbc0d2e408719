"""Whether a core has nothing to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from common import process


@pytest.mark.parametrize(
    ("said", "free"),
    [
        ("0.20 0.18 0.12 1/80 11206", True),
        ("0.20 0.18 0.12 2/80 11206", True),
        ("0.20 0.18 0.12 3/80 11206", False),
        ("9.20 9.18 9.12 12/80 11206", False),
        ("what is this", False),
        ("", False),
    ],
)
def test_as_many_as_there_are_cores_may_run(
    said: str, free: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = tmp_path / "loadavg"
    load.write_text(said)
    monkeypatch.setattr(process, "_LOAD", load)
    monkeypatch.setattr(process.os, "sched_getaffinity", lambda _: {0, 1})
    assert process.has_free_core() is free


def test_a_kernel_that_does_not_tell_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_LOAD", tmp_path / "nothing")
    assert not process.has_free_core()
