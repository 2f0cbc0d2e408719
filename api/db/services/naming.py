"""Names within a dataset or a tenant: how they are compared, and the next free one where a name is taken.

Pure: which names are in use is asked of the caller."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence

_MAX_KEY = 255
_MAX_SUFFIX = 32
_COUNTED = re.compile(r"^(.*)\(([0-9]{1,9})\)$", re.DOTALL)
_FIRST_STEP = 16
_LARGEST_STEP = 500


def name_key(name: str) -> str:
    """The name as it is compared: without case, and never longer than its column."""
    key = name.strip().casefold()
    if len(key) <= _MAX_KEY:
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()
    return key[: _MAX_KEY - len(digest)] + digest


def free_name(name: str, taken: Callable[[Sequence[str]], set[str]], max_bytes: int) -> str:
    """`name`, or else `name(1)`, `name(2)` … with the number before the extension.

    `taken` tells which of the keys it is given are in use. A name that would grow beyond `max_bytes` loses the end
    of its stem."""
    if not taken([name_key(name)]):
        return name
    stem, suffix = _split(name)
    number = 0
    if counted := _COUNTED.match(stem):
        stem, number = counted[1], int(counted[2])
    step = _FIRST_STEP
    while True:
        names = [_numbered(stem, suffix, n, max_bytes) for n in range(number + 1, number + 1 + step)]
        used = taken([name_key(candidate) for candidate in names])
        for candidate in names:
            if name_key(candidate) not in used:
                return candidate
        number += step
        step = min(step * 2, _LARGEST_STEP)


def extension(name: str) -> str:
    """What follows the last dot, in lower case; "" where there is no dot."""
    return name.rpartition(".")[2].lower() if "." in name else ""


def _split(name: str) -> tuple[str, str]:
    stem, dot, tail = name.rpartition(".")
    if not stem or len(tail.encode()) > _MAX_SUFFIX:
        return name, ""
    return stem, dot + tail


def _numbered(stem: str, suffix: str, number: int, max_bytes: int) -> str:
    end = f"({number}){suffix}"
    room = max_bytes - len(end.encode())
    return stem.encode()[:room].decode("utf-8", "ignore") + end
