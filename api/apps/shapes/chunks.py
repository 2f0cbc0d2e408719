"""Chunks, tables of contents and the answers of searches."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from api.apps.shapes.common import Count, Id, Shape
from api.apps.shapes.documents import Document

ChunkId = Annotated[str, Field(pattern="^[0-9a-f]+$")]
Position = Annotated[list[int], Field(min_length=5, max_length=5, description="page from 1, left, right, top, bottom")]


class Chunk(Shape):
    id: ChunkId
    content: str
    document_id: Id
    docnm_kwd: str
    important_keywords: list[str]
    questions: list[str]
    tag_kwd: list[str]
    dataset_id: Id
    image_id: str
    available: bool
    positions: list[Position]
    doc_type_kwd: str


class PageFacts(Shape):
    page: int
    page_count: Count
    width: float
    height: float
    picture: str


class ReadChunk(Shape):
    id: ChunkId
    number: int
    page: int
    content: str
    kind: str
    headings: list[str]
    token_count: Count
    available: bool
    is_added: bool
    important_keywords: list[str]
    questions: list[str]
    tag_kwd: list[str]
    positions: list[Position]
    picture: str
    parent: str


class ReadingPage(Shape):
    total: Count
    page: int
    page_count: Count
    unit: str
    units: Count
    chunks: list[ReadChunk]


class ChunkPage(Shape):
    total: Count
    chunks: list[Chunk]
    doc: Document


class AddedChunk(Shape):
    id: ChunkId
    content: str
    document_id: Id
    dataset_id: Id
    important_keywords: list[str]
    questions: list[str]
    create_time: str
    create_timestamp: float
    doc_type_kwd: str
    tag_kwd: list[str] = Field(default_factory=list)


class Added(Shape):
    chunk: AddedChunk


class IndexedChunk(Shape):
    """Under the names of RAGFlow's index."""

    content_with_weight: str
    content_ltks: str
    doc_id: Id
    docnm_kwd: str
    kb_id: Id
    important_kwd: list[str]
    question_kwd: list[str]
    tag_kwd: list[str]
    tag_feas: dict[str, float]
    img_id: str
    available_int: int
    position_int: list[Position]
    page_num_int: list[int]
    doc_type_kwd: str
    create_timestamp_flt: float


class ChunkInFull(IndexedChunk):
    id: ChunkId


class SearchedChunk(IndexedChunk):
    chunk_id: ChunkId
    similarity: float
    vector_similarity: float
    term_similarity: float


class DocumentHits(Shape):
    doc_name: str
    doc_id: Id
    count: Count


class Searched(Shape):
    total: Count
    chunks: list[SearchedChunk]
    doc_aggs: list[DocumentHits]
    labels: list[Any]


class FoundChunk(Shape):
    """`explain` and `document_metadata` where they were asked for; `highlight` likewise."""

    id: ChunkId
    content: str
    content_ltks: str
    document_id: Id
    document_keyword: str
    dataset_id: Id
    important_keywords: list[str]
    tag_kwd: list[str]
    image_id: str
    mom_id: str
    row_id: None
    similarity: float
    vector_similarity: float
    term_similarity: float
    positions: list[Position]
    doc_type_kwd: str
    highlight: str = ""
    document_metadata: dict[str, Any] = Field(default_factory=dict)
    explain: dict[str, Any] = Field(default_factory=dict)


class Retrieved(Shape):
    """`doc_aggs` is an empty object for a blank question. `total` counts the hits in the window that holds the page."""

    total: Count
    chunks: list[FoundChunk]
    doc_aggs: list[DocumentHits] | dict[str, Any]
    rerank: dict[str, Any] = Field(default_factory=dict)
    explain: dict[str, Any] = Field(default_factory=dict)


class Heading(Shape):
    level: int
    title: str
    page: int
    chunk_id: ChunkId


class Contents(Shape):
    total: Count
    toc: list[Heading]
    doc: Document
