"""The OpenAPI 3.1 document: made by walking the app's own table of routes, each with the operation it declares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from flask import Flask
from werkzeug.routing import Rule

from api.apps.openapi.operation import Operation, operation_of, why_undescribed
from api.apps.openapi.prose import ABOUT, SECURITY_SCHEMES, TAGS
from api.apps.openapi.responses import Guards, responses
from api.apps.openapi.schemas import Schema, Schemas
from common.settings import ServerSettings

PREFIXES = ("/api/v1/", "/v1/", "/ws/")
_OLDER = "/v1/"
_ARGUMENT = re.compile(r"<(?:(?P<kind>[a-z]+):)?(?P<name>[a-z_]+)>")
_ID = {"type": "string", "pattern": "^[0-9a-f]{32}$", "examples": ["6f0c2a1e5b3d4c7f8a9b0c1d2e3f4a5b"]}
_CHUNK_ID = {"type": "string", "pattern": "^[0-9a-f]{16,64}$"}
_PAGE = {"type": "integer", "minimum": 1}
_TEXT = {"type": "string", "minLength": 1}
_PATH_SCHEMAS = dict.fromkeys(("token", "file_id", "name", "group"), _TEXT) | {"chunk_id": _CHUNK_ID, "page": _PAGE}
# Names of functions that a blueprint runs before its routes, and that let nobody in without a key.
_GATES = ("require_caller", "_require_caller", "require_admin")
_KEY_IN_QUERY = "job_events"
_BODY_METHODS = ("POST", "PUT", "PATCH", "DELETE")


def api_routes(app: Flask) -> Iterator[tuple[str, Rule]]:
    """(method, rule) of everything that callers of the API may ask for."""
    for rule in app.url_map.iter_rules():
        if rule.rule.startswith(PREFIXES):
            for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
                yield method, rule


def build(app: Flask, server: ServerSettings, version: str) -> Schema:
    """Raises LookupError that names a route that is neither described nor says why not."""
    schemas = Schemas()
    paths: dict[str, Schema] = {}
    for method, rule in api_routes(app):
        view = app.view_functions[rule.endpoint]
        operation = operation_of(view)
        if operation is not None:
            path = _ARGUMENT.sub(r"{\g<name>}", rule.rule)
            described = _described(app, method, rule, operation, schemas)
            paths.setdefault(path, {}).setdefault(method.lower(), described)
        elif not why_undescribed(view):
            raise LookupError(f"{method} {rule.rule} is not described")
    _put_page_size(paths, server.max_page_size)
    _put_page_size(schemas.components, server.max_page_size)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Pagemill", "version": version, "description": ABOUT},
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.components.items())),
            "responses": dict(sorted(schemas.responses.items())),
            "securitySchemes": SECURITY_SCHEMES,
            "headers": {
                "RequestId": {"description": "The id under which the log has the request", "schema": {"type": "string"}}
            },
        },
        "x-limits": _limits(server),
    }


def needs_key(app: Flask, rule: Rule) -> bool:
    """Told by the gate that stands before the route's blueprint, so that the document can't say otherwise."""
    gates: list[Callable[..., Any]] = app.before_request_funcs.get(rule.endpoint.rpartition(".")[0], [])
    return any(gate.__name__ in _GATES for gate in gates)


def _described(app: Flask, method: str, rule: Rule, operation: Operation, schemas: Schemas) -> Schema:
    is_older = rule.rule.startswith(_OLDER)
    found: Schema = {
        "operationId": _operation_id(method, rule.rule),
        "tags": ["Older addresses" if is_older else operation.tag],
        "summary": operation.summary,
    }
    if operation.note:
        found["description"] = operation.note
    if is_older or operation.is_deprecated:
        found["deprecated"] = True
    parameters = [*_path_parameters(rule), *_query_parameters(operation, schemas), *_headers(operation)]
    if parameters:
        found["parameters"] = parameters
    if method in _BODY_METHODS and (operation.body or operation.form):
        found["requestBody"] = _request_body(operation, schemas)
    locked = needs_key(app, rule)
    guards = Guards(needs_key=locked, has_path="<" in rule.rule, is_unsafe=method in _BODY_METHODS)
    found["responses"] = responses(operation, schemas, guards)
    found["security"] = _security(rule, locked)
    return found


def _operation_id(method: str, rule: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "_", _ARGUMENT.sub(r"\g<name>", rule.lower())).strip("_")
    return f"{method.lower()}_{words}"


def _security(rule: Rule, locked: bool) -> list[Schema]:
    if not locked:
        return []
    known: list[Schema] = [{"bearer": []}, {"basic": []}, {"session": []}]
    return [*known, {"keyInQuery": []}] if rule.endpoint.startswith(_KEY_IN_QUERY) else known


def _path_parameters(rule: Rule) -> Iterator[Schema]:
    for found in _ARGUMENT.finditer(rule.rule):
        name = found["name"]
        schema = _PATH_SCHEMAS.get(name, _ID)
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(operation: Operation, schemas: Schemas) -> Iterator[Schema]:
    if operation.query is None:
        return
    for name, schema, is_required in schemas.fields(operation.query):
        one: Schema = {"name": name, "in": "query", "required": is_required}
        if text := schema.pop("description", ""):
            one["description"] = text
        yield one | {"schema": schema}


def _headers(operation: Operation) -> Iterator[Schema]:
    if operation.is_once:
        text = "With one, the effect happens once, however often the request is sent"
        schema = {"type": "string", "maxLength": 255}
        yield {"name": "Idempotency-Key", "in": "header", "required": False, "description": text, "schema": schema}


def _request_body(operation: Operation, schemas: Schemas) -> Schema:
    content: Schema = {}
    if operation.form is not None:
        content["multipart/form-data"] = {"schema": schemas.of(operation.form)}
    if operation.body is not None:
        content["application/json"] = {"schema": schemas.of(operation.body)}
        if operation.example is not None:
            content["application/json"]["example"] = operation.example
    return {"required": operation.needs_body, "content": content}


def _put_page_size(part: Any, most: int) -> None:
    """Into every parameter and field of that name: models do not know the settings."""
    if isinstance(part, dict):
        if part.get("name") == "page_size" and part.get("in") == "query":
            part["schema"]["maximum"] = most
        page_size = part.get("properties", {}).get("page_size")
        if isinstance(page_size, dict) and "minimum" in page_size:
            page_size["maximum"] = most
    for one in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        _put_page_size(one, most)


def _limits(server: ServerSettings) -> Schema:
    """As they are set on this server."""
    names = ("max_body_mb", "max_json_mb", "max_files_per_upload", "max_ids", "max_page_size", "max_question_chars",
             "requests_per_minute", "request_burst", "failed_logins_per_minute")  # fmt: skip
    return {name: getattr(server, name) for name in names}
