"""The web server's entry point: settings -> services -> create_app, served by gunicorn with threads.

One worker process: its readers of the index share one copy of the vectors. More servers scale by more hosts."""

from __future__ import annotations

import os
import resource
import socket
import struct
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication

from api.apps import create_app, job_events
from api.db.database import open_rows
from api.db.migrations import migrate
from api.wiring import connect
from common.listening import listen
from common.settings import Settings

_GRACE_S = 10


class _Server(BaseApplication):  # type: ignore[misc]
    def __init__(self, settings: Settings, bind: str) -> None:
        self._settings = settings
        self._bind = bind
        self._app: Flask | None = None
        super().__init__()

    def load_config(self) -> None:
        options: dict[str, Any] = {
            "bind": self._bind,
            "worker_class": "gthread",
            "workers": 1,
            "threads": self._settings.server.threads,
            "keepalive": 30,
            "graceful_timeout": _GRACE_S,
            "timeout": 0,
            "loglevel": "warning",
            "control_socket_disable": True,
            "worker_exit": self._say_goodbye,
        }
        for key, value in options.items():
            if key in self.cfg.settings:
                self.cfg.set(key, value)

    def load(self) -> Flask:
        """Runs in the worker, after the fork: no connection is shared with the parent."""
        self._app = create_app(connect(self._settings))
        return self._app

    def _say_goodbye(self, arbiter: object, worker: object) -> None:
        """Runs in the worker, when its requests have ended: who follows a job is told to connect again."""
        if self._app is not None:
            job_events.close(self._app)


def _allow_many_files() -> None:
    """Every file of an upload is open until the call is answered."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _cut_off_silent_clients(fd: int, after_s: int) -> None:
    """A thread serves a connection from its first byte to its last: half a request must not hold it for good.
    Accepted sockets inherit the listener's timeout."""
    with socket.socket(fileno=os.dup(fd)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", after_s, 0))


def serve(settings: Settings, fd: int | None = None) -> None:
    """Serve until SIGTERM, on an open socket that was handed down or on the address in the settings."""
    rows = open_rows(settings.database_url)
    migrate(rows)
    rows.close_connection()
    _allow_many_files()
    if fd is None:
        fd = listen(settings.server.host, settings.server.port).detach()
    _cut_off_silent_clients(fd, settings.server.receive_timeout_s)
    _Server(settings, f"fd://{fd}").run()
