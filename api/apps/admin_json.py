"""What operators are told, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from api.apps.health import PartState
from api.db.services.executor_view import DocumentName, EndedExecutor, Executors, RunningExecutor
from api.db.services.failed_groups import FailedGroup
from api.db.services.queue_view import Line, QueueRows
from api.db.services.tally_service import Tally
from rag.utils.redis_conn import StreamState

# What a heartbeat says that is shown; the rest is for the relay.
_SAID = (
    "host", "pid", "version", "slots", "slots_used", "parsers", "draining", "drained", "done", "failed", "retried",
    "cancelled", "rss_bytes", "cpu_percent", "embedding_cache_hits", "embedding_cache_misses",
)  # fmt: skip
_COUNTED = ("done", "failed", "retried", "cancelled")


def health_json(states: Sequence[PartState]) -> list[dict[str, Any]]:
    return [{"part": s.part, "ok": s.is_ok, "error": s.error, "latency_ms": round(s.elapsed_ms, 2)} for s in states]


def executors_json(found: Executors) -> dict[str, Any]:
    return {
        "heartbeat_error": found.heartbeat_error,
        "running": [_running_json(one, found.documents) for one in found.running],
        "ended": [_ended_json(one) for one in found.ended],
    }


def queue_json(found: QueueRows, streams: Sequence[StreamState], streams_error: str) -> dict[str, Any]:
    """A priority's stream is null where Redis is away."""
    by_name = {stream.name: stream for stream in streams}
    return {
        "error": streams_error,
        "total": asdict(found.all),
        "priorities": [
            {"name": priority.name.lower()} | asdict(line) | {"stream": _stream_json(by_name.get(str(int(priority))))}
            for priority, line in found.priorities.items()
        ],
        "express": _stream_json(by_name.get("express")),
        "tenants": [{"id": one.tenant_id, "name": one.name} | asdict(one.line) for one in found.tenants],
        "other_tenants": {"count": found.other_tenants} | asdict(found.others if found.other_tenants else Line()),
    }


def groups_json(groups: Sequence[FailedGroup]) -> list[dict[str, Any]]:
    return [{key: value for key, value in asdict(group).items() if key != "messages"} for group in groups]


def history_json(tallies: Sequence[Tally], now_minute: int) -> dict[str, Any]:
    """Columns, oldest first; the last minute has only begun."""
    first = now_minute - len(tallies) + 1
    return {
        "minutes": [first + number for number in range(len(tallies))],
        **{name: [getattr(tally, name) for tally in tallies] for name in ("done", "failed", "retried", "lost")},
        **{name: [getattr(tally, name) for tally in tallies] for name in ("pages", "reused_pages", "chunks")},
    }


def _running_json(one: RunningExecutor, documents: Mapping[str, DocumentName]) -> dict[str, Any]:
    order = one.order
    return {
        "name": one.name,
        "owner": one.owner,
        "life": str(one.life),
        "age_s": round(one.age_s, 1),
        "boot_ms": one.boot_ms,
        **{key: one.said.get(key) for key in _SAID},
        "current": [_current_json(task, documents) for task in one.said.get("current", ())],
        "order": {"wanted": str(order.wanted), "by": order.by_user, "at_ms": order.at_ms} if order else None,
    }


def _current_json(task: Mapping[str, Any], documents: Mapping[str, DocumentName]) -> dict[str, Any]:
    return {**task, **asdict(documents.get(str(task["document_id"]), DocumentName()))}


def _ended_json(one: EndedExecutor) -> dict[str, Any]:
    row = one.row
    return {
        "name": row.name,
        "owner": row.owner,
        "ended": str(row.ended),
        "reason": row.reason,
        "boot_ms": row.boot_ms,
        "end_ms": row.end_ms,
        **{key: row.beat.get(key) for key in ("host", "pid", "version", *_COUNTED)},
        "fates": dict(one.fates),
        "lost": [asdict(lost) for lost in one.lost],
    }


def _stream_json(stream: StreamState | None) -> dict[str, Any] | None:
    if stream is None:
        return None
    return {
        "length": stream.length,
        "lag": stream.lag,
        "pending": stream.pending,
        "oldest_s": round(stream.oldest_s, 1),
    }
