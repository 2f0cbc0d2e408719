"""Whether a piece that is compiled at install is there: a laptop may lack a compiler, and CI must not."""

from __future__ import annotations

import os

import pytest


def require(piece: object | None, source: str) -> None:
    if piece is None:
        assert not os.environ.get("CI"), f"{source} was not compiled"
        pytest.skip(f"{source} was not compiled: no compiler, or no headers of Python, when installing")
