"""What is sent to make, to change and to list datasets."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from api.apps.dataset_fields import (
    HEX32,
    Avatar,
    ChunkMethod,
    DatasetName,
    LongText,
    MetadataFields,
    ModelName,
    Permission,
    as_uuid,
)
from api.apps.envelope import ARGUMENT, ApiError
from api.apps.parser_config import ParserConfig, Strict
from api.apps.requests import MAX_NUMBER, PageSize, validation_lines
from api.db.services.dataset_changes import PLAIN_FIELDS, DatasetChange
from api.db.services.dataset_service import MAX_NAME_BYTES


class CreateDataset(Strict):
    name: DatasetName
    avatar: Avatar | None = None
    description: LongText | None = None
    embedding_model: ModelName | None = None
    permission: Permission = "me"
    chunk_method: ChunkMethod = "naive"
    parser_config: ParserConfig | None = None
    parse_type: Annotated[int, Field(ge=0, le=64)] | None = None
    pipeline_id: Annotated[str, StringConstraints(pattern=HEX32.pattern + "$")] | None = None
    auto_metadata_config: MetadataFields | None = None

    @model_validator(mode="after")
    def _check_pipeline(self) -> CreateDataset:
        given = {"parse_type", "pipeline_id"} & self.model_fields_set
        if given and "chunk_method" in self.model_fields_set:
            raise PydanticCustomError("pipeline", "parse_type|pipeline_id -> disallowed fields present: chunk_method")
        if len(given) == 1:
            (missing,) = {"parse_type", "pipeline_id"} - given
            raise PydanticCustomError("pipeline", "required fields missing: {field}", {"field": missing})
        return self

    def given_parser_config(self) -> dict[str, Any] | None:
        """With every default of the schema filled in; None where nothing was given."""
        if self.parser_config is None or not self.parser_config.model_fields_set:
            return None
        given = self.parser_config.model_dump()
        if given["password"] is None:
            del given["password"]
        return given


class UpdateDataset(Strict):
    """All are optional; what is not sent stays as it is."""

    name: DatasetName = ""
    avatar: Avatar | None = None
    description: LongText | None = None
    embedding_model: ModelName | None = None
    permission: Permission = "me"
    chunk_method: ChunkMethod = "naive"
    pagerank: Annotated[int, Field(ge=0, le=100)] = 0
    parser_config: ParserConfig | None = None
    language: Annotated[str, Field(min_length=1, max_length=32)] = "English"
    connectors: list[Any] | None = None
    auto_metadata_config: MetadataFields | None = None

    @field_validator("name")
    @classmethod
    def _check_bytes(cls, value: str) -> str:
        if len(value.encode()) > MAX_NAME_BYTES:
            raise PydanticCustomError("name", "String should have at most 128 bytes in UTF-8")
        return value

    def change(self) -> DatasetChange:
        sent = self.model_fields_set
        config = self.parser_config.given() if self.parser_config is not None else {}
        if self.auto_metadata_config is not None:
            config |= self.auto_metadata_config.model_dump()
        return DatasetChange(
            fields={field: getattr(self, field) for field in PLAIN_FIELDS if field in sent},
            name=self.name if "name" in sent else None,
            embedding_model=self.embedding_model,
            chunk_method=self.chunk_method if "chunk_method" in sent else None,
            parser_config=config or None,
        )


class DatasetExtras(BaseModel):
    """`ext` of a list of datasets, as JSON."""

    model_config = ConfigDict(extra="forbid")

    keywords: str = ""
    parser_id: str = ""
    owner_ids: list[str] = []


class ListDatasets(BaseModel):
    model_config = ConfigDict(extra="forbid")

    page: Annotated[int, Field(ge=1, le=MAX_NUMBER)] = 1
    page_size: PageSize = 30
    orderby: Literal["create_time", "update_time"] = "create_time"
    desc: bool = True
    id: Annotated[str, AfterValidator(as_uuid)] | None = None
    name: str | None = None
    ids: Annotated[list[Annotated[str, AfterValidator(as_uuid)]], Field(max_length=100)] | None = None
    include_parsing_status: bool = False
    ext: str = ""
    type: Literal["", "filter"] = ""

    def extras(self) -> DatasetExtras:
        if not self.ext:
            return DatasetExtras()
        try:
            return DatasetExtras.model_validate(json.loads(self.ext))
        except ValidationError as exc:
            raise ApiError(ARGUMENT, validation_lines(exc, "ext")) from exc
        except (ValueError, RecursionError) as exc:
            raise ApiError(ARGUMENT, "Field: <ext> - Message: <it must be valid JSON>") from exc
