"""The servers of a bench: a Valkey and a MariaDB of its own, in a temporary folder, and the worker processes. All of
them end with the bench."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import redis

from common.settings import ROOT
from rag.utils.valkey import valkey_argv

_STOP_S = 30


def wait_until(condition: Callable[[], object], timeout_s: float, what: str, look_s: float = 0.005) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise SystemExit(f"{what} did not come within {timeout_s:.0f} s")
        time.sleep(look_s)


@contextmanager
def valkey(folder: Path) -> Iterator[str]:
    """Append-only, synced every second, on a unix socket: as `pagemill up` starts it."""
    folder.mkdir()
    path = folder / "v.sock"
    server = subprocess.Popen(valkey_argv(folder, path))
    try:
        wait_until(path.exists, 20, "Valkey")
        with redis.Redis(unix_socket_path=str(path)) as client:
            wait_until(lambda: _answers(client), 20, "Valkey")
        yield f"unix://{path}"
    finally:
        server.terminate()
        server.wait(_STOP_S)


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False


@contextmanager
def mariadb(folder: Path) -> Iterator[str]:
    """InnoDB with its log synced every second, no binary log. The address of an empty database."""
    folder.mkdir(mode=0o755)
    as_root = os.getuid() == 0
    if as_root:
        shutil.chown(folder, "mysql", "mysql")
    who = ["--user=mysql"] if as_root else []
    subprocess.run(
        ["mariadb-install-db", *who, f"--datadir={folder}/data", "--auth-root-authentication-method=normal"],
        check=True,
        capture_output=True,
    )
    port = _free_port()
    server = subprocess.Popen(
        [
            "mariadbd", "--no-defaults", *who, f"--datadir={folder}/data", f"--socket={folder}/s.sock",
            f"--port={port}", "--bind-address=127.0.0.1", f"--pid-file={folder}/pid",
            "--innodb-flush-log-at-trx-commit=2", "--skip-log-bin",
        ],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_until(lambda: _sql(port, "CREATE DATABASE IF NOT EXISTS bench") == 0, 60, "MariaDB", look_s=0.2)
        yield f"mysql://root@127.0.0.1:{port}/bench"
    finally:
        server.terminate()
        server.wait(_STOP_S)


def _sql(port: int, statement: str) -> int:
    return subprocess.run(
        ["mariadb", "--no-defaults", "-h", "127.0.0.1", "-P", str(port), "-u", "root", "-e", statement],
        capture_output=True,
    ).returncode


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
