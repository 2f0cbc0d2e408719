"""Every answer that a test gets, held against the description of the API: a status that it names, a content type that
goes with it, and a body that conforms."""

from __future__ import annotations

import re
from typing import Any

import jsonschema_rs
from flask import Flask
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Rule
from werkzeug.test import TestResponse

from api.apps.openapi.document import PREFIXES, build
from api.apps.openapi.operation import operation_of
from common.settings import ServerSettings


class Described:
    def __init__(self, app: Flask) -> None:
        self.document = build(app, ServerSettings(), "0")
        self._validators: dict[tuple[str, str, str, str], Any] = {}

    def require(self, app: Flask, response: TestResponse) -> None:
        path, method = response.request.path, response.request.method
        if not path.startswith(PREFIXES) or method in ("OPTIONS", "HEAD"):
            return
        rule = matched(app, path, method)
        if rule is None or operation_of(app.view_functions[rule.endpoint]) is None:
            return
        operation = self.operation(method, rule)
        status, media = str(response.status_code), (response.mimetype or "")
        assert status in operation["responses"], f"{method} {rule.rule} answers {status}, which is not described"
        told = self.followed(operation["responses"][status])
        content = told.get("content", {})
        if not content:
            assert not response.get_data(), f"{method} {rule.rule} answers {status} with a body that is not described"
            return
        assert media in content or "*/*" in content, f"{method} {rule.rule} answers {status} as {media}"
        if media.endswith("json") and media in content:
            self._require_body(method, rule.rule, status, media, content[media].get("schema", {}), response)

    def operation(self, method: str, rule: Rule) -> Any:
        path = _path(rule.rule)
        return self.document["paths"][path][method.lower()]

    def followed(self, told: Any) -> Any:
        name = told.get("$ref", "").rpartition("/")[2]
        return self.document["components"]["responses"][name] if name else told

    def _require_body(
        self, method: str, rule: str, status: str, media: str, schema: Any, response: TestResponse
    ) -> None:
        key = (method, rule, status, media)
        if key not in self._validators:
            whole = {**schema, "components": self.document["components"]}
            self._validators[key] = jsonschema_rs.Draft202012Validator(whole)
        body = response.get_json()
        try:
            self._validators[key].validate(body)
        except jsonschema_rs.ValidationError as exc:
            raise AssertionError(f"{method} {rule} answers {status} otherwise than described: {exc}\n{body}") from exc


def matched(app: Flask, path: str, method: str) -> Rule | None:
    try:
        rule, _ = app.url_map.bind("localhost").match(path, method, return_rule=True)
    except HTTPException:
        return None
    return rule


def _path(rule: str) -> str:
    return re.sub(r"<(?:[a-z]+:)?([a-z_]+)>", r"{\1}", rule)


_KNOWN: list[Described] = []


def require_described(app: Flask, response: TestResponse) -> None:
    """The document is the same for every app of a test run, and made once."""
    if not _KNOWN:
        _KNOWN.append(Described(app))
    _KNOWN[0].require(app, response)
