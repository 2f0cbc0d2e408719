"""What `/metrics` tells of the whole instance, made anew from the rows, the heartbeats and the streams at every scrape.

Counters are sums of rows: they go on whoever restarts, and every server of an instance tells the same. docs/metrics.md
names all of them; a test compares it with FAMILIES."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from api.apps.health import PartState, error_of
from api.apps.services import Services
from api.db.services.executor_view import Executors, Life
from api.db.services.queue_view import Line, QueueRows
from api.db.services.tally_service import Tally
from common.errors import QueueUnavailable, RowsUnavailable
from common.task_state import Priority
from rag.utils.redis_conn import StreamState

# Tenants with series of their own; the others are summed under "other".
MOST_TENANTS = 20
OTHER = "other"
_OUTCOMES = ("done", "failed", "retried", "lost", "cancelled")
_STATES = ("waiting", "put_off", "published", "running", "paused")
_BYTES_AND_CPU = (("executor_resident_memory_bytes", "rss_bytes", 1.0), ("executor_cpu_cores", "cpu_percent", 0.01))


@dataclass(frozen=True)
class Family:
    """`name` without the prefix; a counter's is told with `_total` behind it."""

    name: str
    kind: type[CounterMetricFamily] | type[GaugeMetricFamily]
    labels: tuple[str, ...]
    help: str

    def make(self, values: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
        family = self.kind(f"pagemill_{self.name}", self.help, labels=self.labels)
        for labels, value in values:
            family.add_metric(labels, value)
        return family


_C, _G = CounterMetricFamily, GaugeMetricFamily
FAMILIES = {
    family.name: family
    for family in (
        Family("up", _G, ("part",), "1 where this part answers: database, queue, index, store."),
        Family("probe_seconds", _G, ("part",), "How long this part took to answer."),
        Family("tasks", _G, ("state", "priority"), "Tasks that have not ended: waiting, put_off (until their time), "
               "published (in a stream), running, paused."),
        Family("tenant_tasks", _G, ("state", "tenant"), "The same by tenant; the smallest are one, named other."),
        Family("oldest_task_seconds", _G, ("priority",), "How long the oldest task that waits for an executor has been "
               "due."),
        Family("stream_length", _G, ("stream",), "Messages in a stream."),
        Family("stream_lag", _G, ("stream",), "Messages in a stream that no executor has read."),
        Family("stream_pending", _G, ("stream",), "Messages that were read and are not acknowledged."),
        Family("executors", _G, ("state",), "Executors that are alive, draining (alive, taking nothing new), silent."),
        Family("executors_lost", _G, (), "Executors that died or fell silent within the last day."),
        Family("slots", _G, ("executor",), "Tasks that an executor can have in work."),
        Family("slots_used", _G, ("executor",), "Tasks that an executor has in work."),
        Family("executor_resident_memory_bytes", _G, ("executor",), "Memory of an executor, without its parsers."),
        Family("executor_cpu_cores", _G, ("executor",), "Processors that an executor used lately."),
        Family("tasks_ended", _C, ("outcome",), "Tasks that were done, failed, retried, lost with their executor, or "
               "cancelled."),
        Family("pages", _C, (), "Pages and slides that were read."),
        Family("pages_reused", _C, (), "Pages and slides whose chunks were copied and not read again."),
        Family("ranges_reused", _C, (), "Tasks whose chunks were copied."),
        Family("chunks", _C, (), "Chunks that were written."),
        Family("chunk_tokens", _C, (), "Tokens of these chunks."),
        Family("embedding_cache_hits", _C, (), "Texts whose vectors were in the cache."),
        Family("embedding_cache_misses", _C, (), "Texts that the endpoint was asked for."),
    )
}  # fmt: skip


class InstanceCollector(Collector):
    def __init__(self, box: Services) -> None:
        self._box = box

    def describe(self) -> Iterable[Metric]:
        """Without a look at anything: whoever registers it must not wait."""
        return [family.make(()) for family in FAMILIES.values()]

    def collect(self) -> Iterator[Metric]:
        """What can't be told now is left out; `up` says why."""
        box = self._box
        health = box.health_watch.look()
        yield from health_families(health)
        if error_of(health, "database"):
            return
        try:
            yield from queue_families(box.queue_kept.get())
            yield from tally_families(box.tallies.total())
            yield from executor_families(box.executor_view.look_at_running(), box.executor_view.count_lost())
        except RowsUnavailable:
            return
        try:
            yield from stream_families(box.streams())
        except QueueUnavailable:
            return


def health_families(states: Sequence[PartState]) -> Iterator[Metric]:
    yield FAMILIES["up"].make(((state.part,), float(state.is_ok)) for state in states)
    yield FAMILIES["probe_seconds"].make(((state.part,), state.elapsed_ms / 1000) for state in states)


def queue_families(found: QueueRows) -> Iterator[Metric]:
    names = {priority: priority.name.lower() for priority in found.priorities}
    yield FAMILIES["tasks"].make(
        ((state, names[priority]), getattr(line, state))
        for priority, line in found.priorities.items()
        for state in _STATES
    )
    told = [(one.tenant_id, one.line) for one in found.tenants[:MOST_TENANTS]]
    rest = sum((one.line for one in found.tenants[MOST_TENANTS:]), found.others)
    if rest != Line():
        told.append((OTHER, rest))
    yield FAMILIES["tenant_tasks"].make(
        ((state, tenant), getattr(line, state)) for tenant, line in told for state in _STATES
    )
    yield FAMILIES["oldest_task_seconds"].make(
        ((names[priority],), line.oldest_s) for priority, line in found.priorities.items()
    )


def stream_families(streams: Sequence[StreamState]) -> Iterator[Metric]:
    called = {str(int(priority)): priority.name.lower() for priority in Priority}
    for name in ("length", "lag", "pending"):
        yield FAMILIES[f"stream_{name}"].make(
            ((called.get(stream.name, stream.name),), getattr(stream, name)) for stream in streams
        )


def executor_families(found: Executors, lost: int) -> Iterator[Metric]:
    alive = [one for one in found.running if one.life is not Life.SILENT]
    draining = sum(bool(one.said.get("draining")) for one in alive)
    states = {"alive": len(alive) - draining, "draining": draining, "silent": len(found.running) - len(alive)}
    yield FAMILIES["executors"].make(((state,), count) for state, count in states.items())
    yield FAMILIES["executors_lost"].make([((), lost)])
    for name in ("slots", "slots_used"):
        yield FAMILIES[name].make(((one.name,), float(one.said.get(name) or 0)) for one in alive)
    for name, said, factor in _BYTES_AND_CPU:
        yield FAMILIES[name].make(((one.name,), factor * float(one.said.get(said) or 0)) for one in alive)


def tally_families(total: Tally) -> Iterator[Metric]:
    yield FAMILIES["tasks_ended"].make(((outcome,), getattr(total, outcome)) for outcome in _OUTCOMES)
    for name, value in (
        ("pages", total.pages),
        ("pages_reused", total.reused_pages),
        ("ranges_reused", total.reused),
        ("chunks", total.chunks),
        ("chunk_tokens", total.tokens),
        ("embedding_cache_hits", total.cache_hits),
        ("embedding_cache_misses", total.cache_misses),
    ):
        yield FAMILIES[name].make([((), value)])
