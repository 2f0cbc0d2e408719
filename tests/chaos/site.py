"""A whole installation for the storm: MariaDB and Valkey of its own, `pagemill up` with two executors, and one more
executor that nobody supervises, like that of another host."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pymysql

from common.ids import new_token
from common.settings import ROOT
from tests.acceptance.instance import Instance
from tests.servers.mariadb import MariaServer
from tests.servers.valkey import ValkeyServer
from tests.waiting import wait_until

EXECUTOR = "api.cli executor"


class Site:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o755)
        (folder / "q").mkdir()
        self.valkey = ValkeyServer(folder / "q")
        self.mariadb = MariaServer(folder / "m")
        self.instance = Instance(folder / "data", PAGEMILL_EXECUTOR_PROCESSES="2")
        self._log = folder / "outside.log"
        self._outside: subprocess.Popen[bytes] | None = None
        self._database_url = ""

    def start(self) -> None:
        self.valkey.start()
        self.mariadb.start()
        self._database_url = self.mariadb.create_database("pagemill")
        self.instance.environ |= {"REDIS_URL": self.valkey.url, "PAGEMILL_DATABASE_URL": self._database_url}
        self.instance.start()
        self.start_outside()

    def stop(self) -> None:
        self.kill_outside()
        if self.instance.is_alive:
            self.instance.stop(signal.SIGKILL)
            wait_until(lambda: not self._left_over(), 30, "the children of a killed supervisor to be gone")
        self.mariadb.stop()
        self.valkey.kill()

    def start_outside(self) -> None:
        command = [sys.executable, "-m", "api.cli", "executor", "--data", str(self.instance.data)]
        with self._log.open("ab") as log:
            self._outside = subprocess.Popen(
                [*command, "--name", "outside", "--boot", new_token()],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.instance.environ,
                cwd=ROOT,
                start_new_session=True,
            )

    def kill_outside(self) -> None:
        """With everything below it, as when a host is lost."""
        if self._outside is not None:
            with suppress(psutil.NoSuchProcess):
                for child in psutil.Process(self._outside.pid).children(recursive=True):
                    with suppress(psutil.NoSuchProcess):
                        child.kill()
            self._outside.kill()
            self._outside.wait()
            self._outside = None

    @property
    def outside(self) -> psutil.Process | None:
        return psutil.Process(self._outside.pid) if self._outside and self._outside.poll() is None else None

    def processes(self, name: str) -> list[psutil.Process]:
        """Of the instance and of the executor outside, those whose command line has the name."""
        found = self.instance.children(name)
        if self.outside is not None:
            with suppress(psutil.NoSuchProcess):
                below = self.outside.children(recursive=True)
                found += [p for p in (self.outside, *below) if name in _command_line(p)]
        return found

    def query(self, sql: str, *params: object) -> list[tuple[Any, ...]]:
        """Straight from the database, which may be away."""
        host, port = self.mariadb.url.rpartition("@")[2].split(":")
        with (
            pymysql.connect(host=host, port=int(port), user="root", database="pagemill", connect_timeout=2) as db,
            db.cursor() as cursor,
        ):
            cursor.execute(sql, params)
            return list(cursor.fetchall())

    def output(self) -> str:
        return self.instance.output() + self._log.read_text(errors="replace")

    def _left_over(self) -> list[psutil.Process]:
        data = str(self.instance.data)
        return [p for p in psutil.process_iter() if f"--data {data}" in _command_line(p)]


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    made = Site(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def _command_line(process: psutil.Process) -> str:
    with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        return " ".join(process.cmdline())
    return ""


def owner_of(process: psutil.Process) -> str:
    """The name under which an executor owns its claims; empty for one that is gone."""
    words = _command_line(process).split()
    if "--boot" not in words:
        return ""
    return f"{words[words.index('--name') + 1]}:{words[words.index('--boot') + 1]}"


def now_ms() -> int:
    return int(time.time() * 1000)
