"""A short storm; `make chaos` runs a long one. CHAOS_SEED=N rolls the same dice again."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from tests.chaos.storm import run_storm
from tests.conftest import missing

pytestmark = pytest.mark.timeout(600)
_SECONDS = 120


def test_every_chunk_is_there_once_whatever_is_killed(short_dir: Path) -> None:
    if shutil.which("mariadbd") is None:
        missing("MariaDB (mariadbd)")
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1_000_000))
    print(f"CHAOS_SEED={seed}")
    folder = short_dir / "storm"
    folder.mkdir(mode=0o755)
    report = run_storm(folder, _SECONDS, seed)
    report.show()
    assert report.documents >= 20
    assert {"MariaDB", "index"} <= {name.split()[0] for name in report.dealt}
    assert report.is_clean, report
