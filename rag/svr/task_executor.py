"""The executor: wiring, signals, one nursery. What a task does is in worker.py, how tasks are held in running.py.

Order of shutdown: stop reading, let work end or give it back, stop the loops, close the database thread, leave the
group and the registry."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from functools import partial

import trio

from api.db.database import Rows, open_rows
from api.db.services.publish_service import PublishService
from api.db.services.stale_service import StaleService
from api.db.services.task_service import Limits, TaskService
from common.errors import Outage
from common.settings import Settings
from common.version import VERSION
from rag.svr import parser_pool
from rag.svr.cancel_listener import listen
from rag.svr.heartbeat import CurrentTask, ExecutorState, Heartbeat
from rag.svr.maintenance import Maintenance, MaintenanceConfig
from rag.svr.message_reader import MessageReader, Slots
from rag.svr.relay import Relay, RelayConfig
from rag.svr.rows_thread import RowsThread
from rag.svr.running import RunningConfig, RunningTasks
from rag.svr.worker import WorkerParts
from rag.utils.embedded_index import EmbeddedIndex
from rag.utils.embedder import PackagedEmbedder
from rag.utils.folder_store import FolderStore
from rag.utils.redis_conn import Queue

log = logging.getLogger(__name__)


def run_executor(settings: Settings, name: str, boot: str) -> None:
    """Run until SIGTERM or SIGINT. `name` and `boot` together are the owner of every claim."""
    trio.run(partial(Executor(settings, name, boot).run))


class Executor:
    def __init__(self, settings: Settings, name: str, boot: str) -> None:
        self._settings = settings
        self._owner = f"{name}:{boot}"
        self._name = name
        self._stop_loops = threading.Event()
        self._draining = False

    async def run(self) -> None:
        settings = self._settings
        messages = Queue(settings.queue_url, settings.queue.namespace)
        rows = open_rows(settings.database_url)
        index = EmbeddedIndex(settings.index_dir, settings.index)
        pool_config = parser_pool.Config.of(settings)
        async with parser_pool.ParserPool(pool_config) as parsers, trio.open_nursery() as nursery:
            crashed: list[BaseException] = []

            def on_crash(exc: BaseException) -> None:
                crashed.append(exc)
                self._stop_loops.set()
                nursery.cancel_scope.cancel()

            reader: MessageReader
            tasks = TaskService(rows, Limits.of(settings), lambda: reader.ring())
            rows_thread = RowsThread(tasks, trio.lowlevel.current_trio_token(), on_crash)
            slots = Slots(settings.executor.max_concurrent_tasks)
            parts = WorkerParts(
                settings=settings.tasks,
                store=FolderStore(settings.store_dir),
                parsers=parsers,
                embedder=await trio.to_thread.run_sync(PackagedEmbedder, settings.embedding),
                index=index,
                embedders=trio.CapacityLimiter(settings.executor.max_embedders),
                index_writers=trio.CapacityLimiter(settings.executor.max_index_writers),
            )
            config = RunningConfig(settings.executor, settings.tasks)
            running = RunningTasks(config, parts, rows_thread, slots, nursery)
            reader = MessageReader(messages, rows_thread, slots, self._owner, running.start)
            loops = self._loops(rows, tasks, index, messages, running, slots)
            with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                for loop in loops:
                    nursery.start_soon(self._run_loop, loop, rows)
                nursery.start_soon(running.renew_forever)
                nursery.start_soon(running.fence_forever)
                reader.start()
                log.info("executor %s is ready: %d slots", self._name, slots.count)
                async for _ in signals:
                    break
                log.info("executor %s drains", self._name)
                await self._shut_down(reader, running, rows_thread, messages)
                nursery.cancel_scope.cancel()
        if crashed:
            raise crashed[0]
        index.close()
        messages.close()
        log.info("executor %s has stopped", self._name)

    def _loops(
        self,
        rows: Rows,
        tasks: TaskService,
        index: EmbeddedIndex,
        messages: Queue,
        running: RunningTasks,
        slots: Slots,
    ) -> list[Callable[[threading.Event], None]]:
        token = trio.lowlevel.current_trio_token()

        def listen_for_cancels(stop: threading.Event) -> None:
            listen(messages, stop, lambda ids: token.run_sync_soon(running.stop, ids))

        heartbeat = Heartbeat(
            messages,
            self._name,
            VERSION,
            self._settings.executor.heartbeat_s,
            partial(self._state, running, slots),
        )
        relay = Relay(RelayConfig(self._settings.relay, self._owner), PublishService(rows), messages)
        maintenance = Maintenance(
            MaintenanceConfig.of(self._settings, self._owner),
            PublishService(rows),
            tasks,
            StaleService(rows),
            index,
            messages,
        )
        return [heartbeat.run, relay.run, maintenance.run, listen_for_cancels]

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

    async def _shut_down(
        self, reader: MessageReader, running: RunningTasks, rows_thread: RowsThread, messages: Queue
    ) -> None:
        self._draining = True
        reader.stop()
        await running.drain()
        await trio.to_thread.run_sync(reader.join)
        await running.drain()  # what the reader claimed while it was being stopped
        self._stop_loops.set()
        await rows_thread.close()
        try:
            await trio.to_thread.run_sync(messages.forget_consumer, self._owner)
        except Outage as exc:
            log.info("could not leave the group: %s", exc)

    def _state(self, running: RunningTasks, slots: Slots) -> ExecutorState:
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
        return ExecutorState(slots.count, slots.used, current, dict(running.counts), self._draining)
