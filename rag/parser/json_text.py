"""JSON values as text for people: one line per value, "path: value"."""

from __future__ import annotations

from collections.abc import Iterator

from common.errors import UnreadableFile
from rag.parser.json_stream import Members, Value
from rag.parser.text import clean

MAX_DEPTH = 200

# A short list of plain values stands in one line.
_MAX_JOINED = 500
# Paths are repeated in every line, so long ones lose their start.
_MAX_PATH = 300


def check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise UnreadableFile(f"values are nested more than {MAX_DEPTH} deep, which is too deep to read")


def is_plain(value: Value) -> bool:
    return not isinstance(value, list | Members)


def children(path: str, value: list[Value] | Members) -> Iterator[tuple[str, Value]]:
    if isinstance(value, Members):
        for key, member in value:
            yield member_path(path, key), member
    else:
        for index, element in enumerate(value):
            yield element_path(path, index), element


def member_path(path: str, key: str) -> str:
    return _cut(f"{path}.{_plain_text(key)}" if path else _plain_text(key))


def element_path(path: str, index: int) -> str:
    return _cut(f"{path}[{index}]")


def lines(path: str, value: Value, most: int | None = None) -> list[str]:
    """A line for every value that says something; null, "" and what is empty do not. Stops after `most` characters.

    Raises UnreadableFile for what is nested more than MAX_DEPTH deep."""
    found: list[str] = []
    _add(found, path, value, 0, [most])
    return found


def _add(found: list[str], path: str, value: Value, depth: int, left: list[int | None]) -> None:
    if left[0] is not None and left[0] < 0:
        return
    check_depth(depth)
    if isinstance(value, list | Members):
        joined = _joined(value)
        if joined is None:
            for child_path, child in children(path, value):
                _add(found, child_path, child, depth + 1, left)
            return
        text = joined
    else:
        text = _plain(value)
    if text.strip():
        line = f"{path}: {text}" if path else text
        found.append(line)
        if left[0] is not None:
            left[0] -= len(line) + 1


def _joined(value: list[Value] | Members) -> str | None:
    """A short list of plain values in one line; None if it is another."""
    if isinstance(value, Members) or len(value) > _MAX_JOINED or not all(is_plain(each) for each in value):
        return None
    if sum(len(each) for each in value if isinstance(each, str)) > _MAX_JOINED:
        return None
    return ", ".join(text for each in value if (text := _plain(each)).strip())


def _plain(value: Value) -> str:
    match value:
        case str():
            return _plain_text(value)
        case bool():
            return "true" if value else "false"
        case _:
            return ""


def _plain_text(text: str) -> str:
    # Half a character, which JSON can name and nothing can store.
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    return clean(text)


def _cut(path: str) -> str:
    return path if len(path) <= _MAX_PATH else "…" + path[1 - _MAX_PATH :]
