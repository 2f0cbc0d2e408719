"""Servers for the tests: each test run starts its own on free ports and in temporary folders, and stops them.

A server that is missing is skipped on a laptop, with a loud reason; under CI=true that is a failure."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from api.db.database import Rows, open_rows
from api.db.migrations import migrate
from common.errors import QueueUnavailable
from rag.utils.redis_conn import Queue
from rag.utils.valkey import valkey_argv


def wait_until(condition: Callable[[], object], timeout_s: float = 20.0, what: str = "the condition") -> None:
    """Wait for a condition with a deadline; the only waiting that tests do."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"{what} did not come true within {timeout_s} s"
        time.sleep(0.01)


def missing(what: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is not installed, and CI must not skip its tests")
    pytest.skip(f"!!! {what} is not installed: its tests did not run")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def short_dir() -> Iterator[Path]:
    """A folder whose path is short enough for unix sockets."""
    folder = Path(tempfile.mkdtemp(prefix="pm-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


class ValkeyServer:
    """A real Valkey that a test may kill and start again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "v.sock"
        self.url = f"unix://{self.socket}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        self._process = subprocess.Popen(valkey_argv(self.folder, self.socket))
        queue = Queue(self.url)
        wait_until(lambda: _answers(queue), what="Valkey")
        queue.close()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _answers(queue: Queue) -> bool:
    try:
        queue.check()
    except QueueUnavailable:
        return False
    return True


@pytest.fixture
def valkey(short_dir: Path) -> Iterator[ValkeyServer]:
    server = ValkeyServer(Path(tempfile.mkdtemp(dir=short_dir)))
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture
def queue(valkey: ValkeyServer) -> Iterator[Queue]:
    client = Queue(valkey.url)
    yield client
    client.close()


@pytest.fixture(scope="session")
def mariadb_url() -> Iterator[str]:
    """A MariaDB server of the test run's own; the address has no database name yet."""
    if shutil.which("mariadbd") is None:
        missing("MariaDB (mariadbd)")
    folder = Path(tempfile.mkdtemp(prefix="pm-mariadb-"))
    folder.chmod(0o755)
    as_root = os.getuid() == 0
    if as_root:
        shutil.chown(folder, "mysql", "mysql")
    who = ["--user=mysql"] if as_root else []
    subprocess.run(
        ["mariadb-install-db", *who, f"--datadir={folder}/data", "--auth-root-authentication-method=normal"],
        check=True,
        capture_output=True,
    )
    port = free_port()
    server = subprocess.Popen(
        [
            "mariadbd", "--no-defaults", *who, f"--datadir={folder}/data", f"--socket={folder}/s.sock",
            f"--port={port}", "--bind-address=127.0.0.1", f"--pid-file={folder}/pid",
            "--innodb-flush-log-at-trx-commit=2", "--skip-log-bin",
        ],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    url = f"mysql://root@127.0.0.1:{port}"
    try:
        wait_until(lambda: _sql(port, "SELECT 1").returncode == 0, 60, "MariaDB")
        yield url
    finally:
        server.terminate()
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _sql(port: int, statement: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["mariadb", "--no-defaults", "-h", "127.0.0.1", "-P", str(port), "-u", "root", "-e", statement],
        capture_output=True,
    )


@pytest.fixture
def mariadb_database(mariadb_url: str) -> str:
    """The address of a new, empty database."""
    name = f"t{os.urandom(6).hex()}"
    done = _sql(int(mariadb_url.rpartition(":")[2]), f"CREATE DATABASE {name}")
    assert done.returncode == 0, done.stderr
    return f"{mariadb_url}/{name}"


@pytest.fixture(params=["sqlite", "mariadb"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind: tests that take it run on both."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'rows.db'}"
    return str(request.getfixturevalue("mariadb_database"))


@pytest.fixture
def rows(database_url: str) -> Iterator[Rows]:
    opened = open_rows(database_url)
    migrate(opened)
    yield opened
    opened.close_connection()


@pytest.fixture
def sqlite_rows(tmp_path: Path) -> Iterator[Rows]:
    opened = open_rows(f"sqlite:///{tmp_path / 'rows.db'}")
    migrate(opened)
    yield opened
    opened.close_connection()
