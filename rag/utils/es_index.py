"""The document index on Elasticsearch: ties the parts together.

A write's number is the time at which it was acknowledged, by the clock of the host that wrote. That a DONE document is
findable does not depend on it: `wait_findable` waits for a refresh that begins after the call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

from common.settings import IndexSettings
from rag.utils.chunk_input import checked_vectors, last_places
from rag.utils.doc_index import Adopted, Adoption, ChunkPage, ChunkPlace, ChunkRecord, Hit, Query, Scope, Tally, Vectors
from rag.utils.es_link import Link
from rag.utils.es_migration import Migration
from rag.utils.es_places import Places
from rag.utils.es_reads import Reads
from rag.utils.es_refresh import Refreshes
from rag.utils.es_search import Searches
from rag.utils.es_writes import Writes

_BLOCKED = "index.blocks.*"
Hits = list[Hit]
Names = list[str]


class ElasticIndex:
    """A DocIndex on a server. Connects to nothing before it is used."""

    adopts = False

    def __init__(self, settings: IndexSettings) -> None:
        self._link = Link(settings)
        self._places = Places(self._link, settings)
        self._refreshes = Refreshes(self._link, self._places)
        self._writes = Writes(self._link, self._places, self._refreshes, settings)
        self._reads = Reads(self._link, self._places, self._refreshes)
        self._searches = Searches(self._link, self._places, self._refreshes)
        self._settings = settings
        self._lock = threading.Lock()
        self._last = 0
        # By tenant, the highest number that a search of this process had to see: those up to it are findable.
        self._seen: dict[str, int] = {}

    def upsert(self, chunks: Sequence[ChunkRecord], vectors: Vectors) -> int:
        """Lines that the server is too busy for are sent again for a while, before IndexUnavailable is raised."""
        if not chunks:
            return 0
        units = checked_vectors(chunks, vectors)
        places = last_places(chunks)
        self._writes.upsert([chunks[place] for place in places], units[places])
        return self._next_number()

    def delete(self, scope: Scope) -> int:
        return self._next_number() if self._writes.delete(scope) else 0

    def get(self, tenant_id: str, ids: Sequence[str]) -> list[ChunkRecord]:
        return self._reads.get(tenant_id, ids)

    def read_all(self, scope: Scope) -> tuple[list[ChunkRecord], Vectors]:
        return self._reads.everything(scope)

    def count(self, scope: Scope) -> int:
        return self._reads.count(scope)

    def search(self, query: Query, at_least: int = 0) -> Hits:
        with self._lock:
            unseen = at_least > self._seen.get(query.tenant_id, 0)
        if unseen:
            self._refreshes.make_findable(query.tenant_id)
            with self._lock:
                self._seen[query.tenant_id] = max(at_least, self._seen.get(query.tenant_id, 0))
        return self._searches.best(query)

    def list(self, scope: Scope, offset: int, limit: int) -> ChunkPage:
        return self._reads.page(scope, offset, limit)

    def places(self, scope: Scope) -> Sequence[ChunkPlace]:
        return self._reads.chunk_places(scope)

    def make_durable(self, sequence: int) -> None:
        """Nothing to do: Elasticsearch answers a write when its translog is synced (conf/es_mapping.json)."""

    def adopt(self, asked: Adoption) -> bool:
        """Never: every chunk is sent to the server, which tasks do range by range."""
        return False

    def make_adopted_durable(self) -> None:
        """Nothing to do: nothing is adopted."""

    def adopted(self, rest_ms: int) -> Sequence[Adopted]:
        """Never any."""
        return []

    def confirm_adopted(self, adopted: Sequence[Adopted]) -> None:
        """There are none."""

    def wait_findable(self, tenant_id: str, sequence: int, timeout_s: float) -> bool:
        """Waits for others' refreshes for `timeout_s` at most; its own takes as long as a request may."""
        return sequence <= 0 or self._refreshes.make_findable(tenant_id, timeout_s)

    def tally(self, scope: Scope | None = None) -> Iterator[Tally]:
        return self._reads.tally(scope)

    def damage(self) -> str:
        """Never any: a server that has lost a part of an index says so, and is taken for away."""
        return ""

    def outdated(self) -> Names:
        return Migration(self._link, self._places, self._settings, lambda line: None).outdated()

    def migrate(self, say: Callable[[str], None], force: bool = False) -> int:
        return Migration(self._link, self._places, self._settings, say).run(force=force)

    def check(self) -> None:
        """Whether it answers as one of ours, has every shard, and takes writes."""
        with self._link.asking() as client:
            client.info()
            health = client.cluster.health(index=self._places.pattern)
            blocks = client.indices.get_settings(index=self._places.pattern, name=_BLOCKED)
        if health["status"] == "red":
            raise self._link.unavailable(f"shards of {self._places.pattern} are missing")
        if blocked := sorted(index for index, told in blocks.items() if told["settings"]):
            raise self._link.unavailable(f"writes are blocked: {', '.join(blocked)}")

    def close(self) -> None:
        self._link.close()

    def _next_number(self) -> int:
        with self._lock:
            self._last = max(self._last + 1, time.time_ns() // 1000)
            return self._last
