"""Documents, their parses and their failed tasks as they are answered."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from api.apps.shapes.common import Count, EpochMs, Id, LocalTime, Shape, Times

Run = Literal["UNSTART", "RUNNING", "CANCEL", "DONE", "FAIL"]


class Document(Times):
    """`progress` is 0 to 1, and -1 where it failed."""

    id: Id
    name: str
    dataset_id: Id
    chunk_method: str
    parser_config: dict[str, Any]
    pipeline_id: str
    source_type: str
    type: Literal["pdf", "doc", "aural", "visual", "virtual"]
    suffix: str
    created_by: Id
    location: str
    size: Count
    thumbnail: str
    token_count: Count
    chunk_count: Count
    progress: float
    progress_msg: str
    process_begin_at: LocalTime | None
    process_duration: float
    run: Run
    status: Literal["0", "1"]


class ListedDocument(Document):
    meta_fields: dict[str, Any]
    pipeline_name: str
    nickname: str


class DocumentPage(Shape):
    total: Count
    docs: list[ListedDocument]


class DocumentCountsBy(Shape):
    suffix: dict[str, int]
    run_status: dict[str, int]
    metadata: dict[str, dict[str, int]]


class DocumentFilterCounts(Shape):
    """With `type=filter`."""

    total: Count
    filter: DocumentCountsBy


class Deleted(Shape):
    deleted: Count


class SwitchedDocument(Shape):
    status: Literal["0", "1"]


class Started(Shape):
    """`errors` names what could not be done; without it, all was."""

    success_count: Count
    errors: list[str] = Field(default_factory=list)


class IngestionLog(Times):
    id: Id
    document_id: Id
    tenant_id: Id
    kb_id: Id
    pipeline_id: str
    parser_id: str
    document_name: str
    document_suffix: str
    document_type: str
    source_from: str
    task_type: str
    operation_status: str
    status: Literal["0", "1"]
    progress: float
    progress_msg: str
    process_begin_at: LocalTime | None
    process_duration: float


class IngestionPage(Shape):
    total: Count
    logs: list[IngestionLog]


class IngestionSummary(Shape):
    doc_num: Count
    chunk_num: Count
    token_num: Count
    status: dict[str, int]


class FailedTask(Shape):
    id: str
    document_id: Id
    document_name: str
    dataset_id: Id
    task_type: str
    from_page: int
    to_page: int
    generation: int
    is_current: bool
    error_code: str
    error_message: str
    end_ms: EpochMs


class FailedTasks(Shape):
    causes: dict[str, int]
    tasks: list[FailedTask]


class Acted(Shape):
    success_count: Count
    refused_count: Count
