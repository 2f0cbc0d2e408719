"""The description of the API covers every route, and handlers see nothing that it does not name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from api.apps.openapi.operation import Operation, describe, operation_of
from api.apps.openapi.schemas import Schemas
from api.apps.parser_config import Strict
from common.settings import ROOT

APPS = ROOT / "api" / "apps"
# Who may look at the whole query: it is filtered there, unknown names are refused, or a key is taken from it.
READ_ARGS = {"requests.py", "job_requests.py", "job_events.py", "limits.py"}


def test_handlers_read_the_query_by_what_they_declare() -> None:
    readers = {path.name for path in _modules() if re.search(r"request\.args", path.read_text(encoding="utf-8"))}
    assert readers <= READ_ARGS


def _modules() -> list[Path]:
    """Pages for people are no part of the API."""
    return [path for path in sorted(APPS.rglob("*.py")) if "ui" not in path.relative_to(APPS).parts]


def test_two_models_of_one_name_are_noticed() -> None:
    def named(kind: Any) -> type[Strict]:
        return type("Same", (Strict,), {"__annotations__": {"field": kind}, "__module__": __name__})

    schemas = Schemas()
    schemas.of(named(int))
    with pytest.raises(ValueError, match="Same"):
        schemas.of(named(str))


def test_a_view_carries_its_operation() -> None:
    @describe("Tag", "What it does")
    def view() -> None: ...

    assert operation_of(view) == Operation("Tag", "What it does")
    assert operation_of(test_a_view_carries_its_operation) is None
