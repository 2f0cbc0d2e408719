"""What is measured of a running instance for the API bench: pages of long lists, submits by many clients while the
executors parse, and followers of events by the hundred. Each with the CPU time that the web server took."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.api_clients import Latencies, Link, Place, Tally, many, read_head
from bench.api_rows import Filled
from bench.meter import Meter
from tests.acceptance.following import begin, write_long
from tests.acceptance.instance import Instance

API = "/api/v1"
CLIENTS = 50
FOLLOWERS = 500
_LONG_PAGES = 3000
# They open files and connections, and are not counted.
_FIRST = 5


@dataclass(frozen=True)
class Measured:
    """`cpu_ms` is the web server's CPU time for one of them; `load` the machine's load average meanwhile."""

    name: str
    latencies: Latencies
    a_second: float
    cpu_ms: float
    load: float
    problems: dict[str, int]


@dataclass(frozen=True)
class Followed:
    followers: int
    events: int
    events_a_second: float
    spread: Latencies
    cpu_percent: float
    memory_mb: float
    other_calls: Latencies
    load: float


def place_of(instance: Instance) -> Place:
    return Place(instance.address, instance.key())


def web_pids(instance: Instance) -> list[int]:
    return [process.pid for process in instance.children("api.cli server")]


def pages(filled: Filled) -> dict[str, str]:
    """What is shown of a page in the table, and its address."""
    documents = f"{API}/datasets/{filled.dataset_id}/documents"
    middle, last = filled.documents // 60, filled.documents // 30
    return {
        "datasets": f"{API}/datasets",
        "datasets with states": f"{API}/datasets?include_parsing_status=true",
        "one dataset": f"{API}/datasets/{filled.dataset_id}",
        "documents, first page": documents,
        "documents, 100 a page": f"{documents}?page_size=100",
        "documents, middle page": f"{documents}?page={middle}",
        "documents, last page": f"{documents}?page={last}",
        "by time of change": f"{documents}?orderby=update_time",
        "by time of change, middle": f"{documents}?orderby=update_time&page={middle}",
        "by name": f"{documents}?orderby=name&desc=false",
        "by name, middle": f"{documents}?orderby=name&desc=false&page={middle}",
        "run=DONE": f"{documents}?run=DONE",
        "run=RUNNING": f"{documents}?run=RUNNING",
        "run=FAIL, by name": f"{documents}?run=FAIL&orderby=name",
        "suffix=pdf": f"{documents}?suffix=pdf",
        "suffix=pdf, middle": f"{documents}?suffix=pdf&page={middle // 5}",
        "types=visual": f"{documents}?types=visual",
        "keywords, many": f"{documents}?keywords=invoice",
        "keywords, one": f"{documents}?keywords=001234",
        "keywords, none": f"{documents}?keywords=no+such+name",
        "run=DONE by time of change, middle": f"{documents}?run=DONE&orderby=update_time&page={middle}",
        "one document": f"{documents}?id={filled.done_id}",
        "jobs": f"{API}/jobs",
        "jobs, middle page": f"{API}/jobs?page={middle}",
        "jobs, done": f"{API}/jobs?status=done",
        "jobs, failed": f"{API}/jobs?status=failed",
        "one job, done": f"{API}/jobs/{filled.done_id}",
        "one job, waiting": f"{API}/jobs/{filled.waiting_id}",
    }


def whole_reads(filled: Filled) -> dict[str, str]:
    """Those that look at every document, or at every one on its way: no page of them is bounded."""
    documents = f"{API}/datasets/{filled.dataset_id}/documents"
    return {
        "counts (type=filter)": f"{documents}?type=filter",
        "by a value of metadata": f"{documents}?metadata=%7B%22author%22%3A%5B%22annual%22%5D%7D",
        "jobs, queued (of 5,000)": f"{API}/jobs?status=queued",
        "the pool's state": f"{API}/worker-pool-status",
    }


def read_pages(instance: Instance, addresses: dict[str, str], times: int) -> Iterator[Measured]:
    """One after another, as a browser asks."""
    for name, path in addresses.items():
        asyncio.run(_repeated(place_of(instance), path, _FIRST))
        with Meter(web_pids(instance)) as meter:
            began_s = time.monotonic()
            tally = asyncio.run(_repeated(place_of(instance), path, times))
        yield _measured(name, tally, time.monotonic() - began_s, meter)


async def _repeated(place: Place, path: str, times: int) -> Tally:
    tally = Tally()
    async with Link(place) as link:
        for _ in range(times):
            tally.add(await link.get(path))
    return tally


def _measured(name: str, tally: Tally, seconds: float, meter: Meter) -> Measured:
    count = max(1, len(tally.seconds))
    return Measured(
        name=name,
        latencies=tally.latencies,
        a_second=round(len(tally.seconds) / seconds, 1),
        cpu_ms=round(meter.cpu_s * 1000 / count, 2),
        load=round(os.getloadavg()[0], 1),
        problems=tally.problems,
    )


@contextmanager
def busy_executors(instance: Instance, folder: Path, documents: int) -> Iterator[None]:
    """Long PDFs with low priority: both cores have more than enough to do."""
    made = write_long(folder / "long.pdf", _LONG_PAGES).read_bytes()
    jobs = []
    for number in range(documents):
        path = folder / f"long-{number}.pdf"
        path.write_bytes(made + f"%{number}\n".encode())  # what follows a PDF's end is not read
        jobs.append(begin(instance, path, priority="bulk")["job_id"])
    yield
    for job_id in jobs:
        instance.call("DELETE", f"/jobs/{job_id}")


def submits(instance: Instance, seconds: float) -> Iterator[Measured]:
    """Fifty clients, each with a small file a second, and then each without a pause: upload and parse in two calls, as
    RAGFlow's clients do it, and as a job in one."""
    dataset_id = instance.dataset(f"submits {time.monotonic_ns()}")
    acts = {"upload, then parse": _upload_and_parse(dataset_id), "a job": _job(dataset_id)}
    for pause_s, pace in ((1.0, "one a second each"), (0.0, "without a pause")):
        for name, act in acts.items():
            with Meter(web_pids(instance)) as meter:
                began_s = time.monotonic()
                tally = asyncio.run(many(place_of(instance), CLIENTS, seconds, pause_s, act))
            yield _measured(f"{name}, {pace}", tally, time.monotonic() - began_s, meter)


Act = Callable[[Link, int, Tally], Awaitable[None]]


def _content(number: int) -> bytes:
    return f"Note {number} of {time.monotonic_ns()}: the heron stood by the weir until the mill was quiet.\n".encode()


def _upload_and_parse(dataset_id: str) -> Act:
    async def act(link: Link, number: int, tally: Tally) -> None:
        uploaded = await link.upload(f"{API}/datasets/{dataset_id}/documents", f"u{number}.txt", _content(number))
        if uploaded.status != 200 or uploaded.json()["code"] != 0:
            tally.fail(uploaded.body[:120].decode(errors="replace"))
            return
        document_ids = [uploaded.json()["data"][0]["id"]]
        parsed = await link.post(f"{API}/datasets/{dataset_id}/chunks", {"document_ids": document_ids})
        parsed.seconds += uploaded.seconds
        tally.add(parsed)

    return act


def _job(dataset_id: str) -> Act:
    async def act(link: Link, number: int, tally: Tally) -> None:
        name = f"j{number}-{time.monotonic_ns()}.txt"
        tally.add(await link.upload(f"{API}/jobs", name, _content(number), dataset_id=dataset_id), expected=202)

    return act


def followers(instance: Instance, folder: Path, seconds: float) -> Followed:
    """All of them follow one long PDF while it is parsed, and somebody else asks for its state."""
    long_pdf = write_long(folder / "followed.pdf", _LONG_PAGES)
    job = begin(instance, long_pdf, priority="bulk")
    before_mb = _memory_mb(instance)
    with Meter(web_pids(instance)) as meter:
        began_s = time.monotonic()
        heard, others = asyncio.run(_follow(place_of(instance), job["job_id"], seconds))
        spent_s = time.monotonic() - began_s
    after_mb = _memory_mb(instance)
    instance.call("DELETE", f"/jobs/{job['job_id']}")
    by_event: dict[str, list[float]] = {}
    for event_id, at_s in heard:
        by_event.setdefault(event_id, []).append(at_s)
    spreads = [max(times) - min(times) for times in by_event.values() if len(times) == FOLLOWERS]
    return Followed(
        followers=FOLLOWERS,
        events=len(heard),
        events_a_second=round(len(heard) / spent_s, 1),
        spread=Latencies.of(spreads),
        cpu_percent=round(100 * meter.cpu_s / spent_s, 1),
        memory_mb=round(after_mb - before_mb, 1),
        other_calls=others.latencies,
        load=round(os.getloadavg()[0], 1),
    )


def _memory_mb(instance: Instance) -> float:
    return sum(process.memory_info().rss for process in instance.descendants("api.cli server")) / 2**20


async def _follow(place: Place, job_id: str, seconds: float) -> tuple[list[tuple[str, float]], Tally]:
    heard: list[tuple[str, float]] = []
    tally = Tally()
    streams = [await _open_stream(place, f"{API}/jobs/{job_id}/events") for _ in range(FOLLOWERS)]
    readers = [asyncio.create_task(_read_events(reader, heard)) for reader, _ in streams]
    stop_s = time.monotonic() + seconds
    async with Link(place) as link:
        while time.monotonic() < stop_s:
            tally.add(await link.get(f"{API}/jobs/{job_id}"))
            await asyncio.sleep(0.05)
    for reader_task, (_, writer) in zip(readers, streams, strict=True):
        reader_task.cancel()
        writer.close()
    await asyncio.gather(*readers, return_exceptions=True)
    return heard, tally


async def _open_stream(place: Place, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(place.host, place.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {place.key}\r\n\r\n".encode())
    status, _ = await read_head(reader)
    if status != 200:
        raise SystemExit(f"a follower was refused: HTTP {status}")
    return reader, writer


async def _read_events(reader: asyncio.StreamReader, heard: list[tuple[str, float]]) -> None:
    """The state's own text tells events apart: those who come later have other ids for the first one."""
    while line := await reader.readline():
        if line.startswith(b"data: "):
            at_s = time.perf_counter()
            state = json.loads(line[6:])
            heard.append((f"{state['progress']} {state['message']} {state['eta_s']}", at_s))


def problems_of(measured: Sequence[Measured]) -> dict[str, int]:
    return {why: count for one in measured for why, count in one.problems.items()}
