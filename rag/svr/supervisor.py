"""`pagemill up`: everything on one machine. Starts Valkey (unless settings name another queue), brings the schema up
to date, and runs the web server, the indexer (for the embedded index) and the executors, each in a process of its own.

Nothing outlives it: the kernel ends the children when it dies, and they hold the data folder's lock until then."""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType

from api.db.database import open_rows
from api.db.migrations import migrate
from api.db.services.account_service import ADMIN_EMAIL, AccountService
from api.db.services.executor_orders import ExecutorOrders
from api.db.services.task_service import Limits, TaskService
from common.errors import QueueUnavailable, SettingsError
from common.ids import new_token
from common.listening import listen
from common.settings import Settings
from rag.svr.children import Child, stop_in_order
from rag.svr.data_folder import DataFolder
from rag.svr.dead_executors import DeadExecutors
from rag.utils.doc_indexes import open_index
from rag.utils.embedders import embedder_name
from rag.utils.redis_conn import Queue
from rag.utils.valkey import valkey_argv

log = logging.getLogger(__name__)
_QUEUE_START_S = 20.0
_LOOK_AGAIN_S = 5.0
_PORTS_TRIED = 100
# How soon to try again where a dead executor's tasks could not all be handed back.
_HAND_BACK_S = 0.2


@dataclass(frozen=True)
class Started:
    """What a person who has just typed `pagemill up` wants to know."""

    address: str
    port_wanted: int
    port: int
    executors: int
    admin_email: str
    new_password: str | None


class Supervisor:
    """`passed_on` are the command-line options that every child gets, such as --data."""

    def __init__(self, settings: Settings, passed_on: Sequence[str]) -> None:
        self._settings = settings
        self._passed_on = list(passed_on)
        self._folder = DataFolder(settings)
        self._messages = Queue(settings.queue_url, settings.queue.namespace)
        self._valkey: list[Child] = []
        self._web: list[Child] = []
        self._indexer: list[Child] = []
        self._executors: list[Child] = []
        self._listener: socket.socket | None = None
        self._dead: DeadExecutors | None = None
        self._stop_asked = 0
        self._reload_asked = False
        self._wakeup: tuple[int, int] = (-1, -1)

    def run(self, on_started: Callable[[Started], None]) -> None:
        """Until SIGTERM or SIGINT; a second signal kills what still drains. On SIGUSR1 and SIGHUP the web server
        reloads; but a terminal that hangs up stops everything."""
        self._folder.make()
        lock_fd = self._folder.lock()
        self._watch_signals()
        try:
            started = self._start(lock_fd)
            self._folder.write_note({"pid": os.getpid(), "address": started.address})
            on_started(started)
            while not self._stop_asked:
                self._look()
        finally:
            self._stop()
            self._folder.remove_note()
            os.close(lock_fd)

    def _start(self, lock_fd: int) -> Started:
        open_index(self._settings).close()  # settings that can't be right end the start here, and not every child
        if self._settings.owns_queue:
            self._start_valkey(lock_fd)
        else:
            self._messages.check()
        rows = open_rows(self._settings.database_url)
        rows.check()
        migrate(rows)
        password = AccountService(rows, embedder_name(self._settings.embedding)).ensure_admin()
        ExecutorOrders(rows).clear(self._executor_names())
        listener = self._listener = self._listen()
        tasks = TaskService(rows, Limits.of(self._settings), self._messages.ring)
        self._dead = DeadExecutors(rows, tasks)
        self._make_children(lock_fd, listener, self._dead)
        for child in self._workers:
            child.start()
        host, port = listener.getsockname()[:2]
        return Started(
            address=f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}",
            port_wanted=self._settings.server.port,
            port=port,
            executors=len(self._executors),
            admin_email=ADMIN_EMAIL,
            new_password=password,
        )

    def _start_valkey(self, lock_fd: int) -> None:
        folder, socket_path = self._settings.queue_dir, self._settings.queue_socket
        socket_path.unlink(missing_ok=True)
        valkey = Child("valkey", lambda: valkey_argv(folder, socket_path), (lock_fd,))
        self._valkey = [valkey]
        valkey.start()
        deadline_s = time.monotonic() + _QUEUE_START_S
        while True:
            try:
                self._messages.check()
                return
            except QueueUnavailable as exc:
                if not valkey.is_alive or time.monotonic() > deadline_s:
                    raise SettingsError(f"Valkey did not start; {folder / 'valkey.log'} says why") from exc
                time.sleep(0.02)

    def _make_children(self, lock_fd: int, listener: socket.socket, dead: DeadExecutors) -> None:
        fd, port = listener.fileno(), str(listener.getsockname()[1])
        grace_s = self._settings.executor.drain_grace_s + 10
        self._web = [Child("server", lambda: self._command("server", "--fd", str(fd), "--port", port), (lock_fd, fd))]
        if self._settings.embeds_index:
            self._indexer = [Child("indexer", lambda: self._command("indexer"), (lock_fd,))]
        for number, name in enumerate(self._executor_names(), 1):
            boot = _Boot(name)
            self._executors.append(
                Child(
                    f"executor-{number}",
                    lambda boot=boot: self._command("executor", *boot.renew()),  # type: ignore[misc]
                    (lock_fd,),
                    lambda why, boot=boot: dead.add(boot.owner, why),  # type: ignore[misc]
                    grace_s,
                )
            )

    def _executor_names(self) -> list[str]:
        count = self._settings.executor.processes or os.cpu_count() or 1
        return [f"{socket.gethostname()}-{number}" for number in range(1, count + 1)]

    @property
    def _workers(self) -> list[Child]:
        """All children but the queue."""
        return [*self._web, *self._indexer, *self._executors]

    def _command(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "api.cli", args[0], *self._passed_on, *args[1:]]

    def _listen(self) -> socket.socket:
        """A socket on the wanted port, or the next free one. It is open from now on: no request is refused while the
        web server starts, or starts again."""
        host, wanted = self._settings.server.host, self._settings.server.port
        for port in range(wanted, min(wanted + _PORTS_TRIED, 65536)):
            try:
                return listen(host, port)
            except SettingsError as exc:
                refused = exc
        raise refused

    def _watch_signals(self) -> None:
        self._wakeup = os.pipe()
        for fd in self._wakeup:
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(self._wakeup[1], warn_on_full_buffer=False)
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, self._on_stop)
        signal.signal(signal.SIGUSR1, self._on_reload)
        signal.signal(signal.SIGHUP, self._on_stop if os.isatty(2) else self._on_reload)
        signal.signal(signal.SIGCHLD, _on_child)

    def _on_stop(self, signum: int, frame: FrameType | None) -> None:
        self._stop_asked += 1
        if self._stop_asked > 1:
            for child in self._workers:
                if child.is_alive and child.process is not None:
                    child.process.kill()

    def _on_reload(self, signum: int, frame: FrameType | None) -> None:
        self._reload_asked = True

    def _reload(self) -> None:
        """The web server's own affair: it starts a worker, and lets the old one end what it has begun."""
        self._reload_asked = False
        for child in self._web:
            if child.is_alive and child.process is not None:
                log.info("the web server reloads")
                child.process.send_signal(signal.SIGHUP)

    def _look(self) -> None:
        """Wait for a signal or the next planned start, then see to the children."""
        children = (*self._valkey, *self._workers)
        due_s = [c.start_due_s - time.monotonic() for c in children if c.process is None]
        look_s = _HAND_BACK_S if self._dead else _LOOK_AGAIN_S
        select.select([self._wakeup[0]], [], [], max(0.0, min([look_s, *due_s])))
        with suppress(BlockingIOError):
            os.read(self._wakeup[0], 4096)
        if not self._stop_asked:
            if self._reload_asked:
                self._reload()
            for child in children:
                child.look()
            if self._dead:
                self._dead.hand_back()

    def _stop(self) -> None:
        log.info("stopping: the executors finish or give back what they hold")
        # The indexer after the executors: what they finish now must still become findable.
        stop_in_order([self._web, self._executors, self._indexer, self._valkey])
        signal.set_wakeup_fd(-1)
        for fd in self._wakeup:
            os.close(fd)
        self._messages.close()
        if self._listener is not None:
            self._listener.close()


class _Boot:
    """The name under which an executor that is started again and again owns its claims: new at every boot."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.owner = ""

    def renew(self) -> list[str]:
        boot = new_token()
        self.owner = f"{self._name}:{boot}"
        return ["--name", self._name, "--boot", boot]


def _on_child(signum: int, frame: FrameType | None) -> None:
    """Only to wake the loop: SIGCHLD is ignored without a handler."""
