"""Which web server: the same app, rows and requests under each of those that could serve it, one after another and in
turns. Speed is measured, and so is whether the app sees a body while it arrives, and whether it can keep a connection
for a follower without a thread."""

from __future__ import annotations

import asyncio
import http.client
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from api.db.database import open_rows
from api.db.migrations import migrate
from api.db.services.account_service import AccountService
from bench.api_clients import Link, Place, Tally, many
from bench.api_rows import Filled, fill
from bench.api_server_run import SERVERS
from bench.servers import Workers, valkey
from rag.utils.embedder import PackagedEmbedder
from tests.waiting import free_port, wait_until

_CLIENTS = 50
_DOCUMENTS = 2000
_START_S = 120.0
_LONG_BODY_BYTES = 4_000_000


@dataclass
class Served:
    """Medians over the rounds: requests a second, p99 and CPU milliseconds of each kind of request."""

    server: str
    streams_bodies: bool = False
    follows: bool = False
    a_second: dict[str, list[float]] = field(default_factory=dict)
    p99_ms: dict[str, list[float]] = field(default_factory=dict)
    cpu_ms: dict[str, list[float]] = field(default_factory=dict)
    failed: int = 0

    def add(self, kind: str, tally: Tally, seconds: float, cpu_s: float) -> None:
        count = max(1, len(tally.seconds))
        self.a_second.setdefault(kind, []).append(len(tally.seconds) / seconds)
        self.p99_ms.setdefault(kind, []).append(tally.latencies.p99_ms)
        self.cpu_ms.setdefault(kind, []).append(1000 * cpu_s / count)
        self.failed += tally.failed

    def median(self, figures: dict[str, list[float]], kind: str) -> float:
        return round(statistics.median(figures[kind]), 1)


@dataclass(frozen=True)
class World:
    folder: Path
    filled: Filled
    key: str


@contextmanager
def running(name: str, world: World, environ: dict[str, str]) -> Iterator[tuple[Place, Workers]]:
    port = free_port()
    command = ["-m", "bench.api_server_run", name, str(port), str(world.folder)]
    workers = Workers([command], environ, world.folder.parent / "server.log")
    try:
        wait_until(lambda: workers.check() and _answers(port), _START_S, name)
        yield Place(f"http://127.0.0.1:{port}", world.key), workers
    finally:
        workers.stop()


def _answers(port: int) -> bool:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=_START_S)
    try:
        link.request("GET", "/")
        return link.getresponse().status < 500
    except OSError:
        return False
    finally:
        link.close()


def compare(seconds: float, rounds: int) -> list[Served]:
    """Every server in every round: a slow minute of the machine hits all of them."""
    with tempfile.TemporaryDirectory(prefix="pm-bench-") as name, valkey(Path(name) / "valkey") as queue_url:
        environ = {"REDIS_URL": queue_url, "PAGEMILL_LOG_LEVEL": "WARNING"}
        world = _world(Path(name) / "data")
        served = [Served(server) for server in SERVERS]
        for number in range(rounds):
            for one in served:
                with running(one.server, world, environ) as (place, workers):
                    asyncio.run(_measure(place, workers, world, one, seconds))
                    if not number:
                        one.streams_bodies = _streams_bodies(place, world)
                        one.follows = asyncio.run(_follows(place, world))
    return served


def _world(folder: Path) -> World:
    folder.mkdir()
    rows = open_rows(f"sqlite:///{folder / 'pagemill.db'}")
    migrate(rows)
    accounts = AccountService(rows, PackagedEmbedder.name)
    accounts.ensure_admin()
    filled = fill(rows, accounts.admin(), _DOCUMENTS)
    key = accounts.create_token(accounts.admin(), "bench")
    rows.close_connection()
    return World(folder, filled, key)


async def _measure(place: Place, workers: Workers, world: World, served: Served, seconds: float) -> None:
    dataset = f"/api/v1/datasets/{world.filled.dataset_id}"

    async def state(link: Link, number: int, tally: Tally) -> None:
        tally.add(await link.get(f"/api/v1/jobs/{world.filled.done_id}"))

    async def page(link: Link, number: int, tally: Tally) -> None:
        tally.add(await link.get(f"{dataset}/documents"))

    async def upload(link: Link, number: int, tally: Tally) -> None:
        content = f"note {number} {time.monotonic_ns()}".encode()
        tally.add(await link.upload(f"{dataset}/documents", f"{time.monotonic_ns()}.txt", content))

    for kind, act in (("one job", state), ("a page of 30", page), ("an upload", upload)):
        await many(place, _CLIENTS, seconds / 4, 0.0, act)
        before_s, began_s = workers.cpu_s(), time.monotonic()
        tally = await many(place, _CLIENTS, seconds, 0.0, act)
        served.add(kind, tally, time.monotonic() - began_s, workers.cpu_s() - before_s)


def _streams_bodies(place: Place, world: World) -> bool:
    """Half an upload is sent: is anything of it in the store?"""
    incoming = world.folder / "files" / "incoming"
    head = (
        f"POST /api/v1/datasets/{world.filled.dataset_id}/documents HTTP/1.1\r\nHost: bench\r\n"
        f"Authorization: Bearer {place.key}\r\nContent-Type: multipart/form-data; boundary=b\r\n"
        f"Content-Length: {_LONG_BODY_BYTES}\r\n\r\n"
        '--b\r\nContent-Disposition: form-data; name="file"; filename="half.txt"\r\n\r\n'
    )
    with socket.create_connection((place.host, place.port), timeout=30) as link:
        link.sendall(head.encode() + b"half a body " * (_LONG_BODY_BYTES // 24))
        deadline_s = time.monotonic() + 3
        while time.monotonic() < deadline_s:
            if any(path.stat().st_size > _LONG_BODY_BYTES // 4 for path in incoming.glob("*")):
                return True
            time.sleep(0.05)
    return False


async def _follows(place: Place, world: World) -> bool:
    async with Link(place) as link:
        try:
            answer = await link.get(f"/api/v1/jobs/{world.filled.waiting_id}/events")
        except (OSError, asyncio.IncompleteReadError):
            return False
    return answer.status == 200


def kinds(served: Sequence[Served]) -> list[str]:
    return list(served[0].a_second)
