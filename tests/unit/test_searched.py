"""What of a chunk is searched, and how a file's name counts."""

from __future__ import annotations

import numpy as np
import pytest

from rag.flow.file_name import name_weight, weighted, words_of_name
from rag.flow.searched import searched_text


def test_headings_that_the_text_lacks_stand_before_it() -> None:
    assert searched_text("Rivers flow.", ("Nature", "Rivers")) == "Nature\nRivers flow."
    assert searched_text("<table><tr><td>a</td></tr></table>", ("T",)).split() == ["T", "a"]
    assert searched_text("alone", ()) == "alone"


@pytest.mark.parametrize(
    ("name", "words"),
    [("annual-report_2024.final.pdf", "annual report 2024 final"), ("Notes.md", "Notes"), ("---", "---")],
)
def test_a_name_as_words(name: str, words: str) -> None:
    assert words_of_name(name) == words


def test_the_weight_of_a_name_is_a_setting() -> None:
    assert [name_weight({"filename_embd_weight": given}) for given in (None, 0, 0.25)] == [0.0, 0.0, 0.25]
    assert name_weight({}) == 0.0


def test_vectors_move_towards_the_name() -> None:
    vectors = np.eye(3, dtype=np.float32)[:2]
    name = np.array([0, 0, 1], np.float32)
    moved = weighted(vectors, name, 0.1)
    assert np.allclose(np.linalg.norm(moved, axis=1), 1.0)
    assert (moved @ name > 0.1).all()
    assert np.allclose(weighted(np.zeros((1, 3), np.float32), np.zeros(3, np.float32), 0.5), 0.0)
