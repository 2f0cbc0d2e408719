"""Chunks written to Elasticsearch, all of a call or none, and deleted from it.

New chunks are created; those whose id exists are replaced after what was there has been read, so that a write that is
refused half way can be taken back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from elasticsearch import ApiError

from common.errors import InvalidInput
from common.settings import IndexSettings
from rag.utils.doc_index import ChunkRecord, Scope, Vectors
from rag.utils.es_bulk import Bulk, Deadline, Line, Outcome
from rag.utils.es_link import Link, will_pass
from rag.utils.es_places import Place, Places, names
from rag.utils.es_query import dataset_filter, scope_query
from rag.utils.es_records import encoded
from rag.utils.es_refresh import Refreshes

# The sweeper counts on no write going on for a minute (rag/svr/sweeper.py).
_PATIENCE_S = 40.0
# Chunks deleted in one request: a long one would outlast every timeout.
_DELETE_SLICE = 5000
_MOST_NAMED = 5


class Writes:
    def __init__(self, link: Link, places: Places, refreshes: Refreshes, settings: IndexSettings) -> None:
        self._link = link
        self._places = places
        self._refreshes = refreshes
        self._bulk = Bulk(link, settings.timeout_s)

    def upsert(self, chunks: Sequence[ChunkRecord], vectors: Vectors) -> None:
        """Chunks of one tenant, each id once."""
        deadline = Deadline.after(_PATIENCE_S)
        tenant_id = chunks[0].tenant_id
        documents = {chunk.id: encoded(chunk, vector) for chunk, vector in zip(chunks, vectors, strict=True)}
        dimension = vectors.shape[1]
        others = [place for place in self._places.of(tenant_id) if place.dimension != dimension]
        if others:
            self._require_one_dimension(others, chunks, dimension)
        self._write(tenant_id, dimension, documents, deadline)
        for place in others:  # an id that moves to a dataset with other vectors
            self._bulk.send(place.alias, [Line("delete", id_) for id_ in documents], deadline)

    def delete(self, scope: Scope) -> bool:
        """Whether there was anything to delete."""
        deleted = 0
        more = True
        while more:
            # A delete finds only what is findable.
            self._refreshes.make_findable(scope.tenant_id)
            found = [self._delete_slice(place, scope) for place in self._places.of(scope.tenant_id)]
            deleted += sum(count for count, _ in found)
            more = any(unfinished for _, unfinished in found)
        return deleted > 0

    def _delete_slice(self, place: Place, scope: Scope) -> tuple[int, bool]:
        """How many went, and whether there may be more: also those that were replaced meanwhile."""
        deadline, tries = Deadline.after(_PATIENCE_S), 0
        while True:
            with self._link.asking() as client:
                try:
                    told = client.delete_by_query(
                        index=place.alias,
                        query=scope_query(scope),
                        max_docs=_DELETE_SLICE,
                        conflicts="proceed",
                        ignore_unavailable=True,
                    )
                    break
                except ApiError as exc:
                    if not (will_pass(exc) and deadline.pause(tries)):
                        raise
                    tries += 1
        deleted, replaced = int(told["deleted"]), int(told["version_conflicts"])
        return deleted, deleted + replaced >= _DELETE_SLICE or replaced > 0

    def _write(self, tenant_id: str, dimension: int, documents: Mapping[str, bytes], deadline: Deadline) -> None:
        alias = self._places.alias(tenant_id, dimension)
        lines = [Line("create", id_, document) for id_, document in documents.items()]
        created = self._put(tenant_id, dimension, lines, deadline)
        before = self._read(alias, created.taken) if created.taken else {}
        lines = [Line("index", id_, documents[id_]) for id_ in created.taken]
        replaced = self._put(tenant_id, dimension, lines, deadline)
        refused = created.refused | replaced.refused
        if refused:
            self._take_back(alias, created.done, {id_: before[id_] for id_ in replaced.done if id_ in before})
            raise InvalidInput(_named(refused, len(documents)))

    def _put(self, tenant_id: str, dimension: int, lines: Sequence[Line], deadline: Deadline) -> Outcome:
        """Makes the index where it is missing. Where a migration has just taken it away, the alias names another."""
        alias = self._places.alias(tenant_id, dimension)
        outcome, tries = self._bulk.send(alias, lines, deadline), 0
        while outcome.gone:
            if tries and not deadline.pause(tries):
                raise self._link.unavailable(f"the alias {alias} is missing, though its index is there")
            if not any(place.alias == alias for place in self._places.of(tenant_id)):
                self._places.make(tenant_id, dimension)
            gone = set(outcome.gone)
            outcome = _joined(outcome, self._bulk.send(alias, [line for line in lines if line.id in gone], deadline))
            tries += 1
        return outcome

    def _read(self, alias: str, ids: Sequence[str]) -> dict[str, bytes]:
        """What is there now, as it was written."""
        with self._link.asking() as client:
            found = client.mget(index=alias, ids=list(ids))["docs"]
        return {doc["_id"]: msgspec.json.encode(doc["_source"]) for doc in found if doc.get("found")}

    def _take_back(self, alias: str, created: Sequence[str], before: Mapping[str, bytes]) -> None:
        undone = [Line("delete", id_) for id_ in created]
        undone += [Line("index", id_, document) for id_, document in before.items()]
        self._bulk.send(alias, undone, Deadline.after(_PATIENCE_S))

    def _require_one_dimension(self, others: Sequence[Place], chunks: Sequence[ChunkRecord], dimension: int) -> None:
        """While a dataset holds any chunk, the length of its vectors is fixed."""
        self._refreshes.make_findable(chunks[0].tenant_id)
        for dataset_id in sorted({chunk.dataset_id for chunk in chunks}):
            moving = {"ids": {"values": [chunk.id for chunk in chunks]}}
            query = {"bool": {"filter": [dataset_filter([dataset_id])], "must_not": [moving]}}
            with self._link.asking() as client:
                held = client.search(index=names(others), query=query, size=1, source=False, ignore_unavailable=True)
            for hit in held["hits"]["hits"]:
                length = next(place.dimension for place in others if place.index == hit["_index"])
                raise InvalidInput(f"dataset {dataset_id} holds vectors of {length} numbers; these have {dimension}")


def _joined(first: Outcome, second: Outcome) -> Outcome:
    return Outcome(
        done=first.done + second.done,
        taken=first.taken + second.taken,
        gone=second.gone,
        refused=first.refused | second.refused,
    )


def _named(refused: Mapping[str, str], total: int) -> str:
    named = "; ".join(f"chunk {id_}: {why}" for id_, why in list(refused.items())[:_MOST_NAMED])
    more = f"; and {len(refused) - _MOST_NAMED} more" if len(refused) > _MOST_NAMED else ""
    return f"the index refused {len(refused)} of {total} chunks: {named}{more}"
