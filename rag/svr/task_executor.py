"""The executor: wiring, signals, one nursery. What a task does is in worker.py, how tasks are held in running.py.

Order of shutdown: stop reading, let work end or give it back, stop the loops, close the database thread, leave the
group and the registry."""

from __future__ import annotations

import gc
import logging
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial

import trio

from api.db.database import IMPATIENT_S, Rows, open_rows
from api.db.services.control_service import ControlService
from api.db.services.executor_orders import ExecutorOrders
from api.db.services.executor_registry import ExecutorRegistry
from api.db.services.fresh_copies import FreshCopies
from api.db.services.parse_service import Doorbell, ParseService
from api.db.services.publish_service import PublishService
from api.db.services.purge_service import PurgeService
from api.db.services.role_service import RoleService
from api.db.services.stale_service import StaleService
from api.db.services.task_plan import ModelTraits
from api.db.services.task_requests import Renew
from api.db.services.task_service import Limits, TaskService
from api.db.services.webhook_deliveries import WebhookDeliveries
from common.errors import Outage
from common.settings import Settings
from common.version import VERSION
from rag.svr import parser_pool
from rag.svr.cancel_listener import listen
from rag.svr.embedding_line import EmbeddingLine, LineConfig
from rag.svr.fair_line import FairLine
from rag.svr.heartbeat import CurrentTask, ExecutorState, Heartbeat
from rag.svr.message_reader import MessageReader
from rag.svr.outbox import Outbox
from rag.svr.reaper import Reaper, ReaperConfig
from rag.svr.registration import Me, Registration, Steering
from rag.svr.relay import Relay, RelayConfig
from rag.svr.rows_thread import RowsThread
from rag.svr.running import RunningConfig, RunningTasks
from rag.svr.slots import Slots
from rag.svr.sweeper import Sweeper, SweeperConfig
from rag.svr.webhook_sender import SenderConfig, WebhookSender
from rag.svr.worker import WorkerParts
from rag.utils.doc_indexes import open_index
from rag.utils.embedders import calls_at_once, open_cache, open_embedder
from rag.utils.folder_store import FolderStore
from rag.utils.picture_cache import PictureCache
from rag.utils.redis_conn import Queue

log = logging.getLogger(__name__)

_GC_THRESHOLDS = (20_000, 20, 50)
_SWITCH_S = 0.0005


def run_executor(settings: Settings, name: str, boot: str) -> None:
    """Run until SIGTERM or SIGINT. `name` and `boot` together are the owner of every claim."""
    # What was loaded stays, and tasks leave no cycles behind: the collector need not look often.
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    # Who holds the lock of all writers must not wait long for the interpreter while other threads compute.
    sys.setswitchinterval(_SWITCH_S)
    trio.run(partial(Executor(settings, name, boot).run))


class Executor:
    def __init__(self, settings: Settings, name: str, boot: str) -> None:
        self._settings = settings
        self._owner = f"{name}:{boot}"
        self._name = name
        self._stop_loops = threading.Event()
        self._draining = False
        self._crashed = False
        self._reason = "its process was asked to stop"

    async def run(self) -> None:
        settings = self._settings
        messages = Queue(settings.queue_url, settings.queue.namespace)
        outbox = Outbox(messages)
        rows = open_rows(settings.database_url, retry_delays_s=IMPATIENT_S)
        tasks = TaskService(rows, Limits.of(settings), outbox.ring)
        pool_config = parser_pool.Config.of(settings)
        async with parser_pool.ParserPool(pool_config) as parsers, trio.open_nursery() as nursery:
            nursery.start_soon(parsers.warm)
            parts = await self._parts(parsers, nursery)
            rows_thread = RowsThread(tasks, trio.lowlevel.current_trio_token(), partial(self._crash, nursery))
            slots = Slots(settings.executor.max_concurrent_tasks, settings.executor.max_parsers)
            slots.hold(True)  # until it is known what operators want of this executor
            config = RunningConfig(settings.executor, settings.tasks, self._owner)
            running = RunningTasks(config, parts, rows_thread, slots, nursery)
            reader = MessageReader(messages, outbox, rows_thread, slots, self._owner, running.start)
            with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                asked = trio.Event()
                for loop in self._loops(rows, tasks, parts, messages, outbox.ring, running, slots, asked):
                    nursery.start_soon(self._run_loop, loop, rows)
                nursery.start_soon(_on_signal, signals, asked)
                nursery.start_soon(running.renew_forever)
                nursery.start_soon(running.fence_forever)
                reader.start()
                log.info("executor %s is ready: %d slots", self._name, slots.count)
                try:
                    await asked.wait()
                    log.info("executor %s drains", self._name)
                    await self._shut_down(reader, running, rows_thread)
                finally:
                    # Whatever ends the nursery ends the threads: an executor that works no more must not claim.
                    reader.stop()
                    self._stop_loops.set()
                nursery.cancel_scope.cancel()
        if self._crashed:
            sys.exit("the database thread ended with the error above")
        self._leave(outbox, messages)
        parts.index.close()
        log.info("executor %s has stopped", self._name)

    async def _parts(self, parsers: parser_pool.ParserPool, nursery: trio.Nursery) -> WorkerParts:
        settings = self._settings
        embedder = await trio.to_thread.run_sync(open_embedder, settings.embedding)
        line = LineConfig(settings.embedding.batch_size, calls_at_once(settings))
        return WorkerParts(
            settings=settings.tasks,
            store=FolderStore(settings.store_dir),
            parsers=parsers,
            embedder=embedder,
            index=open_index(settings),
            readers=FairLine(settings.executor.max_parsers),
            embedding=EmbeddingLine(embedder, line, nursery, open_cache(settings)),
            index_writers=FairLine(settings.executor.max_index_writers),
            on_bad_page=settings.parser.on_bad_page,
        )

    def _crash(self, nursery: trio.Nursery) -> None:
        self._crashed = True
        self._stop_loops.set()
        nursery.cancel_scope.cancel()

    def _loops(
        self,
        rows: Rows,
        tasks: TaskService,
        parts: WorkerParts,
        messages: Queue,
        ring: Callable[[], None],
        running: RunningTasks,
        slots: Slots,
        asked: trio.Event,
    ) -> list[Callable[[threading.Event], None]]:
        token = trio.lowlevel.current_trio_token()

        def leave() -> None:
            self._reason = "an operator asked for a restart"
            token.run_sync_soon(asked.set)

        def listen_for_cancels(stop: threading.Event) -> None:
            listen(messages, stop, lambda ids: token.run_sync_soon(running.stop, ids))

        heartbeat = Heartbeat(
            messages,
            self._name,
            VERSION,
            self._settings.executor.heartbeat_s,
            partial(self._state, running, slots, parts),
            owner=self._owner,
        )
        registration = Registration(
            Me(self._name, self._owner),
            ExecutorRegistry(rows),
            ExecutorOrders(rows),
            Steering(lambda: heartbeat.last, slots.hold, partial(_is_quiet, slots, running), leave, self._why_left),
        )
        roles = RoleService(rows)
        relay = Relay(RelayConfig(self._settings.relay, self._owner), roles, PublishService(rows), messages)
        bell = Doorbell(ring, messages.announce_cancelled)
        embedder = parts.embedder
        parsing = ParseService(rows, self._settings.tasks, ModelTraits.of(embedder), bell)
        copies = FreshCopies(rows, parts.index, parsing.restart)
        reaper = Reaper(ReaperConfig.of(self._settings, self._owner), roles, tasks, parsing, copies)
        sweeping = SweeperConfig.of(self._settings, self._owner)
        purging = PurgeService(rows, self._settings.tasks)
        pictures = PictureCache(self._settings.pictures_dir)
        control = ControlService(rows, self._settings.tasks, bell)
        stale = StaleService(rows)
        sweeper = Sweeper(sweeping, roles, stale, control, purging, parts.index, parts.store, messages, pictures)
        sender = WebhookSender(SenderConfig(self._settings.webhooks, self._owner), roles, WebhookDeliveries(rows))
        return [
            heartbeat.run,
            registration.run,
            relay.run,
            reaper.run,
            sweeper.run,
            sender.run,
            listen_for_cancels,
        ]

    def _why_left(self) -> str:
        return "" if self._crashed else self._reason

    async def _run_loop(self, loop: Callable[[threading.Event], None], rows: Rows) -> None:
        """A loop in a thread of its own, ended by `_stop_loops`; a thread can't be cancelled."""

        def run_and_close() -> None:
            try:
                loop(self._stop_loops)
            finally:
                rows.close_connection()

        try:
            await trio.to_thread.run_sync(run_and_close, limiter=trio.CapacityLimiter(1))
        finally:
            self._stop_loops.set()

    async def _shut_down(self, reader: MessageReader, running: RunningTasks, rows_thread: RowsThread) -> None:
        self._draining = True
        reader.stop()
        await trio.to_thread.run_sync(reader.join)
        with suppress(Outage):
            await rows_thread.ask(Renew(()))  # answered after the reader's last claim, which is running by then
        await running.drain()
        await rows_thread.close()

    def _leave(self, outbox: Outbox, messages: Queue) -> None:
        """Leave the group, when every message that was read is acked."""
        outbox.close()
        try:
            messages.forget_consumer(self._owner)
        except Outage as exc:
            log.info("could not leave the group: %s", exc)
        messages.close()

    def _state(self, running: RunningTasks, slots: Slots, parts: WorkerParts) -> ExecutorState:
        now_s = time.monotonic()
        current = tuple(
            CurrentTask(
                w.task.id,
                w.task.document_id,
                str(w.task.task_type),
                w.task.from_page,
                w.task.to_page,
                w.stage,
                round(now_s - w.started_s, 3),
            )
            for w in running.works
        )
        hits, misses = parts.embedding.cache_counts
        counts = {**running.counts, "embedding_cache_hits": hits, "embedding_cache_misses": misses}
        return ExecutorState(
            slots=slots.count,
            slots_used=slots.used,
            current=current,
            counts=counts,
            draining=self._draining or slots.is_held,
            drained=_is_quiet(slots, running),
            parsers=len(parts.parsers.pids),
        )


def _is_quiet(slots: Slots, running: RunningTasks) -> bool:
    """It takes nothing more and has nothing in hand."""
    return slots.is_quiet and not running.works


async def _on_signal(signals: AsyncIterator[int], asked: trio.Event) -> None:
    await anext(signals)
    asked.set()
