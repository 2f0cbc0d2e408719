"""Which documents meet conditions on their metadata."""

from __future__ import annotations

from typing import Any

import pytest

from api.db.services.metadata_conditions import read_conditions
from common.errors import InvalidInput

PAPER = {"author": "Ada Lovelace", "year": 1843, "tags": ["Maths", "engines"], "day": "1843-09-01", "note": ""}


def asks(name: str, operator: str, value: object = "", logic: str = "and") -> bool:
    given = {"logic": logic, "conditions": [{"name": name, "comparison_operator": operator, "value": value}]}
    conditions = read_conditions(given)
    assert conditions is not None
    return conditions.met_by(PAPER)


@pytest.mark.parametrize(
    ("name", "operator", "value", "met"),
    [
        ("author", "is", "ada lovelace", True),
        ("author", "=", "Ada", False),
        ("author", "not is", "Ada", True),
        ("author", "≠", "ADA LOVELACE", False),
        ("year", ">", "1842", True),
        ("year", ">", 999, True),  # as numbers: as text 1843 comes before 999
        ("year", "<=", 1843.0, True),
        ("year", "<", 1843, False),
        ("year", "=", "1843.0", True),
        ("day", "≥", "1843-08-31", True),
        ("day", "<", "1843-08-31", False),
        ("author", "contains", "LOVE", True),
        ("author", "not contains", "love", False),
        ("tags", "=", "maths", True),
        ("tags", "≠", "maths", False),
        ("tags", "not in", ["poems", "letters"], True),
        ("tags", "in", "poems, Engines", True),
        ("author", "start with", "ada", True),
        ("author", "end with", "ADA", False),
        ("note", "empty", "", True),
        ("missing", "empty", "", True),
        ("author", "empty", "", False),
        ("author", "not empty", "", True),
        ("missing", "not empty", "", False),
        ("missing", "=", "x", False),
        ("missing", "≠", "x", True),
        ("missing", ">", 1, False),
    ],
)
def test_an_operator(name: str, operator: str, value: object, met: bool) -> None:
    assert asks(name, operator, value) is met


@pytest.mark.parametrize(("logic", "met"), [("and", False), ("or", True)])
def test_several_are_joined(logic: str, met: bool) -> None:
    both = [
        {"name": "year", "comparison_operator": "=", "value": 1843},
        {"name": "author", "comparison_operator": "=", "value": "Babbage"},
    ]
    conditions = read_conditions({"logic": logic, "conditions": both})
    assert conditions is not None
    assert conditions.met_by(PAPER) is met


@pytest.mark.parametrize("nothing", [None, {}, {"conditions": []}, {"logic": "or"}])
def test_nothing_asked(nothing: Any) -> None:
    assert read_conditions(nothing) is None


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ([1], "should be an object"),
        ({"logic": "xor", "conditions": [{"name": "a"}]}, "logic"),
        ({"conditions": "a"}, "should be a list"),
        ({"conditions": [{"name": ""}]}, "`name`"),
        ({"conditions": ["a"]}, "`name`"),
        ({"conditions": [{"name": "a", "comparison_operator": "~"}]}, "'~' is not known"),
        ({"conditions": [{"name": "a"}] * 65}, "at most 64"),
    ],
)
def test_what_is_wrong_is_named(given: Any, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        read_conditions(given)
