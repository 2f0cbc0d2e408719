"""What came as JSON and can't be kept: half a surrogate pair, which JSON can express and no store can write, and a
number that is none or has no end (`1e999`), which could be kept and makes an answer that nobody can read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_NO_TEXT = "Input should be a valid string: half a surrogate pair is no character"
_NO_NUMBER = "Input should be a finite number"


@dataclass(frozen=True)
class Unwritable:
    """`place` is with dots, and empty at the top."""

    place: str
    why: str


def unwritable(given: Any) -> Unwritable | None:
    """The first in `given` that can't be kept."""
    return next((Unwritable(place, why) for place, value in _values(given) if (why := why_unwritable(value))), None)


def why_unwritable(value: Any) -> str:
    """Of a text or a number; empty where it can be kept."""
    if isinstance(value, float):
        return "" if math.isfinite(value) else _NO_NUMBER
    return "" if not isinstance(value, str) or _is_writable(value) else _NO_TEXT


def _values(given: Any) -> Iterator[tuple[str, Any]]:
    """Every text and number in it, keys as well; without recursion, however deep it is."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), given)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            yield from ((".".join(path), key) for key in value)
            waiting += [((*path, key), one) for key, one in reversed(value.items())]
        elif isinstance(value, list):
            waiting += [((*path, str(at)), value[at]) for at in reversed(range(len(value)))]
        else:
            yield ".".join(path), value


def _is_writable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
