"""Text that came as JSON and is none: half a surrogate pair, which JSON can express and no store can write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def unwritable_place(given: Any) -> str | None:
    """Where in `given` the first such text stands, with dots; None where all can be written."""
    return next((place for place, text in _texts(given) if not _is_writable(text)), None)


def _texts(given: Any) -> Iterator[tuple[str, str]]:
    """Every text in it, keys as well; without recursion, however deep it is."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), given)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str):
            yield ".".join(path), value
        elif isinstance(value, dict):
            yield from ((".".join(path), key) for key in value)
            waiting += [((*path, key), one) for key, one in reversed(value.items())]
        elif isinstance(value, list):
            waiting += [((*path, str(at)), value[at]) for at in reversed(range(len(value)))]


def _is_writable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
