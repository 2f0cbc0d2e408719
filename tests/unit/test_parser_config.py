"""Settings of parser_config that are taken for what they are, and nothing else."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from api.apps.parser_config import ParserConfig


@pytest.mark.parametrize("value", [True, False])
def test_a_table_of_contents_may_be_asked_for(value: bool) -> None:
    assert ParserConfig.model_validate({"toc_extraction": value}).toc_extraction is value
    assert ParserConfig().toc_extraction is False


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_but_only_as_a_switch(value: object) -> None:
    with pytest.raises(ValidationError, match="toc_extraction"):
        ParserConfig.model_validate({"toc_extraction": value})
