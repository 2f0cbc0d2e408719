"""Indexes on Elasticsearch for tests. One under a prefix of its own is for tests that look at what is created; the
others share what is there, emptied: creating takes longer than most tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from common.settings import IndexSettings
from rag.utils.doc_index import DocIndex
from rag.utils.es_index import ElasticIndex
from tests.indexes import embedded_index

_SHARED = f"t{os.urandom(6).hex()}"


def elastic_settings(url: str, **fields: Any) -> IndexSettings:
    """Under a prefix that nobody else has, and refreshed only when somebody asks for it."""
    return IndexSettings(url=url, **{"prefix": f"t{os.urandom(6).hex()}", "replicas": 0, "refresh_s": 3600} | fields)


def shared_settings(url: str) -> IndexSettings:
    """Under the prefix of this test run."""
    return elastic_settings(url, prefix=_SHARED)


@contextmanager
def shared_index(settings: IndexSettings) -> Iterator[ElasticIndex]:
    """Empty now, and again afterwards."""
    made = ElasticIndex(settings)
    try:
        yield made
    finally:
        made.close()
        empty(settings)


def empty(settings: IndexSettings) -> None:
    """Leaves one index of one tenant, without a trace of what was in it."""
    with Elasticsearch(settings.url) as client:
        found = client.indices.get_alias(index=f"{settings.prefix}-*")
        kept = [name for name, told in found.items() if f"{settings.prefix}-tenant-8" in told["aliases"]]
        if others := sorted(set(found) - set(kept)):
            client.indices.delete(index=",".join(others))
        for name in kept:
            client.indices.refresh(index=name)
            client.delete_by_query(index=name, query={"match_all": {}}, conflicts="proceed", refresh=True)
            client.indices.forcemerge(index=name, only_expunge_deletes=True)
            client.indices.refresh(index=name)


@contextmanager
def elastic_index(settings: IndexSettings) -> Iterator[ElasticIndex]:
    """Nothing of it is left behind."""
    made = ElasticIndex(settings)
    try:
        yield made
    finally:
        made.close()
        remove_all(settings.url, settings.prefix)


def remove_all(url: str, prefix: str) -> None:
    """Every index with this prefix."""
    with Elasticsearch(url) as client:
        names = list(client.indices.get(index=f"{prefix}-*"))
        if names:
            client.indices.delete(index=",".join(names))


@contextmanager
def index_of_kind(request: pytest.FixtureRequest, folder: Path) -> Iterator[DocIndex]:
    """An empty index of the kind (of KINDS) that the fixture's parameter is, kept up to date by whatever it needs."""
    if request.param == "embedded":
        with embedded_index(folder) as embedded:
            yield embedded
    else:
        with shared_index(shared_settings(request.getfixturevalue("elasticsearch_url"))) as elastic:
            yield elastic
