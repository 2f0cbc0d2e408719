"""One task from claim to finish: fetch, parse, chunk, embed, index. Each step is named, measured and limited.

Knows nothing of messages and leases: it is given a claimed task with its fence, and gives back how the task ends."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode

import msgspec
import numpy as np
import trio

from api.db.services.task_plan import ModelTraits, PlannedFile, chunk_settings, plan_ranges, read_options
from api.db.services.task_requests import (
    ClaimedTask,
    Ending,
    FinishDocument,
    FinishPrepare,
    FinishRange,
    GiveBack,
    NewRange,
    Reusable,
    Written,
)
from common.errors import EmbeddingRefused
from common.ids import chunk_id
from common.settings import TaskSettings
from common.task_state import TaskType
from rag.flow.file_name import name_weight, weighted, words_of_name
from rag.flow.searched import searched_text
from rag.parser.blocks import Picture, Profile, Unit
from rag.svr.embedding_line import EmbeddingLine
from rag.svr.fair_line import FairLine
from rag.svr.fence import Fence
from rag.svr.parser_pool import ParseJob, ParserPool
from rag.svr.parser_protocol import NamedFile, ParsedChunk
from rag.svr.range_reader import RangeRead, read_range
from rag.utils.doc_index import ChunkRecord, DocIndex, Scope, Vectors
from rag.utils.embedder import Embedder
from rag.utils.object_store import ObjectStore

# Chunks that are embedded and written in one go: bounds the memory of a document that is one huge range.
_SLICE = 1024
_FINDABLE_WAIT_S = 0.5
_FINDABLE_AGAIN_MS = 100
_MOST_DOUBLINGS = 6
# The part of a task's progress that is reached when it is parsed, the rest being embedding and writing.
_PARSED = 0.8
# The stage of a task that waits for its turn at the parser.
_IN_LINE = "in line"
# Units that are counted as pages read; rows of a sheet and whole files are not.
_PAGED = (Unit.PAGE, Unit.SLIDE)


@dataclass(frozen=True)
class WorkerParts:
    settings: TaskSettings
    store: ObjectStore
    parsers: ParserPool
    embedder: Embedder
    index: DocIndex
    readers: FairLine
    embedding: EmbeddingLine
    index_writers: FairLine
    on_bad_page: str = "skip"
    findable_waiters: trio.CapacityLimiter = field(default_factory=lambda: trio.CapacityLimiter(2))


class ParserLine(Protocol):
    """slots.py."""

    def left_line(self) -> None: ...

    def was_read(self, seconds: float, /) -> None: ...


@dataclass
class Work:
    """A task in this executor's hands, and how far it is."""

    task: ClaimedTask
    fence: Fence
    report: Callable[[float, str], None]
    line: ParserLine
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    stage: str = "claimed"
    holds_slot: bool = True
    in_line: bool = True
    started_s: float = field(default_factory=time.monotonic)
    stages: dict[str, float] = field(default_factory=dict)

    @asynccontextmanager
    async def at_parser(self, readers: FairLine) -> AsyncIterator[None]:
        """A turn at the parser, the only one of a task. What follows it leaves the parser to others."""
        self.stage = _IN_LINE
        async with readers.turn(self.task.tenant_id):
            begin_s = time.monotonic()
            yield
        self.leave_line()
        self.line.was_read(time.monotonic() - begin_s)

    def leave_line(self) -> None:
        """It has been at the parser, or does not need it: another task may be taken."""
        if self.in_line:
            self.in_line = False
            self.line.left_line()

    @contextmanager
    def during(self, stage: str) -> Iterator[None]:
        self.stage = stage
        begin_s = time.monotonic()
        try:
            yield
        finally:
            self.stages[stage] = round(self.stages.get(stage, 0.0) + time.monotonic() - begin_s, 4)


async def run_one(work: Work, parts: WorkerParts) -> Ending:
    """Do the work of a task and say how it ends. Raises PagemillError; when cancelled, the parser is killed."""
    if work.task.task_type is TaskType.PREPARE:
        return await _prepare(work, parts)
    if work.task.task_type is TaskType.FINISH:
        return await _finish_document(work, parts)
    return await _read_range(work, parts)


async def _prepare(work: Work, parts: WorkerParts) -> Ending:
    """Look at the file and say which ranges it has; where it has only one, read that at once."""
    task = work.task
    options = read_options(json.loads(task.parser_config))
    async with _fetched(work, parts) as path, work.at_parser(parts.readers):
        with work.during("preparing"):
            work.report(0.0, "looking at the file")
            profile = await parts.parsers.prepare(path, task.file_name, options)
        ranges = plan_ranges(_planned(task, parts.embedder), profile, parts.settings)
        # In the same turn: the parser has the file open, and the pages that it has looked at are read already.
        read = await _read(work, parts, path, profile, ranges[0]) if len(ranges) == 1 else None
    known: dict[str, Any] = msgspec.to_builtins(profile)
    written = None if read is None else await _store(work, parts, profile, ranges[0], read)
    return FinishPrepare(task.held, known, ranges, written, work.stages)


async def _read_range(work: Work, parts: WorkerParts) -> Ending:
    task = work.task
    reused = await _reuse(work, parts, task.reusable) if task.reusable else None
    if reused is not None:
        return FinishRange(task.held, reused, work.stages)
    assert task.profile is not None, "a range is never inserted without its document's profile"
    profile = msgspec.json.decode(task.profile, type=Profile)
    pages = NewRange(task.from_page, task.to_page, task.digest)
    async with _fetched(work, parts) as path, work.at_parser(parts.readers):
        read = await _read(work, parts, path, profile, pages)
    written = await _store(work, parts, profile, pages, read)
    return FinishRange(task.held, written, work.stages)


async def _finish_document(work: Work, parts: WorkerParts) -> Ending:
    """Wait until every chunk is findable. Not yet: back in the queue, without using an attempt."""
    task = work.task
    work.leave_line()
    with work.during("indexing"):
        findable = await trio.to_thread.run_sync(
            parts.index.wait_findable,
            task.tenant_id,
            task.index_seq,
            _FINDABLE_WAIT_S,
            limiter=parts.findable_waiters,
        )
    if not findable:
        again_ms = _FINDABLE_AGAIN_MS * 2 ** min(task.claim_no, _MOST_DOUBLINGS)
        return GiveBack(task.held, "wait", again_ms, "", "waiting until its last chunk can be found")
    return FinishDocument(task.held, task.index_seq)


async def _read(work: Work, parts: WorkerParts, path: Path, profile: Profile, pages: NewRange) -> RangeRead:
    """Parse and chunk, in the caller's turn at the parser."""
    task = work.task
    _require_model(task, parts.embedder)
    units = max(1, pages.to_page - pages.from_page)
    config = json.loads(task.parser_config)
    job = ParseJob(
        profile=profile,
        from_unit=pages.from_page,
        to_unit=pages.to_page,
        settings=chunk_settings(task.chunk_method, config, parts.embedder.max_tokens),
        options=read_options(config),
        named=NamedFile(task.file_name, name_weight(config)) if name_weight(config) else None,
    )
    skip_bad = (config.get("on_bad_page") or parts.on_bad_page) == "skip"

    def parsed_so_far(done: int) -> None:
        work.report(_PARSED * done / units, "parsing")

    with work.during("parsing"):
        work.report(0.0, "parsing")
        return await read_range(parts.parsers, path, job, parsed_so_far, carefully=task.losses > 0, skip_bad=skip_bad)


async def _store(work: Work, parts: WorkerParts, profile: Profile, pages: NewRange, read: RangeRead) -> Written:
    """Embed and index what was read."""
    units = max(1, pages.to_page - pages.from_page)
    chunks = _findable(read.chunks)
    newest_seq = 0
    for start in range(0, len(chunks), _SLICE):
        part = chunks[start : start + _SLICE]
        work.report(_PARSED + (1 - _PARSED) * start / len(chunks), "embedding")
        newest_seq = await _embed_and_write(work, parts, part, start)
    tokens = sum(found.chunk.tokens for found in chunks)
    return Written(
        len(chunks),
        tokens,
        newest_seq,
        tuple(read.failed),
        units=units,
        is_whole=not read.is_cut_short,
        pages=units if profile.unit in _PAGED else 0,
    )


class _Findable(msgspec.Struct, frozen=True):
    """A chunk that is searched, and the one that is shown for it, if that is another."""

    chunk: ParsedChunk
    parent: ParsedChunk | None = None
    parent_ordinal: int = -1


def _findable(chunks: Sequence[ParsedChunk]) -> list[_Findable]:
    """All but parents, which are found through their children."""
    found: list[_Findable] = []
    for place, chunk in enumerate(chunks):
        if chunk.is_parent:
            continue
        mother = place - chunk.parent_back
        found.append(_Findable(chunk, chunks[mother], mother) if chunk.parent_back else _Findable(chunk))
    return found


async def _reuse(work: Work, parts: WorkerParts, source: Reusable) -> Written | None:
    """Copy the chunks of a range that was the same to the letter. None where they are not all there any more."""
    work.leave_line()
    with work.during("reusing"):
        scope = Scope(
            work.task.tenant_id,
            source.dataset_id,
            source.document_id,
            source.generation,
            (source.task_no, source.claim_no),
        )
        found, vectors = await trio.to_thread.run_sync(parts.index.read_all, scope)
        if [chunk.ordinal for chunk in found] != list(range(source.chunk_count)):
            return None
        seq = 0
        if found:
            records = [_owned(work.task, chunk) for chunk in found]
            seq = await _write(work, parts, records, vectors)
    units = work.task.to_page - work.task.from_page
    pages = units if work.task.profile and json.loads(work.task.profile)["unit"] in _PAGED else 0
    return Written(source.chunk_count, source.token_count, seq, reused=True, units=units, pages=pages)


async def _write(work: Work, parts: WorkerParts, records: Sequence[ChunkRecord], vectors: Vectors) -> int:
    def write() -> int:
        work.fence.check()
        seq = parts.index.upsert(records, vectors)
        parts.index.make_durable(seq)  # before the row says DONE: a power cut must not part the two
        return seq

    async with parts.index_writers.turn(work.task.tenant_id):
        return await trio.to_thread.run_sync(write)


async def _embed_and_write(work: Work, parts: WorkerParts, chunks: Sequence[_Findable], first: int) -> int:
    with work.during("embedding"):
        vectors = await _vectors(work.task, parts, chunks)
    records = [_record(work.task, first + offset, found) for offset, found in enumerate(chunks)]
    with work.during("indexing"):
        return await _write(work, parts, records, vectors)


async def _vectors(task: ClaimedTask, parts: WorkerParts, chunks: Sequence[_Findable]) -> Vectors:
    """Those that the chunks came with, or else made together with those of other tasks."""
    if all(found.chunk.vector for found in chunks):
        brought = b"".join([found.chunk.vector for found in chunks])
        return np.frombuffer(brought, np.float32).reshape(len(chunks), -1)
    texts = [searched_text(found.chunk.text, found.chunk.headings) for found in chunks]
    weight = name_weight(json.loads(task.parser_config))
    if not weight:
        return await parts.embedding.embed(task.tenant_id, texts)
    found = await parts.embedding.embed(task.tenant_id, [words_of_name(task.file_name), *texts])
    return weighted(found[1:], found[0], weight)


def _owned(task: ClaimedTask, chunk: ChunkRecord) -> ChunkRecord:
    """The same chunk, as this claim's."""
    return msgspec.structs.replace(
        chunk,
        id=_chunk_id(task, chunk.ordinal),
        dataset_id=task.dataset_id,
        document_id=task.document_id,
        generation=task.generation,
        task_no=task.task_no,
        claim_no=task.claim_no,
        available=True,
        created_ms=task.begin_at,
    )


def _chunk_id(task: ClaimedTask, ordinal: int) -> str:
    return chunk_id(task.document_id, task.generation, task.task_no, task.claim_no, ordinal)


def _record(task: ClaimedTask, ordinal: int, found: _Findable) -> ChunkRecord:
    chunk = found.chunk
    return ChunkRecord(
        id=_chunk_id(task, ordinal),
        tenant_id=task.tenant_id,
        dataset_id=task.dataset_id,
        document_id=task.document_id,
        generation=task.generation,
        task_no=task.task_no,
        claim_no=task.claim_no,
        ordinal=ordinal,
        page=chunk.page,
        text=chunk.text,
        terms=chunk.terms,
        token_count=chunk.tokens,
        kind=chunk.kind,
        headings=chunk.headings,
        positions=tuple(map(msgspec.structs.astuple, chunk.boxes)),
        created_ms=task.begin_at,
        tags=chunk.tags,
        picture=_picture_query(chunk.picture) if chunk.picture else "",
        parent_ordinal=found.parent_ordinal,
        parent=found.parent.text if found.parent else "",
        contents=tuple((heading.level, heading.title, heading.page) for heading in chunk.contents),
    )


def _picture_query(picture: Picture) -> str:
    """What the route of a document's pictures is asked for."""
    box = picture.box
    if picture.part or box is None:
        return urlencode({"part": picture.part})
    return urlencode({"page": box.page, "left": box.left, "right": box.right, "top": box.top, "bottom": box.bottom})


def _require_model(task: ClaimedTask, embedder: Embedder) -> None:
    """Vectors of two models in one dataset can't be compared."""
    if task.embedding_model != embedder.name:
        raise EmbeddingRefused(
            f"its dataset is embedded with {task.embedding_model}, and this executor embeds with {embedder.name}"
        )


def _planned(task: ClaimedTask, embedder: Embedder) -> PlannedFile:
    return PlannedFile(
        file_digest=task.file_digest,
        file_name=task.file_name,
        chunk_method=task.chunk_method,
        parser_config=json.loads(task.parser_config),
        embedding_model=task.embedding_model,
        model=ModelTraits.of(embedder),
    )


@asynccontextmanager
async def _fetched(work: Work, parts: WorkerParts) -> AsyncIterator[Path]:
    """The file on a local path. Fetching may block: it runs in a thread."""
    place = parts.store.local_path(work.task.tenant_id, work.task.file_digest)
    with work.during("fetching"):
        path = await trio.to_thread.run_sync(place.__enter__)
    try:
        yield path
    finally:
        if parts.store.has_paths:
            place.__exit__(None, None, None)
        else:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(place.__exit__, None, None, None)
