"""The web server's entry point: settings -> services -> create_app, served by gunicorn with threads.

One worker process: its readers of the index share one copy of the vectors. More servers scale by more hosts."""

from __future__ import annotations

import resource
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication

from api.apps import create_app
from api.db.database import open_rows
from api.db.migrations import migrate
from api.wiring import connect
from common.settings import Settings

_GRACE_S = 10


class _Server(BaseApplication):  # type: ignore[misc]
    def __init__(self, settings: Settings, bind: str) -> None:
        self._settings = settings
        self._bind = bind
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
        }
        for key, value in options.items():
            if key in self.cfg.settings:
                self.cfg.set(key, value)

    def load(self) -> Flask:
        """Runs in the worker, after the fork: no connection is shared with the parent."""
        return create_app(connect(self._settings))


def _allow_many_files() -> None:
    """Every file of an upload is open until the call is answered."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def serve(settings: Settings, fd: int | None = None) -> None:
    """Serve until SIGTERM, on an open socket that was handed down or on the address in the settings."""
    rows = open_rows(settings.database_url)
    migrate(rows)
    rows.close_connection()
    _allow_many_files()
    bind = f"fd://{fd}" if fd is not None else f"{settings.server.host}:{settings.server.port}"
    _Server(settings, bind).run()
