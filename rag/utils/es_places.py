"""Where chunks are in Elasticsearch: an alias for each tenant and length of vectors, over an index with a version.

    pagemill-<tenant>-<numbers in a vector>        the alias: what is read and written
    pagemill-<tenant>-<numbers in a vector>-v<n>   the index behind it, which a migration replaces

An index is made with the first chunk that it takes."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

from elasticsearch import BadRequestError

from common.errors import InvalidInput
from common.settings import IndexSettings
from rag.utils.es_link import Link
from rag.utils.es_mapping import index_body

_EXISTS = "resource_already_exists_exception"
# How long a tenant's list of places is believed where nothing has to be seen at once. Places only ever come.
_BELIEVED_S = 5.0
_TENANT = re.compile(r"[a-z0-9_]{1,64}")


@dataclass(frozen=True)
class Place:
    """`index` is what was behind the alias when it was looked up."""

    tenant_id: str
    dimension: int
    alias: str
    index: str

    @property
    def version(self) -> int:
        return int(self.index.rpartition("-v")[2])


class Places:
    """Looks places up, and makes them. Thread-safe."""

    def __init__(self, link: Link, settings: IndexSettings) -> None:
        self._link = link
        self._settings = settings
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, tuple[Place, ...]]] = {}

    @property
    def pattern(self) -> str:
        """Matches every index and alias of ours, and perhaps some of a prefix that begins with ours."""
        return f"{self._settings.prefix}-*"

    def of(self, tenant_id: str, *, now: bool = True) -> tuple[Place, ...]:
        """A tenant's, ordered by length. Without `now` a list that is a few seconds old will do."""
        with self._lock:
            listed_s, places = self._known.get(tenant_id, (0.0, ()))
        if not now and places and time.monotonic() - listed_s < _BELIEVED_S:
            return places
        asked_s = time.monotonic()
        places = self._look(f"{self._settings.prefix}-{_as_name(tenant_id)}-*")
        with self._lock:
            self._known[tenant_id] = (asked_s, places)
        return places

    def all(self) -> tuple[Place, ...]:
        return self._look(self.pattern)

    def make(self, tenant_id: str, dimension: int) -> None:
        """The first index of a tenant and length; another process may be as quick."""
        alias = self.alias(tenant_id, dimension)
        with self._link.asking() as client:
            try:
                client.indices.create(index=f"{alias}-v1", aliases={alias: {}}, **index_body(self._settings, dimension))
            except BadRequestError as exc:
                if exc.error != _EXISTS:
                    raise

    def alias(self, tenant_id: str, dimension: int) -> str:
        return f"{self._settings.prefix}-{_as_name(tenant_id)}-{dimension}"

    def _look(self, pattern: str) -> tuple[Place, ...]:
        with self._link.asking() as client:
            found = client.indices.get_alias(name=pattern)
        named = re.compile(rf"{re.escape(self._settings.prefix)}-({_TENANT.pattern})-(\d+)")
        places = (
            Place(match[1], int(match[2]), alias, index)
            for index, told in found.items()
            for alias in told["aliases"]
            if (match := named.fullmatch(alias))
        )
        return tuple(sorted(places, key=lambda place: (place.tenant_id, place.dimension)))


def names(places: Iterable[Place]) -> str:
    return ",".join(place.alias for place in places)


def _as_name(tenant_id: str) -> str:
    if not _TENANT.fullmatch(tenant_id):
        raise InvalidInput("the tenant's id can't be part of a name in Elasticsearch")
    return tenant_id
