"""A whole installation for the storm: MariaDB and Valkey of its own, `pagemill up` with two executors, and one more
executor that nobody supervises, like that of another host."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pymysql

from tests.acceptance.instance import EXECUTOR, Instance
from tests.chaos.outside import Outside
from tests.processes import at_work_in
from tests.servers.mariadb import MariaServer
from tests.servers.valkey import ValkeyServer
from tests.waiting import wait_until


class Site:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o755)
        (folder / "q").mkdir()
        self.valkey = ValkeyServer(folder / "q")
        self.mariadb = MariaServer(folder / "m")
        self.instance = Instance(folder / "data", PAGEMILL_EXECUTOR_PROCESSES="2")
        self._outside: Outside | None = None

    def start(self) -> None:
        self.valkey.start()
        self.mariadb.start()
        database_url = self.mariadb.create_database("pagemill")
        self.instance.environ |= {"REDIS_URL": self.valkey.url, "PAGEMILL_DATABASE_URL": database_url}
        self.instance.start()
        self.start_outside()

    def start_outside(self) -> None:
        self._outside = Outside(self.instance, "outside")

    def kill_outside(self) -> None:
        if self._outside is not None:
            self._outside.kill()
            self._outside = None

    @property
    def outside(self) -> psutil.Process | None:
        return self._outside.process if self._outside is not None and self._outside.is_alive else None

    def executors(self) -> list[psutil.Process]:
        return [*self.instance.children(EXECUTOR), *([self.outside] if self.outside is not None else [])]

    def processes(self, name: str) -> list[psutil.Process]:
        """Of the instance and of the executor outside, those whose command line has the name."""
        outside = self._outside.processes(name) if self._outside is not None else []
        return [*self.instance.descendants(name), *outside]

    def query(self, sql: str, *params: object) -> list[tuple[Any, ...]]:
        """Straight from the database, which may be away."""
        host, port = self.mariadb.url.rpartition("@")[2].split(":")
        with (
            pymysql.connect(host=host, port=int(port), user="root", database="pagemill", connect_timeout=10) as db,
            db.cursor() as cursor,
        ):
            cursor.execute(sql, params)
            return list(cursor.fetchall())


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """Nothing is left of it at the end, also where the start or the body fails."""
    made = Site(folder)
    with ExitStack() as stack:
        for end in (made.valkey.kill, made.mariadb.kill, made.instance.kill, made.kill_outside):
            stack.callback(end)
        made.start()
        yield made
        made.kill_outside()
        made.instance.stop(signal.SIGKILL)
        wait_until(lambda: not at_work_in(made.instance.data), what="the children of a killed supervisor to be gone")


def now_ms() -> int:
    return int(time.time() * 1000)
