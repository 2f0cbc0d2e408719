"""Servers for the tests: each test run starts its own on free ports and in temporary folders, and stops them.

A server that is missing is skipped on a laptop, with a loud reason; under CI=true that is a failure."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.db.database import Rows, open_rows
from api.db.migrations import migrate
from rag.utils.redis_conn import Queue
from tests.servers.elasticsearch import ElasticServer, NotToBeHad
from tests.servers.mariadb import MariaServer
from tests.servers.valkey import ValkeyServer


def missing(what: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is not installed, and CI must not skip its tests")
    pytest.skip(f"!!! {what} is not installed: its tests did not run")


@pytest.fixture(scope="session")
def short_dir() -> Iterator[Path]:
    """A folder whose path is short enough for unix sockets."""
    folder = Path(tempfile.mkdtemp(prefix="pm-"))
    folder.chmod(0o755)  # MariaDB runs as a user of its own
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


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
def mariadb(short_dir: Path) -> Iterator[MariaServer]:
    """The test run's own; each test makes databases in it."""
    if shutil.which("mariadbd") is None:
        missing("MariaDB (mariadbd)")
    server = MariaServer(short_dir / "mariadb")
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def mariadb_database(mariadb: MariaServer) -> str:
    """The address of a new, empty database."""
    return mariadb.create_database(f"t{os.urandom(6).hex()}")


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


@pytest.fixture(scope="session")
def elasticsearch_url(short_dir: Path) -> Iterator[str]:
    """The test run's own, or one that runs already and is named by TEST_ELASTICSEARCH_URL; each test uses a prefix of
    its own."""
    if running := os.environ.get("TEST_ELASTICSEARCH_URL"):
        yield running
        return
    try:
        server = ElasticServer(short_dir / "elasticsearch")
    except NotToBeHad as exc:
        missing(f"Elasticsearch ({exc})")
    try:
        server.start()
        yield server.url
    finally:
        server.stop()
