"""Refreshing: what makes writes findable in Elasticsearch. One refresh serves everybody who waited for it to begin."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field

from rag.utils.es_link import Link
from rag.utils.es_places import Places, names


@dataclass
class _Turns:
    """One tenant's refreshes, numbered as they begin. `ended` is the last that went well."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    begun: int = 0
    ended: int = 0


class Refreshes:
    """Thread-safe."""

    def __init__(self, link: Link, places: Places) -> None:
        self._link = link
        self._places = places
        self._guard = threading.Lock()
        self._turns: dict[str, _Turns] = defaultdict(_Turns)

    def make_findable(self, tenant_id: str, timeout_s: float = -1) -> bool:
        """True once a refresh that began after this call has ended: every write acknowledged before it is findable.
        False where others' refreshes took longer than `timeout_s`."""
        with self._guard:
            turns = self._turns[tenant_id]
            wanted = turns.begun + 1  # not the one that is under way: it may have begun before the write
        if not turns.lock.acquire(timeout=timeout_s):
            return False
        try:
            if turns.ended < wanted:
                with self._guard:
                    turns.begun += 1
                self._refresh(tenant_id)
                turns.ended = turns.begun
        finally:
            turns.lock.release()
        return True

    def _refresh(self, tenant_id: str) -> None:
        places = self._places.of(tenant_id)
        if not places:
            return
        with self._link.asking() as client:
            shards = client.indices.refresh(index=names(places))["_shards"]
        if shards["failed"]:
            raise self._link.unavailable(f"{shards['failed']} shards could not be refreshed")
