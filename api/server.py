"""The web server's entry point: settings -> services -> create_app, served by gunicorn with threads.

One worker process: its readers of the index share one copy of the vectors. More servers scale by more hosts."""

from __future__ import annotations

import gc
import os
import resource
import socket
import struct
from collections.abc import Callable
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication

from api.apps import create_app, job_events
from api.db.database import open_rows
from api.db.migrations import migrate
from api.web_arbiter import READY, ReloadingArbiter
from api.web_worker import Worker
from api.wiring import connect
from common.listening import listen
from common.settings import Settings

_GRACE_S = 10
# A hundred ids in an address, and a condition beside them.
_MOST_LINE_BYTES = 8190
_GC_THRESHOLDS = (10_000, 20, 50)


class _Server(BaseApplication):  # type: ignore[misc]
    """`settings` are read again at a reload. `ready_fd` is where a worker tells that it serves, if anybody waits."""

    def __init__(self, read_settings: Callable[[], Settings], bind: str) -> None:
        self._read_settings = read_settings
        self.settings = read_settings()
        self._bind = bind
        self._app: Flask | None = None
        self.ready_fd: int | None = None
        super().__init__()

    def run(self) -> None:
        ReloadingArbiter(self).run()

    def reload(self) -> None:
        """Raises SettingsError."""
        self.settings = self._read_settings()
        super().reload()

    def load_config(self) -> None:
        options: dict[str, Any] = {
            "bind": self._bind,
            "worker_class": Worker,
            "workers": 1,
            "threads": self.settings.server.threads,
            "keepalive": 30,
            "limit_request_line": _MOST_LINE_BYTES,
            "graceful_timeout": _GRACE_S,
            "timeout": 0,
            "loglevel": "warning",
            "control_socket_disable": True,
            "post_worker_init": self._tell_ready,
            "worker_exit": self._on_exit,
        }
        for key, value in options.items():
            if key in self.cfg.settings:
                self.cfg.set(key, value)

    def load(self) -> Flask:
        """Runs in the worker, after the fork: no connection is shared with the parent."""
        self._app = create_app(connect(self.settings, rings_aside=True))
        # What was loaded stays: a look at all of it would hold up whoever asks just then.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_GC_THRESHOLDS)
        return self._app

    def say_goodbye(self) -> None:
        """In the worker: who follows a job is told to connect again."""
        if self._app is not None:
            job_events.close(self._app)

    def _on_exit(self, arbiter: object, worker: object) -> None:
        """Runs in the worker, when its requests have ended."""
        self.say_goodbye()

    def _tell_ready(self, worker: object) -> None:
        if self.ready_fd is not None:
            os.write(self.ready_fd, READY)
            os.close(self.ready_fd)
            self.ready_fd = None


def _allow_many_files() -> None:
    """Every file of an upload is open until the call is answered."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _cut_off_silent_clients(fd: int, after_s: int) -> None:
    """A thread serves a connection from its first byte to its last: half a request must not hold it for good.
    Accepted sockets inherit the listener's timeout."""
    with socket.socket(fileno=os.dup(fd)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", after_s, 0))


def serve(read_settings: Callable[[], Settings], fd: int | None = None) -> None:
    """Serve until SIGTERM, on an open socket that was handed down or on the address in the settings. On SIGHUP a new
    worker takes over, with the settings as they are then; of the address and the database's schema nothing changes."""
    settings = read_settings()
    rows = open_rows(settings.database_url)
    migrate(rows)
    rows.close_connection()
    _allow_many_files()
    if fd is None:
        fd = listen(settings.server.host, settings.server.port).detach()
    _cut_off_silent_clients(fd, settings.server.receive_timeout_s)
    _Server(read_settings, f"fd://{fd}").run()
