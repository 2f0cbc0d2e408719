"""Scores of rerankers: what lies outside of 0..1 is squashed, and the order stays."""

from __future__ import annotations

import pytest

from common.errors import SettingsError
from common.settings import RerankSettings
from rag.utils.reranker import open_reranker, squashed


def test_scores_from_0_to_1_stay() -> None:
    assert squashed([0.0, 0.25, 1.0]) == [0.0, 0.25, 1.0]
    assert squashed([]) == []


def test_others_are_squashed_all_of_them() -> None:
    assert squashed([0.0, 2.0, -2.0]) == pytest.approx([0.5, 0.8808, 0.1192], abs=1e-4)
    far = squashed([-10_000.0, -1.0, 0.5, 3.0, 10_000.0])
    assert far == sorted(far)
    assert (far[0], far[-1]) == (0.0, 1.0)


def test_without_an_address_there_is_none() -> None:
    assert open_reranker(RerankSettings()) is None


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"url": "http://host/v1"}, "rerank.model"),
        ({"url": "http://u:p@host/v1", "model": "m"}, "a key goes into rerank.api_key"),
        ({"url": "http:///v1", "model": "m"}, "rerank.url"),
        ({"url": "http://host", "model": "m", "api_key": "a b"}, "rerank.api_key"),
        ({"url": "http://host", "model": "m", "api_key_file": "/nowhere/key"}, "rerank.api_key_file"),
    ],
)
def test_settings_that_are_no_good_are_named(fields: dict[str, str], says: str) -> None:
    with pytest.raises(SettingsError, match=says) as refused:
        open_reranker(RerankSettings.model_validate(fields))
    assert "a b" not in refused.value.public_message
