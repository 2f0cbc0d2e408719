"""What is sent about metadata: conditions on it, and changes to it. Each part is checked by those who use it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from api.apps.requests import Loose
from api.db.services.metadata_conditions import KNOWN_OPERATORS, MAX_CONDITIONS

MAX_EDITS = 1000


class MetadataTest(Loose):
    name: Annotated[str, Field(min_length=1)]
    comparison_operator: Annotated[str, Field(json_schema_extra={"enum": [*KNOWN_OPERATORS]})] = "is"
    value: Any = ""


class MetadataCondition(Loose):
    logic: Literal["and", "or"] = "and"
    conditions: Annotated[list[MetadataTest], Field(max_length=MAX_CONDITIONS)] = Field(default_factory=list)


class MetadataSelector(Loose):
    """The condition chooses among the documents that are named."""

    document_ids: list[str] = Field(default_factory=list)
    metadata_condition: MetadataCondition | None = None


class MetadataUpdate(Loose):
    """Sets a key, or adds to it where it is a list; with `match`, in the place of equal values only."""

    key: Annotated[str, Field(min_length=1)]
    value: str | float | list[str | float]
    match: Any = None


class MetadataDelete(Loose):
    """Drops a key; with `value`, equal values of it only."""

    key: Annotated[str, Field(min_length=1)]
    value: Any = None


class ChangeMetadata(Loose):
    selector: MetadataSelector = MetadataSelector()
    updates: Annotated[list[MetadataUpdate], Field(max_length=MAX_EDITS)] = Field(default_factory=list)
    deletes: Annotated[list[MetadataDelete], Field(max_length=MAX_EDITS)] = Field(default_factory=list)


class SummaryQuery(Loose):
    doc_ids: Annotated[list[str], Field(description="Repeated, or parted by commas")] = Field(default_factory=list)


class DatasetIdsQuery(Loose):
    dataset_ids: Annotated[list[str], Field(min_length=1, description="Repeated, or parted by commas")]
