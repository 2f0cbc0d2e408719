"""The schema of parser_config: strict types, unknown keys refused at every level, and the schema's own defaults.

The defaults that go with a chunk method are in api/db/services/parser_defaults.py."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from api.db.services.parser_defaults import ENTITY_TYPES, RAPTOR_PROMPT

MAX_CHARS = 65535
_LEAST_RAPTOR_TOKENS = 512
_NO_LONGER_USED = ("threshold", "clustering_method", "tree_builder", "ext")

MASK = "********"

Share = Annotated[float, Field(ge=0, le=1)]


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class Raptor(Strict):
    use_raptor: bool = False
    prompt: Annotated[str, Field(min_length=1)] = RAPTOR_PROMPT
    max_token: Annotated[int, Field(ge=1, le=2048)] = _LEAST_RAPTOR_TOKENS
    clustering_threshold: Share = 0.3
    clustering_ratio: Share = 0.5
    max_cluster: Annotated[int, Field(ge=1, le=1024)] = 64
    random_seed: Annotated[int, Field(ge=0)] = 0
    scope: Literal["file", "dataset"] = "file"
    auto_disable_for_structured_data: bool = True

    @model_validator(mode="before")
    @classmethod
    def _drop_old_keys(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: part for key, part in value.items() if key not in _NO_LONGER_USED}

    @field_validator("max_token")
    @classmethod
    def _raise_to_least(cls, value: int) -> int:
        return max(value, _LEAST_RAPTOR_TOKENS)


class Graphrag(Strict):
    use_graphrag: bool = False
    entity_types: list[str] = list(ENTITY_TYPES)
    method: Literal["light", "general", "ner"] = "light"
    community: bool = False
    resolution: bool = False
    batch_chunk_token_size: Annotated[int, Field(ge=512, le=8196)] = 4096

    @model_validator(mode="before")
    @classmethod
    def _drop_limits_of_calls(cls, value: Any) -> Any:
        """How often and how long a chat model is asked: there is none to ask."""
        if not isinstance(value, dict):
            return value
        return {
            key: part
            for key, part in value.items()
            if not (str(key).startswith("retry_") or str(key).endswith("_timeout_seconds"))
        }


class ParentChild(Strict):
    use_parent_child: bool = False
    children_delimiter: Annotated[str, Field(min_length=1)] = "\n"


class ParserConfig(Strict):
    auto_keywords: Annotated[int, Field(ge=0, le=32)] = 0
    auto_questions: Annotated[int, Field(ge=0, le=10)] = 0
    chunk_token_num: Annotated[int, Field(ge=1, le=2048)] = 512
    delimiter: Annotated[str, Field(min_length=1)] = "\n"
    overlapped_percent: Annotated[float, Field(ge=0, le=90)] = 0
    html4excel: bool = False
    toc_extraction: bool = False
    layout_recognize: str = "DeepDOC"
    tag_kb_ids: list[str] = []
    topn_tags: Annotated[int, Field(ge=1, le=10)] = 1
    filename_embd_weight: Share | None = 0.1
    task_page_size: Annotated[int, Field(ge=1)] | None = None
    pages: list[list[int]] | None = None
    on_bad_page: Literal["skip", "fail"] | None = None
    password: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    raptor: Raptor = Raptor()
    graphrag: Graphrag = Graphrag()
    parent_child: ParentChild = ParentChild()
    enable_children: bool = False
    children_delimiter: str = ""
    ext: dict[str, Any] = {}
    table_column_mode: Literal["auto", "manual"] = "auto"
    table_column_roles: dict[str, Any] = {}
    table_column_names: list[str] = []
    compilation_template_group_id: str | None = None

    def given(self) -> dict[str, Any]:
        """Only what was sent. A masked password is the one that is kept already."""
        sent = self.model_dump(exclude_unset=True)
        if sent.get("password") == MASK:
            del sent["password"]
        return sent

    @field_validator("pages")
    @classmethod
    def _check_pages(cls, value: list[list[int]] | None) -> list[list[int]] | None:
        for pages in value or ():
            if len(pages) != 2 or pages[0] < 1 or pages[1] < pages[0]:
                raise PydanticCustomError(
                    "pages", "Input should be pairs [first, last] of pages that count from 1, first not after last"
                )
        return value

    @model_validator(mode="after")
    def _check_size(self) -> ParserConfig:
        size = len(json.dumps(self.model_dump(mode="json"), ensure_ascii=False))
        if size > MAX_CHARS:
            raise PydanticCustomError(
                "size",
                "Parser config exceeds size limit (max {most} characters). Current size: {size}",
                {"most": MAX_CHARS, "size": size},
            )
        return self
