"""Datasets as they are answered."""

from __future__ import annotations

from typing import Any, Literal

from api.apps.shapes.common import Count, Id, LocalTime, Shape, Times


class Dataset(Times):
    id: Id
    name: str
    avatar: str
    description: str | None
    tenant_id: Id
    created_by: Id
    language: str
    embedding_model: str
    permission: Literal["me", "team"]
    chunk_method: str
    parser_config: dict[str, Any]
    pagerank: int
    pipeline_id: None
    document_count: Count
    chunk_count: Count
    token_num: Count
    similarity_threshold: float
    vector_similarity_weight: float
    status: Literal["1"]
    graphrag_task_id: str | None
    graphrag_task_finish_at: LocalTime | None
    raptor_task_id: str | None
    raptor_task_finish_at: LocalTime | None
    mindmap_task_id: str | None
    mindmap_task_finish_at: LocalTime | None


class DatasetInFull(Dataset):
    size: Count
    connectors: list[Any]


class ParsingStatus(Shape):
    unstart_count: Count
    running_count: Count
    cancel_count: Count
    done_count: Count
    fail_count: Count


class ListedDataset(Dataset):
    nickname: str
    tenant_avatar: None
    embedding_model_name: str
    parsing_status: ParsingStatus | None = None


class Owner(Shape):
    id: Id
    label: str
    count: Count


class OwnerFilter(Shape):
    owner: list[Owner]


class DatasetOwners(Shape):
    """With `type=filter`."""

    total: Count
    filter: OwnerFilter


class SuccessCount(Shape):
    success_count: Count


class TagCount(Shape):
    value: str
    count: Count


class MetadataConfig(Shape):
    metadata: list[Any]
    built_in_metadata: list[Any]


class MetadataKey(Shape):
    type: Literal["string", "number", "list", "time"]
    values: list[list[Any]]


class MetadataSummary(Shape):
    summary: dict[str, MetadataKey]


class MetadataChanged(Shape):
    updated: Count
    matched_docs: Count


class NoGraph(Shape):
    graph: dict[str, Any]
    mind_map: dict[str, Any]


class Nothing(Shape):
    """An empty object."""
