"""Known documents are read faithfully: floors under what `make bench-parse` prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rag.parser import registry
from tests.known_documents import MAKERS, TABLE_MAKERS, Known, cells_right, f1, order, words_of


@pytest.mark.parametrize("make", (*MAKERS, *TABLE_MAKERS), ids=lambda make: make.__name__)
def test_words_order_and_cells(tmp_path: Path, make: Callable[[Path], Known]) -> None:
    known = make(tmp_path)
    profile = registry.profile(known.path, known.path.name)
    blocks = list(registry.read(known.path, profile, 0, profile.units))
    got = words_of(blocks, by_character=known.name == "chinese")
    assert f1(known.words, got) >= 0.98
    assert order(known.words, got) >= 0.97
    assert cells_right(known, blocks) >= (0.85 if known.name.startswith("unruled") else 0.95)
