"""Which ranges a document falls into, each with the digest that names its result. Pure, but for what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from api.db.services.task_requests import NewRange
from common.settings import TaskSettings
from rag.flow.chunk import ChunkSettings
from rag.flow.digest import task_digest
from rag.flow.file_name import name_weight
from rag.flow.methods import WHOLE_DOCUMENT
from rag.flow.split import split
from rag.parser.across_pages import MANY_SCANNED, goes_over_pages, neighbourhood
from rag.parser.blocks import FileKind, Profile, ReadOptions
from rag.utils.embedder import Embedder

_SCANNED_PAGES = 2
# A mail with its attachments takes as long as a hundred rows of a sheet.
_MAILS = 500
# A document of more ranges than so many has larger ones: one alone where it is at most so many times as large as asked
# for, or else two and more, each at most so many times as large.
_FEW_RANGES = 4
_TIMES_ALONE = 10
_TIMES_AS_LARGE = 5


@dataclass(frozen=True)
class ModelTraits:
    """What of the embedder in use, besides its name, decides chunks and vectors. `url` is its endpoint's."""

    dimension: int
    max_tokens: int = ChunkSettings().max_tokens
    url: str = ""

    @staticmethod
    def of(embedder: Embedder) -> ModelTraits:
        return ModelTraits(embedder.dimension, embedder.max_tokens, embedder.url)


@dataclass(frozen=True)
class PlannedFile:
    """What decides, besides the profile, how a file is split and what its chunks will be."""

    file_digest: str
    file_name: str
    chunk_method: str
    parser_config: Mapping[str, Any]
    embedding_model: str
    model: ModelTraits


def chunk_settings(
    chunk_method: str, parser_config: Mapping[str, Any], max_tokens: int = ChunkSettings().max_tokens
) -> ChunkSettings:
    """`max_tokens` is what the embedding model takes."""
    defaults = ChunkSettings()
    return ChunkSettings(
        method=chunk_method,
        chunk_token_num=parser_config.get("chunk_token_num") or defaults.chunk_token_num,
        delimiter=parser_config.get("delimiter") or defaults.delimiter,
        overlapped_percent=_percent(parser_config.get("overlapped_percent") or 0),
        children_delimiter=_children_delimiter(parser_config),
        html_tables=bool(parser_config.get("html4excel")),
        max_tokens=max_tokens,
    )


def _percent(value: float) -> int:
    """Given as a share or in percent."""
    return min(90, max(0, round(value * 100 if 0 < value < 1 else value)))


def _children_delimiter(parser_config: Mapping[str, Any]) -> str:
    """Empty where children are not asked for."""
    family = parser_config.get("parent_child") or {}
    if family.get("use_parent_child"):
        return str(family.get("children_delimiter") or "\n")
    if parser_config.get("enable_children"):
        return str(parser_config.get("children_delimiter") or "\n")
    return ""


def read_options(parser_config: Mapping[str, Any]) -> ReadOptions:
    return ReadOptions(
        password=parser_config.get("password") or "",
        ocr=parser_config.get("layout_recognize") != "Plain Text",
        pages=tuple((first, last) for first, last in parser_config.get("pages") or ()),
    )


def _options_of(options: ReadOptions, profile: Profile, first: int, last: int) -> ReadOptions:
    """What of them counts for a range: of the pages, those that may be read for it."""
    if not goes_over_pages(profile):
        return replace(options, pages=())
    low, high = neighbourhood(profile, options.pages, first, last)
    return replace(options, pages=((low + 1, high),))


def page_size(profile: Profile, settings: TaskSettings) -> int:
    """Fewer pages where reading one takes seconds: they are read side by side, and a loss costs little. More where the
    document is long: a page of text takes a millisecond or two, and a task must be worth its claim."""
    size = settings.task_page_size
    if profile.scanned >= MANY_SCANNED:
        return min(size, _SCANNED_PAGES)
    if profile.units <= size * _FEW_RANGES:
        return size
    if profile.units <= size * _TIMES_ALONE and not profile.scanned:
        return profile.units
    return min(size * _TIMES_AS_LARGE, -(-profile.units // 2))


def _row_size(profile: Profile, settings: TaskSettings) -> int:
    size = settings.task_row_size
    return min(size, _MAILS) if profile.kind is FileKind.MBOX else size


def plan_ranges(file: PlannedFile, profile: Profile, settings: TaskSettings) -> tuple[NewRange, ...]:
    """Raises PagesOutside where the pages asked for are not in the document."""
    config = file.parser_config
    ranges = split(
        profile,
        page_size=config.get("task_page_size") or page_size(profile, settings),
        row_size=_row_size(profile, settings),
        pages=config.get("pages"),
        whole=file.chunk_method in WHOLE_DOCUMENT,
    )
    chunking, options = chunk_settings(file.chunk_method, config, file.model.max_tokens), read_options(config)
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
                options=_options_of(options, profile, first, last),
                embedding_model=file.embedding_model,
                embedding_dimension=file.model.dimension,
                embedding_url=file.model.url,
                file_name=file.file_name,
                filename_embd_weight=name_weight(config),
            ),
        )
        for first, last in ranges
    )
