"""The web app under one of several servers, for the bench that chooses between them:

    python -m bench.api_server_run waitress 9381 FOLDER

One process that answers with as many threads (or green ones) as the product's own has."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flask import Flask

from common.settings import Settings, load

_FOLDER = "API_BENCH_FOLDER"


def settings() -> Settings:
    return load(data_dir=Path(os.environ[_FOLDER])).settings


def made_app() -> Flask:
    from api.apps import create_app
    from api.wiring import connect

    return create_app(connect(settings(), rings_aside=True))


def pagemill(port: int) -> None:
    from api.server import serve
    from common.listening import listen

    serve(settings, listen("127.0.0.1", port).detach())


def gunicorn(worker_class: str, port: int) -> None:
    from gunicorn.app.base import BaseApplication

    class Server(BaseApplication):  # type: ignore[misc]
        def load_config(self) -> None:
            options: dict[str, Any] = {"bind": f"127.0.0.1:{port}", "worker_class": worker_class, "keepalive": 30}
            options |= {"threads": settings().server.threads, "loglevel": "warning", "control_socket_disable": True}
            for key, value in options.items():
                self.cfg.set(key, value)

        def load(self) -> Flask:
            return made_app()

    Server().run()


def waitress(port: int) -> None:
    from waitress import serve

    serve(made_app(), host="127.0.0.1", port=port, threads=settings().server.threads)


def cheroot(port: int) -> None:
    from cheroot.wsgi import Server

    Server(("127.0.0.1", port), made_app(), numthreads=settings().server.threads, timeout=30).start()


def granian(port: int) -> None:
    from granian.constants import Interfaces
    from granian.server import Server

    server = Server(
        "bench.api_server_run:made_app",
        address="127.0.0.1",
        port=port,
        interface=Interfaces.WSGI,
        blocking_threads=settings().server.threads,
        factory=True,
        log_enabled=False,
    )
    server.serve()


SERVERS: dict[str, Callable[[int], None]] = {
    "pagemill (gunicorn gthread)": pagemill,
    "gunicorn gthread": lambda port: gunicorn("gthread", port),
    "gunicorn gevent": lambda port: gunicorn("gevent", port),
    "granian": granian,
    "waitress": waitress,
    "cheroot": cheroot,
}


def main() -> None:
    name, port, folder = sys.argv[1:]
    os.environ[_FOLDER] = folder
    SERVERS[name](int(port))


if __name__ == "__main__":
    main()
