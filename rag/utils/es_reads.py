"""Chunks read out of Elasticsearch by id and by scope, and counted. Search is in es_search.py."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from elasticsearch import Elasticsearch

from rag.utils.chunk_input import unit
from rag.utils.doc_index import ChunkPage, ChunkPlace, ChunkRecord, Scope, Tally, Vectors
from rag.utils.es_link import Link
from rag.utils.es_places import Place, Places, names
from rag.utils.es_query import READING_ORDER, WRITING_ORDER, Clause, scope_query
from rag.utils.es_records import decoded, decoded_vectors
from rag.utils.es_refresh import Refreshes

_AT_ONCE = 1000
_PASSED_AT_ONCE = 10_000
# A page that ends further back is reached by passing over those before it.
_DEEP = 100_000
_KEEP_OPEN = "2m"
_PLACE = ("id", "task_no", "claim_no", "page", "rest.positions")
_CLAIM = ("dataset_id", "document_id", "generation", "task_no", "claim_no")
Claim = tuple[str, str, int, int, int]


class Reads:
    """All but `get`, which reads what is not findable yet, refresh first."""

    def __init__(self, link: Link, places: Places, refreshes: Refreshes) -> None:
        self._link = link
        self._places = places
        self._refreshes = refreshes

    def get(self, tenant_id: str, ids: Sequence[str]) -> list[ChunkRecord]:
        places = self._places.of(tenant_id) if ids else ()
        found: dict[str, ChunkRecord] = {}
        for place in places:
            with self._link.asking() as client:
                told = client.mget(index=place.alias, ids=list(dict.fromkeys(ids)), source_excludes=["vector"])
            found |= {doc["_id"]: decoded(doc["_source"]) for doc in told["docs"] if doc.get("found")}
        return [found[id_] for id_ in ids if id_ in found]

    def count(self, scope: Scope) -> int:
        places = self._refreshed(scope.tenant_id)
        if not places:
            return 0
        with self._link.asking() as client:
            return _count(client, places, scope_query(scope))

    def page(self, scope: Scope, offset: int, limit: int) -> ChunkPage:
        places = self._refreshed(scope.tenant_id)
        if not places:
            return ChunkPage(0)
        query = scope_query(scope)
        with self._link.asking() as client:
            total = _count(client, places, query)
            offset, limit = max(0, offset), max(0, limit)
            if offset >= total or limit == 0:
                return ChunkPage(total)
            if offset + limit <= _DEEP:
                found = _search(client, index=names(places), query=query, sort=READING_ORDER, size=limit, from_=offset)
            else:
                found = _deep_page(client, places, query, offset, limit)
        return ChunkPage(total, [decoded(hit["_source"]) for hit in found])

    def chunk_places(self, scope: Scope) -> list[ChunkPlace]:
        places = self._refreshed(scope.tenant_id)
        if not places:
            return []
        with self._link.asking() as client, _snapshot(client, places) as pit:
            wanted = {"includes": list(_PLACE)}
            pages = _pages(client, pit, scope_query(scope), READING_ORDER, _PASSED_AT_ONCE, wanted=wanted)
            return [_place(hit["_source"]) for page in pages for hit in page]

    def everything(self, scope: Scope) -> tuple[list[ChunkRecord], Vectors]:
        """Of a dataset, whose vectors are all of one length."""
        for place in self._refreshed(scope.tenant_id):
            with self._link.asking() as client, _snapshot(client, [place]) as pit:
                pages = _pages(client, pit, scope_query(scope), WRITING_ORDER, _AT_ONCE, wanted=True)
                sources = [hit["_source"] for page in pages for hit in page]
            if sources:
                return [decoded(source) for source in sources], unit(decoded_vectors(sources, place.dimension))
        return [], np.zeros((0, 0), np.float32)

    def tally(self, scope: Scope | None) -> Iterator[Tally]:
        places = self._places.all() if scope is None else self._places.of(scope.tenant_id)
        for place in places:
            self._refreshes.make_findable(place.tenant_id)
            with self._link.asking() as client:
                for claim, count in tally_of(client, place.alias, None if scope is None else scope_query(scope)):
                    yield Tally(place.tenant_id, *claim, count)

    def _refreshed(self, tenant_id: str) -> tuple[Place, ...]:
        self._refreshes.make_findable(tenant_id)
        return self._places.of(tenant_id, now=False)


def _place(source: Mapping[str, Any]) -> ChunkPlace:
    positions = source.get("rest", {}).get("positions", ())
    return ChunkPlace(
        source["id"], source["task_no"], source["claim_no"], source["page"], tuple(tuple(one) for one in positions)
    )


def tally_of(client: Elasticsearch, index: str, query: Clause | None = None) -> Iterator[tuple[Claim, int]]:
    """Which claims have chunks there, and how many."""
    sources = [{field: {"terms": {"field": field}}} for field in _CLAIM]
    after: Mapping[str, Any] | None = None
    while True:
        claims: dict[str, Any] = {"size": _AT_ONCE, "sources": sources}
        if after is not None:
            claims["after"] = after
        told = client.search(
            index=index,
            query=query,
            size=0,
            aggs={"claims": {"composite": claims}},
            track_total_hits=False,
            allow_partial_search_results=False,
        )["aggregations"]["claims"]
        for bucket in told["buckets"]:
            dataset_id, document_id, *numbers = (bucket["key"][field] for field in _CLAIM)
            generation, task_no, claim_no = map(int, numbers)
            yield (dataset_id, document_id, generation, task_no, claim_no), int(bucket["doc_count"])
        after = told.get("after_key")
        if after is None:
            return


def _count(client: Elasticsearch, places: Sequence[Place], query: Clause) -> int:
    found = client.search(
        index=names(places),
        query=query,
        size=0,
        track_total_hits=True,
        allow_partial_search_results=False,
        ignore_unavailable=True,
    )
    return int(found["hits"]["total"]["value"])


def _search(client: Elasticsearch, **asked: Any) -> list[Any]:
    found = client.search(
        **asked, source_excludes=["vector"], track_total_hits=False, allow_partial_search_results=False
    )
    hits: list[Any] = found["hits"]["hits"]
    return hits


def _deep_page(client: Elasticsearch, places: Sequence[Place], query: Clause, offset: int, limit: int) -> list[Any]:
    """Passes over the ids before the page."""
    with _snapshot(client, places) as pit:
        after: Any = None
        passed = 0
        for page in _pages(client, pit, query, READING_ORDER, _PASSED_AT_ONCE, wanted=False):
            wanted = page[: offset - passed]
            passed += len(wanted)
            after = wanted[-1]["sort"]
            if passed == offset:
                break
        return _search(client, pit=pit, query=query, sort=READING_ORDER, size=limit, search_after=after)


@contextlib.contextmanager
def _snapshot(client: Elasticsearch, places: Sequence[Place]) -> Iterator[dict[str, str]]:
    """One view of the chunks for several requests."""
    id_ = client.open_point_in_time(index=names(places), keep_alive=_KEEP_OPEN)["id"]
    try:
        yield {"id": id_, "keep_alive": _KEEP_OPEN}
    finally:
        client.close_point_in_time(id=id_)


def _pages(
    client: Elasticsearch,
    pit: dict[str, str],
    query: Clause,
    sort: Sequence[Any],
    size: int,
    *,
    wanted: bool | Mapping[str, Any],
) -> Iterator[list[Any]]:
    """`wanted` are the fields of each chunk: all, none, or some by name."""
    after: dict[str, Any] = {}
    while True:
        found = client.search(
            pit=pit,
            query=query,
            sort=list(sort),
            size=size,
            source=wanted,
            track_total_hits=False,
            allow_partial_search_results=False,
            **after,
        )["hits"]["hits"]
        if found:
            yield found
        if len(found) < size:
            return
        after = {"search_after": found[-1]["sort"]}
