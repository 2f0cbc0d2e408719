"""The servers of a bench: a Valkey and a MariaDB of its own, in a temporary folder, and the worker processes. All of
them end with the bench."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from common.settings import ROOT
from tests.servers.mariadb import MariaServer
from tests.servers.valkey import ValkeyServer

_STOP_S = 30


@contextmanager
def valkey(folder: Path) -> Iterator[str]:
    folder.mkdir()
    server = ValkeyServer(folder)
    try:
        server.start()
        yield server.url
    finally:
        server.kill()


@contextmanager
def mariadb(folder: Path) -> Iterator[str]:
    """The address of an empty database."""
    server = MariaServer(folder)
    try:
        server.start()
        yield server.create_database("bench")
    finally:
        server.stop()


class Workers:
    """The processes that work for one system, each with its children. `modules` are run with this Python."""

    def __init__(self, commands: Sequence[Sequence[str]], env: Mapping[str, str], log: Path) -> None:
        self._log = log.open("ab")
        self._processes = [
            psutil.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env={**os.environ, **env},
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,
            )
            for command in commands
        ]

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def cpu_s(self) -> float:
        """CPU time of all of them so far."""
        return sum(_cpu_s(process) for main in self._processes for process in (main, *main.children(recursive=True)))

    def check(self) -> bool:
        if any(process.poll() is not None for process in self._processes):
            raise SystemExit(f"a worker has ended: see {self._log.name}")
        return True

    def stop(self) -> None:
        """In order; the process group of one that does not end is killed."""
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(_STOP_S)
            except psutil.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self._log.close()


def _cpu_s(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)
