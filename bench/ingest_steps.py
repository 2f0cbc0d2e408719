"""The product's own steps from a file to the index, called one after another: what the ingest bench runs without a
queue, and as Celery tasks. And the same way as RAGFlow's default goes it, for comparison."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from api.db.services.task_plan import page_size
from common.ids import chunk_id
from common.settings import EmbeddingSettings, IndexSettings, Settings, TaskSettings
from rag.flow.chunk import Chunk, ChunkSettings
from rag.flow.chunker import Chunker
from rag.flow.searched import searched_text
from rag.flow.split import split
from rag.flow.token_counter import CountTokens, token_counter
from rag.parser import across_pages, registry
from rag.parser.blocks import Profile
from rag.utils.doc_index import ChunkRecord
from rag.utils.embedded_index import EmbeddedIndex
from rag.utils.embedder import PackagedEmbedder
from rag.utils.terms import analyse

TENANT, DATASET = "bench", "bench"
# RAGFlow's defaults: tokens of a chunk, and chunks of one call of the embedding model.
_RAGFLOW_TOKENS = 512
_RAGFLOW_BATCH = 16


class Piece(NamedTuple):
    """A range of a file, as plain values that every queue can carry."""

    data_dir: str
    path: str
    profile: bytes
    first: int
    last: int


def prepare(data_dir: str, path: str) -> list[Piece]:
    profile = registry.profile(Path(path), Path(path).name)
    ranges = split(profile, page_size=page_size(profile, TaskSettings()), row_size=5000, pages=None, whole=False)
    return [Piece(data_dir, path, msgspec.json.encode(profile), first, last) for first, last in ranges]


def ingest(piece: Piece) -> int:
    """Parse, chunk, embed and write a range; the number of the write."""
    profile = msgspec.json.decode(piece.profile, type=Profile)
    blocks = across_pages.read(Path(piece.path), profile, piece.first, piece.last)
    chunks = list(Chunker(_counter(), ChunkSettings(), profile).chunk(blocks))
    vectors = _embedder().embed([searched_text(chunk.text, chunk.headings) for chunk in chunks])
    index = opened_index(piece.data_dir)
    written = index.upsert(list(_records(piece, chunks)), vectors)
    index.make_durable(written)
    return written


def ingest_as_ragflow(piece: Piece) -> int:
    """The file is opened anew for every range and read by pdfplumber; sixteen chunks are embedded at a time."""
    import pdfplumber

    with pdfplumber.open(piece.path) as document:
        pages = document.pages[piece.first : piece.last]
        lines = [(page.page_number, line["text"]) for page in pages for line in page.extract_text_lines()]
    texts = list(_packed(lines))
    chunks = [Chunk(text, tokens, page) for page, text, tokens in texts]
    index, written = opened_index(piece.data_dir), 0
    for start in range(0, len(chunks), _RAGFLOW_BATCH):
        part = chunks[start : start + _RAGFLOW_BATCH]
        vectors = _embedder().embed([chunk.text for chunk in part])
        written = index.upsert(list(_records(piece, part, start)), vectors)
    return written


def warm() -> None:
    """Load what a process loads once."""
    _counter()(["warm"])
    _embedder().embed(["warm"])


def _packed(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str, int]]:
    """Lines in chunks of so many tokens: (page, text, tokens)."""
    held: list[str] = []
    page = tokens = 0
    counts = _counter()([text for _, text in lines])
    for (number, text), count in zip(lines, counts, strict=True):
        if held and tokens + count > _RAGFLOW_TOKENS:
            yield page, "\n".join(held), tokens
            held, tokens = [], 0
        page = page if held else number
        held.append(text)
        tokens += count
    if held:
        yield page, "\n".join(held), tokens


def _records(piece: Piece, chunks: Sequence[Chunk], start: int = 0) -> Iterator[ChunkRecord]:
    document = hashlib.sha256(piece.path.encode()).hexdigest()[:32]
    for ordinal, chunk in enumerate(chunks, start):
        yield ChunkRecord(
            id=chunk_id(document, 1, piece.first, 1, ordinal),
            tenant_id=TENANT,
            dataset_id=DATASET,
            document_id=document,
            generation=1,
            task_no=piece.first,
            claim_no=1,
            ordinal=ordinal,
            page=chunk.page,
            text=chunk.text,
            terms=" ".join(analyse(searched_text(chunk.text, chunk.headings))),
            token_count=chunk.tokens,
            kind=chunk.kind,
            headings=chunk.headings,
            positions=tuple((b.page, b.left, b.right, b.top, b.bottom) for b in chunk.boxes),
        )


@cache
def _counter() -> CountTokens:
    return token_counter(_embedder().tokenizer, _embedder().words)


@cache
def _embedder() -> PackagedEmbedder:
    return PackagedEmbedder(EmbeddingSettings())


@cache
def opened_index(data_dir: str) -> EmbeddedIndex:
    return EmbeddedIndex(Settings(data_dir=Path(data_dir)).index_dir, IndexSettings())
