"""Texts of all tasks in an executor, embedded together. While calls are under way texts queue up, and what has queued
goes in the next call: tenants in turns, and within a tenant its tasks in turns. Batches form by themselves under load,
and an idle executor pays no delay."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import trio

from common.errors import Outage
from rag.utils.doc_index import Vectors
from rag.utils.embedder import Embedder
from rag.utils.embedding_cache import EmbeddingCache

# So many turns fill a call.
_TURNS = 8


@dataclass(frozen=True)
class LineConfig:
    batch_size: int
    calls: int = 1

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.calls < 1:
            raise ValueError("at least one text goes in at least one call")


@dataclass(eq=False)
class _Request:
    """What one task waits for. Its texts may go in several calls."""

    tenant_id: str
    texts: Sequence[str]
    done: trio.Event = field(default_factory=trio.Event)
    error: Exception | None = None
    sent: int = 0
    parts: dict[int, Vectors] = field(default_factory=dict)

    @property
    def left(self) -> int:
        return len(self.texts) - self.sent

    def arrived(self, start: int, vectors: Vectors) -> None:
        self.parts[start] = vectors
        if sum(map(len, self.parts.values())) == len(self.texts):
            self.done.set()

    @property
    def vectors(self) -> Vectors:
        return np.concatenate([self.parts[start] for start in sorted(self.parts)])


@dataclass(frozen=True)
class _Piece:
    """The part of a request that goes in one call."""

    request: _Request
    start: int
    texts: Sequence[str]


class EmbeddingLine:
    """Trio only. Calls run in `nursery`: they outlive the task that began them, as others' texts may be in them."""

    def __init__(
        self, embedder: Embedder, config: LineConfig, nursery: trio.Nursery, cache: EmbeddingCache | None = None
    ) -> None:
        self._embedder = embedder
        self._config = config
        self._nursery = nursery
        self._cache = cache
        self._free = config.calls
        self._waiting: OrderedDict[str, deque[_Request]] = OrderedDict()

    @property
    def cache_counts(self) -> tuple[int, int]:
        """Texts that the cache knew, and those that it did not."""
        return (self._cache.hits, self._cache.misses) if self._cache else (0, 0)

    async def embed(self, tenant_id: str, texts: Sequence[str]) -> Vectors:
        """One row for each text. Raises what the embedder raises.

        An outage is every task's whose texts were in the call; any other error only that task's whose texts cause it.
        On cancellation a call that is under way goes on for the others; what is not sent yet is forgotten."""
        if not texts:
            return self._embedder.embed(())
        known = await self._known(tenant_id, texts)
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        while missing:
            fresh = await self._queue(_Request(tenant_id, missing))
            known.update(zip(missing, fresh, strict=True))
            # Where the dimension is left to the endpoint, the cache may hold what an earlier model there gave.
            missing = [text for text, vector in known.items() if len(vector) != fresh.shape[1]]
        return np.stack([known[text] for text in texts])

    async def _known(self, tenant_id: str, texts: Sequence[str]) -> dict[str, Vectors]:
        if self._cache is None:
            return {}
        found = await trio.to_thread.run_sync(self._cache.get, tenant_id, texts, abandon_on_cancel=True)
        return found if len({len(vector) for vector in found.values()}) == 1 else {}

    async def _queue(self, request: _Request) -> Vectors:
        self._waiting.setdefault(request.tenant_id, deque()).append(request)
        self._start_calls()
        try:
            await request.done.wait()
        finally:
            self._forget(request)
        if request.error is not None:
            raise request.error
        return request.vectors

    def _start_calls(self) -> None:
        while self._free and self._waiting:
            self._free -= 1
            self._nursery.start_soon(self._call, self._next_pieces())

    def _next_pieces(self) -> list[_Piece]:
        """As many texts as go in one call, a few at each turn: nobody fills it while others wait."""
        starts: dict[_Request, int] = {}
        room = self._config.batch_size
        while room and self._waiting:
            tenant_id, line = next(iter(self._waiting.items()))
            request = line.popleft()
            starts.setdefault(request, request.sent)
            count = min(room, request.left, max(1, self._config.batch_size // _TURNS))
            request.sent += count
            room -= count
            if request.left:
                line.append(request)
            if line:
                self._waiting.move_to_end(tenant_id)
            else:
                del self._waiting[tenant_id]
        return [_Piece(request, start, request.texts[start : request.sent]) for request, start in starts.items()]

    async def _call(self, pieces: Sequence[_Piece]) -> None:
        try:
            error = await self._embed(pieces)
            if error is not None and len(pieces) > 1 and not isinstance(error, Outage):
                for piece in pieces:  # one of them is the cause: each for itself
                    self._fail([piece], await self._embed([piece]))
            else:
                self._fail(pieces, error)
        finally:
            self._free += 1
            self._start_calls()

    async def _embed(self, pieces: Sequence[_Piece]) -> Exception | None:
        """The error, if there was one."""
        wanted = [piece for piece in pieces if not piece.request.done.is_set()]
        if not wanted:
            return None
        try:
            vectors = await trio.to_thread.run_sync(self._embed_and_keep, wanted, abandon_on_cancel=True)
        # Not the end of it: it is raised in each of the tasks, whose edge judges it.
        except Exception as exc:  # noqa: BLE001
            return exc
        start = 0
        for piece in wanted:
            piece.request.arrived(piece.start, vectors[start : start + len(piece.texts)])
            start += len(piece.texts)
        return None

    def _embed_and_keep(self, pieces: Sequence[_Piece]) -> Vectors:
        """In a thread. Kept call by call: a task that fails half way does not ask for the first half again."""
        texts = [text for piece in pieces for text in piece.texts]
        vectors = self._embedder.embed(texts)
        if self._cache is not None:
            start = 0
            for piece in pieces:
                own = vectors[start : start + len(piece.texts)]
                self._cache.put(piece.request.tenant_id, dict(zip(piece.texts, own, strict=True)))
                start += len(piece.texts)
        return vectors

    def _fail(self, pieces: Sequence[_Piece], error: Exception | None) -> None:
        if error is not None:
            for piece in pieces:
                piece.request.error = error
                piece.request.done.set()
                self._forget(piece.request)

    def _forget(self, request: _Request) -> None:
        """Nothing more of it is sent."""
        request.done.set()
        line = self._waiting.get(request.tenant_id)
        if line is not None and request in line:
            line.remove(request)
            if not line:
                del self._waiting[request.tenant_id]
