"""The description as a page shows it: grouped, with every model written out where it is used, in words.

Made of the document alone, so that the page can't tell anything else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, Any]
_DEEPEST = 3
_METHODS = ("get", "post", "put", "patch", "delete")
# (before the number, after a one, after others)
_BOUNDS = {
    "minimum": ("≥ ", "", ""),
    "maximum": ("≤ ", "", ""),
    "minLength": ("at least ", " character", " characters"),
    "maxLength": ("at most ", " character", " characters"),
    "minItems": ("at least ", " entry", " entries"),
    "maxItems": ("at most ", " entry", " entries"),
}


@dataclass(frozen=True)
class Row:
    """A parameter or a field. `depth` is how far inside another it stands."""

    name: str
    kind: str
    text: str = ""
    is_required: bool = False
    depth: int = 0


@dataclass(frozen=True)
class Answer:
    status: str
    text: str
    media: str
    rows: list[Row]


@dataclass(frozen=True)
class Entry:
    anchor: str
    method: str
    path: str
    summary: str
    note: str
    is_deprecated: bool
    needs_key: bool
    parameters: list[Row]
    body_media: str
    body: list[Row]
    example: str
    answers: list[Answer]


@dataclass(frozen=True)
class Group:
    name: str
    text: str
    entries: list[Entry]


def outline(document: Schema) -> list[Group]:
    words = _Words(document["components"])
    found: dict[str, list[Entry]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method in _METHODS:
            if method in methods:
                operation = methods[method]
                found[operation["tags"][0]].append(_entry(words, method, path, operation))
    texts = {tag["name"]: tag["description"] for tag in document["tags"]}
    return [Group(name, texts[name], entries) for name, entries in found.items() if entries]


def _entry(words: _Words, method: str, path: str, operation: Schema) -> Entry:
    media, body = next(iter(operation.get("requestBody", {}).get("content", {}).items()), ("", {}))
    both = operation.get("requestBody", {}).get("content", {})
    example = next((part["example"] for part in both.values() if "example" in part), None)
    return Entry(
        anchor=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation["summary"],
        note=operation.get("description", ""),
        is_deprecated=operation.get("deprecated", False),
        needs_key=bool(operation.get("security")),
        parameters=[words.parameter(one) for one in operation.get("parameters", ())],
        body_media=media,
        body=[row for part in both.values() for row in words.rows(part["schema"])] if body else [],
        example=json.dumps(example, indent=2, ensure_ascii=False) if example is not None else "",
        answers=[_answer(words, status, words.response(one)) for status, one in operation["responses"].items()],
    )


def _answer(words: _Words, status: str, one: Schema) -> Answer:
    content = one.get("content", {})
    # Refusals look alike everywhere: only what an answer says when all is well is written out.
    rows = [] if int(status) >= 400 else [row for part in content.values() for row in words.answer_rows(part)]
    return Answer(status, one["description"], ", ".join(content), rows)


class _Words:
    def __init__(self, components: Schema) -> None:
        self._components: Schema = components["schemas"]
        self._responses: Schema = components["responses"]

    def response(self, one: Schema) -> Schema:
        name = one.get("$ref", "").rpartition("/")[2]
        found: Schema = self._responses[name] if name else one
        return found

    def parameter(self, one: Schema) -> Row:
        text = one.get("description", "")
        return Row(f"{one['name']}", self.kind(one["schema"]) + f" · {one['in']}", text, one["required"])

    def answer_rows(self, part: Schema) -> Iterator[Row]:
        schema = part.get("schema", {})
        options = schema.get("anyOf", [schema])
        wanted = [one for one in options if not one.get("$ref", "").endswith("/Failure")]
        for one in wanted:
            yield from self.rows(one)

    def rows(self, schema: Schema, depth: int = 0) -> Iterator[Row]:
        """The fields of an object, each followed by those inside it."""
        schema = self._followed(schema)
        for option in schema.get("anyOf", ()):
            yield from self.rows(option, depth)
        if "items" in schema:
            yield from self.rows(schema["items"], depth)
        required = set(schema.get("required", ()))
        for name, field in schema.get("properties", {}).items():
            yield Row(name, self.kind(field), field.get("description", ""), name in required, depth)
            if depth < _DEEPEST:
                yield from self.rows(field, depth + 1)

    def kind(self, schema: Schema) -> str:
        """A type in a few words."""
        if "anyOf" in schema:
            kinds = list(dict.fromkeys(self.kind(one) for one in schema["anyOf"]))
            return self._with_default(" or ".join(kinds), schema)
        schema = self._followed(schema) | {key: value for key, value in schema.items() if key == "default"}
        if "const" in schema:
            return json.dumps(schema["const"])
        if "enum" in schema:
            return self._with_default(", ".join(json.dumps(one, ensure_ascii=False) for one in schema["enum"]), schema)
        if schema.get("type") == "array":
            return self._with_default(f"list of {self.kind(schema.get('items', {}))}", schema)
        kind = {"binary": "file"}.get(schema.get("format", ""), str(schema.get("type", "anything")))
        return self._with_default(kind, schema)

    def _with_default(self, kind: str, schema: Schema) -> str:
        bounds = [_bound(key, schema[key]) for key in _BOUNDS if key in schema]
        default = schema.get("default")
        if isinstance(default, (str, int, float)) and default != "":
            bounds.append(f"default {json.dumps(default, ensure_ascii=False)}")
        return ", ".join([kind, *bounds])

    def _followed(self, schema: Schema) -> dict[str, Any]:
        name = schema.get("$ref", "").rpartition("/")[2]
        return dict(self._components[name]) if name else dict(schema)


def _bound(key: str, value: float) -> str:
    before, after_one, after = _BOUNDS[key]
    return f"{before}{value}{after_one if value == 1 else after}"
