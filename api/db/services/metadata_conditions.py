"""Conditions on the metadata of documents, in the form of RAGFlow's API, and which documents meet them.

Compared are text without regard to case, numbers where both sides are numbers, and dates as YYYY-MM-DD, which sort as
text. A list meets a condition when one of its values does, and a negated one when none of them meets the opposite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from common.errors import InvalidInput

_OPPOSITES = {"≠": "=", "not contains": "contains", "not in": "in", "not empty": "empty"}
_SPELLINGS = {"is": "=", "==": "=", "not is": "≠", "!=": "≠", ">=": "≥", "<=": "≤"}
MAX_CONDITIONS = 64


@dataclass(frozen=True)
class Condition:
    name: str
    operator: str
    value: object = ""


@dataclass(frozen=True)
class Conditions:
    items: tuple[Condition, ...]
    any_of_them: bool = False

    def met_by(self, metadata: Mapping[str, Any]) -> bool:
        met = (_meets(metadata, condition) for condition in self.items)
        return any(met) if self.any_of_them else all(met)


def read_conditions(given: object) -> Conditions | None:
    """None where nothing is asked. Raises InvalidInput, naming what is wrong."""
    if not given:
        return None
    if not isinstance(given, Mapping):
        raise InvalidInput("`metadata_condition` should be an object")
    logic = given.get("logic") or "and"
    if logic not in ("and", "or"):
        raise InvalidInput("`metadata_condition.logic` should be 'and' or 'or'")
    listed = given.get("conditions") or []
    if not isinstance(listed, list) or len(listed) > MAX_CONDITIONS:
        raise InvalidInput(f"`metadata_condition.conditions` should be a list of at most {MAX_CONDITIONS}")
    return Conditions(tuple(map(_condition, listed)), any_of_them=logic == "or") if listed else None


def _condition(given: object) -> Condition:
    if not isinstance(given, Mapping) or not isinstance(given.get("name"), str) or not given["name"]:
        raise InvalidInput("each of `metadata_condition.conditions` should have a `name`")
    spelled = str(given.get("comparison_operator") or "=").strip().lower()
    operator = _SPELLINGS.get(spelled, spelled)
    if operator not in _OPERATORS and operator not in _OPPOSITES:
        raise InvalidInput(f"`comparison_operator` {spelled!r} is not known: allowed: {', '.join(KNOWN_OPERATORS)}")
    return Condition(given["name"], operator, given.get("value", ""))


def _meets(metadata: Mapping[str, Any], condition: Condition) -> bool:
    if condition.operator in _OPPOSITES:
        return not _meets(metadata, Condition(condition.name, _OPPOSITES[condition.operator], condition.value))
    held = metadata.get(condition.name)
    values = held if isinstance(held, list) else [] if held is None else [held]
    if condition.operator == "empty":
        return all(_folded(value) == "" for value in values)
    compare = _OPERATORS[condition.operator]
    return any(compare(value, condition.value) for value in values)


def _folded(value: object) -> str:
    return str(value).strip().casefold()


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None


def _ordered(decide: Callable[[Any, Any], bool]) -> Callable[[object, object], bool]:
    def compare(held: object, asked: object) -> bool:
        left, right = _number(held), _number(asked)
        if left is not None and right is not None:
            return decide(left, right)
        return decide(_folded(held), _folded(asked))

    return compare


def _is_in(held: object, asked: object) -> bool:
    """A list may come as one text with commas."""
    options = asked if isinstance(asked, list) else str(asked).split(",")
    return any(_equal(held, option) for option in options)


_equal = _ordered(lambda left, right: left == right)
_OPERATORS: dict[str, Callable[[object, object], bool]] = {
    "=": _equal,
    ">": _ordered(lambda left, right: left > right),
    "<": _ordered(lambda left, right: left < right),
    "≥": _ordered(lambda left, right: left >= right),
    "≤": _ordered(lambda left, right: left <= right),
    "contains": lambda held, asked: _folded(asked) in _folded(held),
    "in": _is_in,
    "start with": lambda held, asked: _folded(held).startswith(_folded(asked)),
    "end with": lambda held, asked: _folded(held).endswith(_folded(asked)),
    "empty": lambda held, asked: _folded(held) == "",
}
KNOWN_OPERATORS = tuple(sorted({*_OPERATORS, *_OPPOSITES, *_SPELLINGS}))
