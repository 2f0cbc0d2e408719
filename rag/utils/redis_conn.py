"""The only place that speaks Redis: priority streams, a consumer group, bells, heartbeats.

Keys, all under one hash tag so that they live on one node of a cluster:

    {ns}:tasks:<priority>   stream   one entry per published task, field `id`; group `executors`
    {ns}:tasks:express      stream   the same, for the first tasks of tenants that have none in work
    {ns}:bell               list     at most one element: tasks wait to be published
    {ns}:room               list     at most one element: messages were acknowledged, so there is room for more
    {ns}:cancelled          stream   ids of running tasks that were cancelled; the last thousand
    {ns}:executors          hash     executor name -> heartbeat as JSON

Everything here can be rebuilt from the rows: a flush costs seconds, never work. Errors of the server or the
connection become QueueUnavailable."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any

import redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.retry import Retry

from common.errors import QueueUnavailable
from common.task_state import Priority

GROUP = "executors"
PRIORITIES = tuple(sorted((int(p) for p in Priority), reverse=True))
# In place of a priority: executors read this stream also when all of their slots are taken.
EXPRESS = max(PRIORITIES) + 1
_CANCELLED_KEPT = 1000
# One command of many arguments costs this side a tenth of as many commands.
_ADD_ALL = "for _, id in ipairs(ARGV) do redis.call('XADD', KEYS[1], '*', 'id', id) end"
_TIMEOUT_S = 5.0
# A heartbeat comes every second; an executor that is silent for this long is dead or cut off.
_ALIVE_S = 5.0


class Ring(Enum):
    """What the relay is woken for."""

    TASKS = "tasks wait to be published"
    ROOM = "there is room in the streams"


@dataclass(frozen=True)
class Message:
    """A published task as it was delivered to one executor."""

    priority: int
    entry_id: str
    task_id: str


@dataclass(frozen=True)
class Standing:
    """How many messages stand in the streams, delivered or not."""

    in_turn: int
    express: int


@dataclass(frozen=True)
class StreamState:
    """What one stream holds: entries in all, and of these delivered but not acknowledged; how long the oldest has
    stood there. Its name is the priority."""

    name: str
    length: int
    pending: int
    oldest_s: float = 0.0

    @property
    def lag(self) -> int:
        """Entries that no executor has read yet. What is acknowledged is deleted, so the rest is what is to come; the
        server's own count is unknown after deletes."""
        return max(0, self.length - self.pending)


@dataclass(frozen=True)
class ExecutorBeat:
    """What an executor said of itself last, and how long ago."""

    name: str
    age_s: float
    said: dict[str, Any]

    @property
    def is_alive(self) -> bool:
        return self.age_s < _ALIVE_S


class Queue:
    """A pooled client; thread-safe. Connects on first use and again after a loss."""

    def __init__(self, url: str, namespace: str = "pagemill") -> None:
        retry = Retry(ExponentialWithJitterBackoff(base=0.05, cap=0.5), retries=3)
        self._redis: redis.Redis = redis.Redis.from_url(
            url,
            decode_responses=True,
            socket_timeout=_TIMEOUT_S,
            socket_connect_timeout=_TIMEOUT_S,
            health_check_interval=30,
            retry=retry,
            **({} if url.startswith("unix:") else {"socket_keepalive": True}),
        )
        self._add_all = self._redis.register_script(_ADD_ALL)
        tag = "{" + namespace + "}"
        self._streams = {EXPRESS: f"{tag}:tasks:express"} | {p: f"{tag}:tasks:{p}" for p in PRIORITIES}
        self._bell = f"{tag}:bell"
        self._room = f"{tag}:room"
        self._cancelled = f"{tag}:cancelled"
        self._executors = f"{tag}:executors"

    def check(self) -> None:
        with _translated():
            self._redis.ping()

    def close(self) -> None:
        self._redis.close()

    # Publishing

    def publish(self, tasks: Sequence[tuple[int, str]]) -> None:
        """Add pairs of a priority, or EXPRESS, and a task's id, in one round trip a stream."""
        by_stream: dict[str, list[str]] = defaultdict(list)
        for priority, task_id in tasks:
            by_stream[self._streams[priority]].append(task_id)
        for stream, task_ids in by_stream.items():
            with _translated():
                self._add_all(keys=[stream], args=task_ids)

    def ring(self) -> None:
        """Tell the relay that tasks wait."""
        with _translated(), self._redis.pipeline(transaction=True) as pipe:
            self._add_ring(pipe, self._bell)
            pipe.execute()

    def _add_ring(self, pipe: Any, bell: str) -> None:
        pipe.rpush(bell, "1")
        pipe.ltrim(bell, -1, -1)

    def wait_rung(self, timeout_s: float) -> Ring | None:
        """Block until somebody rang since the last call, or the time is up. That tasks wait is heard first."""
        with _translated():
            rung: Any = self._redis.blpop([self._bell, self._room], timeout=min(timeout_s, _TIMEOUT_S - 1))
        if rung is None:
            return None
        return Ring.TASKS if rung[0] == self._bell else Ring.ROOM

    # Delivery

    def read(self, consumer: str, count: int) -> list[Message]:
        """Up to `count` new messages, the most urgent first, without waiting."""
        found: list[Message] = []
        for priority in PRIORITIES:
            if len(found) < count:
                found += self._read_group(consumer, [priority], count - len(found), None)
        return found

    def wait_messages(self, consumer: str, timeout_s: float) -> list[Message]:
        """Block until something comes or the time is up. COUNT is per stream: at most one message of each."""
        return self._read_group(consumer, PRIORITIES, 1, timeout_s)

    def wait_express(self, consumer: str, timeout_s: float) -> list[Message]:
        """The next one only: two of a document are best read by two executors."""
        return self._read_group(consumer, [EXPRESS], 1, timeout_s)

    def ack(self, messages: Sequence[Message]) -> None:
        """Acknowledge and delete together: what is claimed is the lease's, not the stream's. Rings the relay in the
        same round trip, since there is room in the streams again."""
        entries: dict[str, list[str]] = defaultdict(list)
        for message in messages:
            entries[self._streams[message.priority]].append(message.entry_id)
        with _translated(), self._redis.pipeline(transaction=True) as pipe:
            for stream, entry_ids in entries.items():
                pipe.xack(stream, GROUP, *entry_ids)
                pipe.xdel(stream, *entry_ids)
            self._add_ring(pipe, self._room)
            pipe.execute()

    def undelivered(self) -> set[str]:
        """Ids of all tasks that a message stands for: still to be delivered, or read and not yet acknowledged.

        An entry that is neither (its reader was deleted in between) reaches nobody any more, and is removed."""
        return {task_id for stream in self._streams.values() for task_id in self._undelivered_in(stream)}

    def _undelivered_in(self, stream: str) -> set[str]:
        self._ensure_group(stream)
        with _translated():
            groups: Any = self._redis.xinfo_groups(stream)
            delivered = next(_order(g["last-delivered-id"]) for g in groups if g["name"] == GROUP)
            entries: Any = self._redis.xrange(stream)
            pending: Any = self._redis.xpending_range(stream, GROUP, "-", "+", len(entries) + 1000)
            held = {p["message_id"] for p in pending}
            orphans = [i for i, _ in entries if _order(i) <= delivered and i not in held]
            if orphans:
                self._redis.xdel(stream, *orphans)
        return {fields.get("id", "") for i, fields in entries if i not in orphans}

    def take_over(self, consumer: str, idle_ms: int) -> list[Message]:
        """Messages that somebody read and left unacknowledged for this long, now delivered to `consumer`."""
        taken: list[Message] = []
        for priority, stream in self._streams.items():
            self._ensure_group(stream)
            with _translated():
                entries = self._redis.xautoclaim(stream, GROUP, consumer, idle_ms, count=100)[1]
            taken += [Message(priority, entry_id, fields.get("id", "")) for entry_id, fields in entries if fields]
        return taken

    def forget_consumer(self, consumer: str) -> None:
        """Leave the groups. Deleting a consumer drops what it had read, so one that still has any is kept."""
        for stream in self._streams.values():
            for known in self._consumers(stream):
                if known["name"] == consumer and known["pending"] == 0:
                    with _translated():
                        self._redis.xgroup_delconsumer(stream, GROUP, consumer)

    def idle_consumers(self, idle_ms: int) -> set[str]:
        """Consumers without a pending message in any stream that have not asked for this long."""
        busy: set[str] = set()
        idle: set[str] = set()
        for stream in self._streams.values():
            for known in self._consumers(stream):
                gone = known["pending"] == 0 and known["idle"] > idle_ms
                (idle if gone else busy).add(known["name"])
        return idle - busy

    def standing(self) -> Standing:
        with _translated(), self._redis.pipeline(transaction=False) as pipe:
            for stream in self._streams.values():
                pipe.xlen(stream)
            lengths = dict(zip(self._streams, map(int, pipe.execute()), strict=True))
        return Standing(sum(lengths[p] for p in PRIORITIES), lengths[EXPRESS])

    def states(self) -> list[StreamState]:
        found = []
        for stream in self._streams.values():
            self._ensure_group(stream)
            with _translated(), self._redis.pipeline(transaction=True) as pipe:
                pipe.xpending(stream, GROUP)
                pipe.xlen(stream)
                pipe.xrange(stream, count=1)
                pipe.time()
                pending, length, first, (seconds, micros) = pipe.execute()
            now_ms = seconds * 1000 + micros // 1000
            oldest_s = max(0.0, (now_ms - _order(first[0][0])[0]) / 1000) if first else 0.0
            found.append(StreamState(stream.rpartition(":")[2], int(length), int(pending["pending"]), oldest_s))
        return found

    # Cancels

    def announce_cancelled(self, task_ids: Sequence[str]) -> None:
        with _translated(), self._redis.pipeline(transaction=False) as pipe:
            for task_id in task_ids:
                pipe.xadd(self._cancelled, {"id": task_id}, maxlen=_CANCELLED_KEPT, approximate=True)
            pipe.execute()

    def wait_cancelled(self, after: str, timeout_s: float) -> tuple[str, list[str]]:
        """Ids announced after the position `after` ("$": from now on), and the new position."""
        block_ms = int(min(timeout_s, _TIMEOUT_S - 1) * 1000)
        with _translated():
            found: Any = self._redis.xread({self._cancelled: after}, count=1000, block=block_ms)
        entries = found[0][1] if found else []
        return (entries[-1][0] if entries else after), [fields["id"] for _, fields in entries]

    def cancelled_position(self) -> str:
        """Where `wait_cancelled` has to begin to miss nothing from now on."""
        with _translated():
            newest: Any = self._redis.xrevrange(self._cancelled, count=1)
        return str(newest[0][0]) if newest else "0"

    # Heartbeats

    def beat(self, executor: str, heartbeat: dict[str, Any]) -> None:
        with _translated():
            self._redis.hset(self._executors, executor, json.dumps(heartbeat))

    def heartbeats(self) -> dict[str, dict[str, Any]]:
        with _translated():
            found: dict[Any, Any] = self._redis.hgetall(self._executors)
        return {name: json.loads(text) for name, text in found.items()}

    def executors(self) -> list[ExecutorBeat]:
        """Every executor that is known, by name, with the age of its last heartbeat by the server's clock."""
        beats, now_s = self.heartbeats(), self.now_s()
        return [ExecutorBeat(name, round(now_s - float(beats[name]["now"]), 1), beats[name]) for name in sorted(beats)]

    def forget_executor(self, executor: str) -> None:
        with _translated():
            self._redis.hdel(self._executors, executor)

    def now_s(self) -> float:
        """The server's clock, so that the age of a heartbeat means the same on every host."""
        with _translated():
            seconds, micros = self._redis.time()
        return float(seconds) + float(micros) / 1e6

    def _read_group(
        self, consumer: str, priorities: Sequence[int], count: int, timeout_s: float | None
    ) -> list[Message]:
        streams: dict[Any, Any] = {self._streams[p]: ">" for p in priorities}
        by_stream = {self._streams[p]: p for p in priorities}
        block_ms = None if timeout_s is None else max(1, int(min(timeout_s, _TIMEOUT_S - 1) * 1000))
        with _translated():
            try:
                found: Any = self._redis.xreadgroup(GROUP, consumer, streams, count=count, block=block_ms)
            except redis.ResponseError as exc:
                if "NOGROUP" not in str(exc) and "UNBLOCKED" not in str(exc):
                    raise
                for stream in streams:
                    self._ensure_group(stream)
                return [] if timeout_s is not None else self._read_group(consumer, priorities, count, None)
        return [
            Message(by_stream[stream], entry_id, fields.get("id", ""))
            for stream, entries in found or ()
            for entry_id, fields in entries
        ]

    def _ensure_group(self, stream: str) -> None:
        """From id 0: what stands in a stream whose group is gone is delivered, not skipped."""
        with _translated():
            try:
                self._redis.xgroup_create(stream, GROUP, id="0", mkstream=True)
            except redis.ResponseError as exc:
                if "BUSYGROUP" not in str(exc):
                    raise

    def _consumers(self, stream: str) -> list[dict[str, Any]]:
        self._ensure_group(stream)
        with _translated():
            found: list[dict[str, Any]] = self._redis.xinfo_consumers(stream, GROUP)
        return found


def _order(entry_id: str) -> tuple[int, int]:
    """Entry ids compare by their two numbers."""
    ms, _, number = entry_id.partition("-")
    return int(ms), int(number or 0)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except redis.RedisError as exc:
        raise QueueUnavailable(f"the queue does not answer: {exc}") from exc
