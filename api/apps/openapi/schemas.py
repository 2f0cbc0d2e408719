"""Pydantic models and plain types as JSON Schema, all models once, under /components/schemas."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

_REF = "#/components/schemas/{model}"
Schema = dict[str, Any]


class _Written(GenerateJsonSchema):
    """A field's title would only be its name in another spelling; a default that may not be sent is none."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: Any) -> Schema:
        made = super().default_schema(schema)
        if made.get("default") == "" and made.get("minLength"):
            del made["default"]
        return made


class Schemas:
    """What was asked for so far; `components` has every model that is named in it, `responses` every shared answer."""

    def __init__(self) -> None:
        self.components: dict[str, Schema] = {}
        self.responses: dict[str, Schema] = {}

    def of(self, kind: Any) -> Schema:
        """The schema of a type, as a reference where it is a model."""
        made = TypeAdapter(kind).json_schema(ref_template=_REF, schema_generator=_Written)
        for name, schema in made.pop("$defs", {}).items():
            self._keep(name, schema)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            self._keep(kind.__name__, made)
            return {"$ref": _REF.format(model=kind.__name__)}
        return made

    def fields(self, model: type[BaseModel]) -> list[tuple[str, Schema, bool]]:
        """(name, schema, whether it must be there) of each field, for a query string."""
        made = model.model_json_schema(ref_template=_REF, schema_generator=_Written)
        for name, schema in made.pop("$defs", {}).items():
            self._keep(name, schema)
        required = set(made.get("required", ()))
        return [(name, schema, name in required) for name, schema in made.get("properties", {}).items()]

    def shared(self, name: str, response: Schema) -> Schema:
        """A reference to an answer that many routes give."""
        self.responses[name] = response
        return {"$ref": f"#/components/responses/{name}"}

    def _keep(self, name: str, schema: Schema) -> None:
        schema.pop("title", None)
        known = self.components.setdefault(name, schema)
        if known != schema:
            raise ValueError(f"two models are called {name}")
