"""Changes to a document's metadata, and what a dataset's metadata amounts to. Pure: rows are metadata_service's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?$")


@dataclass(frozen=True)
class SetValue:
    """Set a key, or add to it where it is a list. With `match`, put the value in the place of equal ones only."""

    key: str
    value: Any
    match: Any = None


@dataclass(frozen=True)
class DropValue:
    """Drop a key; with `value`, equal values of it only."""

    key: str
    value: Any = None


def changed(
    metadata: Mapping[str, Any], updates: Sequence[SetValue], deletes: Sequence[DropValue]
) -> dict[str, Any] | None:
    """The metadata afterwards; None where nothing changes."""
    result = dict(metadata)
    for update in updates:
        _set(result, update)
    for delete in deletes:
        _drop(result, delete)
    return result if result != metadata else None


def _set(metadata: dict[str, Any], update: SetValue) -> None:
    held = metadata.get(update.key)
    if update.match is not None:
        if isinstance(held, list):
            metadata[update.key] = _once([update.value if _same(one, update.match) else one for one in held])
        elif held is not None and _same(held, update.match):
            metadata[update.key] = update.value
    elif isinstance(held, list):
        new = update.value if isinstance(update.value, list) else [update.value]
        metadata[update.key] = _once([*held, *new])
    else:
        metadata[update.key] = update.value


def _drop(metadata: dict[str, Any], delete: DropValue) -> None:
    if delete.key not in metadata:
        return
    held = metadata[delete.key]
    if delete.value is None:
        del metadata[delete.key]
    elif isinstance(held, list):
        kept = [one for one in held if not _same(one, delete.value)]
        if kept:
            metadata[delete.key] = kept
        else:
            del metadata[delete.key]
    elif _same(held, delete.value):
        del metadata[delete.key]


def _same(held: object, asked: object) -> bool:
    return str(held) == str(asked)


def _once(values: Iterable[Any]) -> list[Any]:
    return list({str(value): value for value in values}.values())


def summary(documents: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """For each key its type and its values with how many documents have them, most first."""
    return weighed_summary((metadata, 1) for metadata in documents)


def weighed_summary(noted: Iterable[tuple[Mapping[str, Any], int]]) -> dict[str, dict[str, Any]]:
    """The same of metadata that so many documents share."""
    counts: dict[str, Counter[str]] = {}
    types: dict[str, Counter[str]] = {}
    for metadata, count in noted:
        for key, held in metadata.items():
            types.setdefault(key, Counter())[_type(held)] += count
            counts.setdefault(key, Counter()).update(dict.fromkeys(_values(held), count))
    return {
        key: {"type": types[key].most_common(1)[0][0], "values": [list(pair) for pair in found.most_common()]}
        for key, found in counts.items()
    }


def flattened(documents: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, dict[str, list[str]]]:
    """For each key and value the ids of the documents that have it."""
    found: dict[str, dict[str, list[str]]] = {}
    for document_id, metadata in documents:
        for key, held in metadata.items():
            for value in _values(held):
                found.setdefault(key, {}).setdefault(value, []).append(document_id)
    return found


def _values(held: object) -> list[str]:
    return _once(str(one) for one in held) if isinstance(held, list) else [str(held)]


def _type(held: object) -> str:
    if isinstance(held, list):
        return "list"
    if isinstance(held, (int, float)) and not isinstance(held, bool):
        return "number"
    return "time" if _DATE.match(str(held)) else "string"
