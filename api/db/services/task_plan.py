"""Which ranges a document falls into, each with the digest that names its result. Pure, but for what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.db.services.task_requests import NewRange
from common.settings import TaskSettings
from rag.flow.chunk import ChunkSettings
from rag.flow.digest import task_digest
from rag.flow.split import split
from rag.parser.blocks import Profile, ReadOptions


@dataclass(frozen=True)
class PlannedFile:
    """What decides, besides the profile, how a file is split and what its chunks will be."""

    file_digest: str
    file_name: str
    chunk_method: str
    parser_config: Mapping[str, Any]
    embedding_model: str
    embedding_dimension: int


def chunk_settings(chunk_method: str, parser_config: Mapping[str, Any]) -> ChunkSettings:
    defaults = ChunkSettings()
    return ChunkSettings(
        method=chunk_method,
        chunk_token_num=parser_config.get("chunk_token_num") or defaults.chunk_token_num,
        delimiter=parser_config.get("delimiter") or defaults.delimiter,
    )


def read_options(parser_config: Mapping[str, Any]) -> ReadOptions:
    return ReadOptions(
        password=parser_config.get("password") or "",
        ocr=parser_config.get("layout_recognize") != "Plain Text",
        html_tables=bool(parser_config.get("html4excel")),
    )


def plan_ranges(file: PlannedFile, profile: Profile, settings: TaskSettings) -> tuple[NewRange, ...]:
    """Raises PagesOutside where the pages asked for are not in the document."""
    config = file.parser_config
    ranges = split(
        profile,
        page_size=config.get("task_page_size") or settings.task_page_size,
        row_size=settings.task_row_size,
        pages=config.get("pages"),
    )
    chunking, options = chunk_settings(file.chunk_method, config), read_options(config)
    return tuple(
        NewRange(
            first,
            last,
            task_digest(
                file_digest=file.file_digest,
                first=first,
                last=last,
                profile=profile,
                chunking=chunking,
                options=options,
                embedding_model=file.embedding_model,
                embedding_dimension=file.embedding_dimension,
                file_name=None,
            ),
        )
        for first, last in ranges
    )
