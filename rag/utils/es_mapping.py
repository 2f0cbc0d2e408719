"""What an index in Elasticsearch is made like: conf/es_mapping.json, with what the settings and the vectors add."""

from __future__ import annotations

import copy
import hashlib
import json
from functools import cache
from typing import Any

from common.settings import ROOT, IndexSettings

_FILE = ROOT / "conf" / "es_mapping.json"


def index_body(settings: IndexSettings, dimension: int) -> dict[str, Any]:
    """Settings and mappings of a new index for vectors of this many numbers."""
    body = copy.deepcopy(_shipped())
    body["settings"]["index"] |= {
        "number_of_shards": settings.shards,
        "number_of_replicas": settings.replicas,
        "refresh_interval": f"{round(settings.refresh_s * 1000)}ms",
    }
    body["mappings"]["properties"]["vector"]["dims"] = dimension
    body["mappings"]["_meta"] = {"made_like": fingerprint(settings)}
    return body


def fingerprint(settings: IndexSettings) -> str:
    """Of all that decides how an index is made: where it differs from an index's own, that one can be migrated.

    Copies and the pace of refreshing are not part of it: Elasticsearch changes them in place."""
    decisive = json.dumps([_shipped(), settings.shards], sort_keys=True)
    return hashlib.sha256(decisive.encode()).hexdigest()[:16]


@cache
def _shipped() -> dict[str, Any]:
    body: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return body
