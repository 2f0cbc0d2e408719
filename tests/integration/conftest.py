"""What most of the tests over REST stand on. Those that need other settings, or one world for a whole module, have a
fixture of the same name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rest_world import RestWorld, rest_world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RestWorld]:
    with rest_world(tmp_path) as opened:
        yield opened
