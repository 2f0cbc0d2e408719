"""Moving chunks into an index that is made like conf/es_mapping.json says now, while they are searched and written.

Everything is copied, then what was written meanwhile, until little is left. Then writes are blocked, for about a
second: writers send theirs again until they are taken. The rest is copied, what was deleted meanwhile is deleted, and
the alias goes from the old index to the new one in one step. The old one is removed when no search uses it any more."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from elasticsearch import Elasticsearch

from common.errors import Conflict
from common.settings import IndexSettings
from rag.utils.doc_index import Scope
from rag.utils.es_link import Link, reason_of
from rag.utils.es_mapping import fingerprint, index_body
from rag.utils.es_places import Place, Places
from rag.utils.es_query import Clause, scope_query
from rag.utils.es_reads import tally_of

_LOOK_S = 0.1
_SAY_EVERY_S = 5.0
# Rounds of catching up before writes are blocked in any case, and how few chunks are few enough to block them.
_ROUNDS = 10
_LITTLE = 2000
_NOTHING_YET = -1
# How long a request that began before the alias moved may still look into the old index.
_LINGER_S = 3.0
# While it is filled: no copies, and nobody looks into it.
_FILLING = {"number_of_replicas": 0, "refresh_interval": "-1"}


class Migration:
    def __init__(self, link: Link, places: Places, settings: IndexSettings, say: Callable[[str], None]) -> None:
        self._link = link
        self._places = places
        self._settings = settings
        self._say = say
        self._left: list[tuple[float, str]] = []

    def outdated(self) -> list[str]:
        """Aliases whose index is not made like the file says now."""
        found = []
        for place in self._places.all():
            with self._link.asking() as client:
                if self._is_outdated(client, place):
                    found.append(place.alias)
        return found

    def run(self, *, force: bool) -> int:
        """How many indexes were made anew. Raises IndexUnavailable, or Conflict where another migration is at work; the
        old indexes then serve on as they were."""
        made = 0
        for place in self._places.all():
            with self._link.asking() as client:
                self._remove_remains(client, place)
                if force or self._is_outdated(client, place):
                    self._migrate(client, place)
                    made += 1
                self._remove_left(client)
        if self._left:
            time.sleep(max(0.0, self._left[-1][0] + _LINGER_S - time.monotonic()))
            with self._link.asking() as client:
                self._remove_left(client)
        return made

    def _is_outdated(self, client: Elasticsearch, place: Place) -> bool:
        mappings = client.indices.get_mapping(index=place.index)[place.index]["mappings"]
        return bool(mappings.get("_meta", {}).get("made_like") != fingerprint(self._settings))

    def _remove_remains(self, client: Elasticsearch, place: Place) -> None:
        """What a migration that was killed has left: a half-filled index, or an old one, and the block."""
        target = _next_of(place)
        for task in _ask(client, "/_tasks?actions=*reindex&detailed&group_by=none")["tasks"]:
            if target in task.get("description", ""):
                raise Conflict(f"a migration to {target} is at work")
        for name in client.indices.get_alias(index=f"{place.alias}-v*"):
            if name != place.index:
                client.indices.delete(index=name, ignore_unavailable=True)
        client.indices.put_settings(index=place.index, settings={"index": {"blocks": {"write": None}}})

    def _remove_left(self, client: Elasticsearch) -> None:
        """Indexes that no alias names any more, and no request looks into."""
        now_s = time.monotonic()
        for name in [name for switched_s, name in self._left if now_s - switched_s >= _LINGER_S]:
            client.indices.delete(index=name, ignore_unavailable=True)
        self._left = [(switched_s, name) for switched_s, name in self._left if now_s - switched_s < _LINGER_S]

    def _migrate(self, client: Elasticsearch, place: Place) -> None:
        target = _next_of(place)
        self._say(f"copying {place.index} to {target}")
        body = index_body(self._settings, place.dimension)
        body["settings"]["index"] |= _FILLING
        client.indices.create(index=target, **body)
        switched = False
        try:
            copied_to = self._copy_while_written(client, place, target)
            # It is there once no write is under way any more.
            client.indices.add_block(index=place.index, block="write")
            self._copy(client, place, target, _written_since(copied_to))
            self._settle_deleted(client, place, target)
            self._switch(client, place, target)
            switched = True
        finally:
            if not switched:  # as far as is known: the answer may have been lost
                for current in self._places.of(place.tenant_id):
                    if current.alias == place.alias:
                        self._remove_remains(client, current)
        self._left.append((time.monotonic(), place.index))
        self._say(f"{place.alias} is {target} now")

    def _copy_while_written(self, client: Elasticsearch, place: Place, target: str) -> int:
        """Up to which operation everything is copied."""
        copied_to = _NOTHING_YET
        for _ in range(_ROUNDS):
            reached = _checkpoint(client, place)
            copied = self._copy(client, place, target, _written_since(copied_to))
            copied_to = reached
            if copied <= _LITTLE:
                break
        return copied_to

    def _copy(self, client: Elasticsearch, place: Place, target: str, query: Clause) -> int:
        """What is there now and matches, over what the target has of it."""
        client.indices.refresh(index=place.index)
        task_id = client.reindex(
            source={"index": place.index, "query": query}, dest={"index": target}, wait_for_completion=False
        )["task"]
        said_s = time.monotonic()
        while not (told := _ask(client, f"/_tasks/{task_id}"))["completed"]:
            if time.monotonic() - said_s > _SAY_EVERY_S:
                said_s = time.monotonic()
                status = told["task"]["status"]
                self._say(f"{status['created'] + status['updated']} of {status['total']} chunks")
            time.sleep(_LOOK_S)
        if "error" in told or told["response"]["failures"]:
            raise self._link.unavailable(f"copying to {target} failed: {reason_of(_failure(told))}")
        return int(told["response"]["total"])

    def _settle_deleted(self, client: Elasticsearch, place: Place, target: str) -> None:
        """Deletes leave no trace to copy. But they are made by claims: those whose counts differ are copied anew."""
        client.indices.refresh(index=target)
        old, new = dict(tally_of(client, place.index)), dict(tally_of(client, target))
        for key in old.keys() | new.keys():
            if old.get(key) == new.get(key):
                continue
            dataset_id, document_id, generation, task_no, claim_no = key
            scope = Scope(place.tenant_id, dataset_id, document_id, generation, (task_no, claim_no))
            client.delete_by_query(index=target, query=scope_query(scope), refresh=True)
            self._copy(client, place, target, scope_query(scope))
        client.indices.refresh(index=target)
        if dict(tally_of(client, target)) != old:
            raise self._link.unavailable(f"{target} does not hold the chunks of {place.index}")

    def _switch(self, client: Elasticsearch, place: Place, target: str) -> None:
        served = index_body(self._settings, place.dimension)["settings"]["index"]
        client.indices.put_settings(index=target, settings={"index": {key: served[key] for key in _FILLING}})
        client.indices.update_aliases(
            actions=[
                {"remove": {"index": place.index, "alias": place.alias}},
                {"add": {"index": target, "alias": place.alias}},
            ]
        )


def _ask(client: Elasticsearch, path: str) -> Any:
    """By its path: the client warns of the API of tasks, which is in preview for years."""
    return client.perform_request("GET", path, headers={"accept": "application/json"}).body


def _next_of(place: Place) -> str:
    return f"{place.alias}-v{place.version + 1}"


def _written_since(checkpoint: int) -> Clause:
    return {"range": {"_seq_no": {"gt": checkpoint}}}


def _checkpoint(client: Elasticsearch, place: Place) -> int:
    """Every operation up to this number is done, in all shards."""
    told = client.indices.stats(index=place.index, metric="docs", level="shards")["indices"][place.index]["shards"]
    copies: list[Any] = [copy for shard in told.values() for copy in shard if copy["routing"]["primary"]]
    return min((int(copy["seq_no"]["local_checkpoint"]) for copy in copies), default=_NOTHING_YET)


def _failure(told: dict[str, Any]) -> Any:
    if "error" in told:
        return told["error"]
    failure = told["response"]["failures"][0]
    return failure.get("cause", failure)
