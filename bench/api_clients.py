"""Clients of the API for the bench: connections that are kept, one call after another on each, timed from the first
byte sent to the last one read. All of them in one thread: they take little of the machine from what they measure."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

_BOUNDARY = "pagemillbench"
_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Latencies:
    """Milliseconds of calls; `failed` are those that had another status than expected, or no answer."""

    count: int
    failed: int
    p50_ms: float
    p99_ms: float
    max_ms: float

    @classmethod
    def of(cls, seconds: Sequence[float], failed: int = 0) -> Latencies:
        ordered = sorted(seconds) or [0.0]
        p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
        return cls(len(seconds), failed, _ms(statistics.median(ordered)), _ms(p99), _ms(ordered[-1]))

    def __str__(self) -> str:
        return f"{self.p50_ms:,} / {self.p99_ms:,}" + (f" ({self.failed} failed)" if self.failed else "")


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes
    seconds: float

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Place:
    """Where to call, and as whom."""

    address: str
    key: str

    @property
    def host(self) -> str:
        return urlsplit(self.address).hostname or ""

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 80


class Link:
    """One client's connection, made again when the server has closed it."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def __aenter__(self) -> Link:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def get(self, path: str) -> Answer:
        return await self.ask("GET", path)

    async def post(self, path: str, body: object) -> Answer:
        return await self.ask("POST", path, json.dumps(body).encode(), "application/json")

    async def upload(self, path: str, name: str, content: bytes, **fields: str) -> Answer:
        parts = [_part(f'name="{key}"', value.encode()) for key, value in fields.items()]
        parts.append(_part(f'name="file"; filename="{name}"', content))
        body = b"".join(parts) + f"--{_BOUNDARY}--\r\n".encode()
        return await self.ask("POST", path, body, f"multipart/form-data; boundary={_BOUNDARY}")

    async def ask(self, method: str, path: str, body: bytes = b"", content_type: str = "") -> Answer:
        """Raises OSError or asyncio.IncompleteReadError where the connection breaks before the answer is whole."""
        lines = [f"{method} {path} HTTP/1.1", "Host: bench", f"Authorization: Bearer {self._place.key}"]
        if content_type:
            lines += [f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
        began_s = time.perf_counter()
        reader, writer = await self._open()
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                writer.write("\r\n".join([*lines, "", ""]).encode() + body)
                await writer.drain()
                return await self._read(reader, began_s)
        except BaseException:
            self.close()
            raise

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._place.host, self._place.port)
        return self._streams

    async def _read(self, reader: asyncio.StreamReader, began_s: float) -> Answer:
        status, headers = await read_head(reader)
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("connection", "").lower() == "close":
            self.close()
        return Answer(status, headers, body, time.perf_counter() - began_s)


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    pairs = (line.split(":", 1) for line in lines)
    return int(first.split()[1]), {name.lower(): value.strip() for name, value in pairs}


def _part(disposition: str, content: bytes) -> bytes:
    return f"--{_BOUNDARY}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n".encode() + content + b"\r\n"


@dataclass
class Tally:
    """What many clients see."""

    seconds: list[float] = field(default_factory=list)
    failed: int = 0
    problems: dict[str, int] = field(default_factory=dict)

    def add(self, answer: Answer, expected: int = 200) -> None:
        if answer.status == expected:
            self.seconds.append(answer.seconds)
        else:
            self.fail(f"HTTP {answer.status}: {answer.body[:120].decode(errors='replace')}")

    def fail(self, why: str) -> None:
        self.failed += 1
        self.problems[why] = self.problems.get(why, 0) + 1

    @property
    def latencies(self) -> Latencies:
        return Latencies.of(self.seconds, self.failed)


async def many(
    place: Place, clients: int, seconds: float, pause_s: float, act: Callable[[Link, int, Tally], Awaitable[None]]
) -> Tally:
    """So many clients at once, each with its own connection: it acts, waits until `pause_s` have passed since it began,
    and acts again. With a pause they begin one after another within it."""
    tally, numbers, stop_s = Tally(), iter(range(1 << 30)), time.monotonic() + seconds

    async def one(client: int) -> None:
        await asyncio.sleep(pause_s * client / clients)
        async with Link(place) as link:
            while (began_s := time.monotonic()) < stop_s:
                try:
                    await act(link, next(numbers), tally)
                except (OSError, asyncio.IncompleteReadError, TimeoutError) as exc:
                    tally.fail(f"{type(exc).__name__}: {exc}")
                await asyncio.sleep(max(0.0, began_s + pause_s - time.monotonic()))

    await asyncio.gather(*(one(client) for client in range(clients)))
    return tally
